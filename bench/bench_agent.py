"""``make bench-agent``: what the agent costs beside a bare loop that makes the same calls, and beside its peers.

8 GPUs of the fake driver with full rings, 50 living processes, one look a second. All contenders run at once on
the same box, so what disturbs one disturbs all, through two windows: first nobody comes or goes, and CPU time is
judged; then one process goes and one comes every few seconds, and memory is judged. Exit 1 when a limit is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

import peers
from busy_box import LIVING, BusyBox
from process_cost import Cost, cpu_seconds

HERE = Path(__file__).resolve().parent
MOST_RATIO = 2.0
MOST_MB = 90.0
MOST_GROWTH_MB = 1.0
JUDGED_FROM_S = 300
"""Shorter runs show the growth of memory and do not judge it: what is warming up is not leaking."""
WARM_UP_S = 8
BARE, AGENT, DRIVER = "bare nvidia-ml-py loop", "gpuledger agent", "the driver itself (C)"


def main() -> int:
    """Run the race and print its table."""
    words = _arguments()
    out = sys.stderr if words.json else sys.stdout
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="gpuledger-bench-")))
        box = BusyBox(folder)
        ending.callback(box.close)
        box.settle()
        environment = {**os.environ, **box.driver.environment()}
        calls = _calls(environment)
        commands = _commands(words, folder)
        others, left_out = _peers(words, folder)
        running = {}
        for name, command in {**commands, **others}.items():
            log = ending.enter_context((folder / f"{len(running)}.log").open("wb"))
            running[name] = (
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True),
                Path(log.name),
            )
        ending.callback(_stop, [process for process, _ in running.values()])
        time.sleep(WARM_UP_S)
        for name in [name for name in others if running[name][0].poll() is not None]:
            left_out[name] = f"ended by itself: {_last_line(running[name][1])}"
            del running[name]
        for name, (process, log) in running.items():
            if process.poll() is not None:
                sys.exit(f"{name} ended by itself: {log.read_text(errors='replace')[-2000:]}")
        processes = {name: process for name, (process, _) in running.items()}
        steady = _watch(None, processes, words)
        churn = _watch(box, processes, words)
    result = _judge(steady, churn, calls, left_out, words)
    _print(result, out)
    if words.json:
        print(json.dumps(result, indent=1))
    return 1 if result["broken"] else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds", type=float, default=60, help="length of each of the two windows (600 for the real thing)"
    )
    parser.add_argument("--rate", type=float, default=1, help="looks a second; more makes short windows exact")
    parser.add_argument("--churn", type=float, default=3, help="seconds between one process going and one coming")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="also run the peers")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, the table on stderr")
    return parser.parse_args()


def _calls(environment: dict[str, str]) -> dict[str, dict[str, int]]:
    done = subprocess.run(
        [sys.executable, str(HERE / "calls_of_a_look.py")], env=environment, capture_output=True, text=True, check=True
    )
    counted: dict[str, dict[str, int]] = json.loads(done.stdout)
    return counted


def _commands(words: argparse.Namespace, folder: Path) -> dict[str, list[str]]:
    long = str(2 * words.seconds + 2 * WARM_UP_S + 60)
    source, program = HERE / "driver_cost.c", folder / "driver_cost"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", str(program), str(source), "-ldl"], check=True)
    agent = shutil.which("gpuledger", path=str(Path(sys.executable).parent)) or "gpuledger"
    interval = f"{round(1000 / words.rate)}ms"
    return {
        DRIVER: [str(program), str(words.rate), long],
        BARE: [sys.executable, str(HERE / "bare_loop.py"), str(words.rate), long],
        AGENT: [agent, "agent", "--interval", interval, "--ledger", str(folder / "ledger.db")],
    }


def _peers(words: argparse.Namespace, folder: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Commands of the peers that can run here, and why the others cannot."""
    if not words.peers:
        return {}, dict.fromkeys(peers.NAMES, "--no-peers")
    why = peers.install()
    if why:
        return {}, dict.fromkeys(peers.NAMES, why)
    commands = {
        peers.NVITOP: peers.nvitop_exporter(port=peers.free_port(), interval_s=1 / words.rate),
        peers.AUDIT: peers.gpu_usage_audit(database=folder / "gua.db", interval_ms=round(1000 / words.rate)),
    }
    if words.rate > 4:  # nvitop-exporter takes no shorter interval
        del commands[peers.NVITOP]
        return commands, {peers.NVITOP: "it looks four times a second at most"}
    return commands, {}


def _watch(
    box: BusyBox | None, processes: dict[str, subprocess.Popen[bytes]], words: argparse.Namespace
) -> dict[str, Cost]:
    """One window; with a box its processes come and go."""
    began = time.monotonic()
    costs = {name: Cost(name=name, began_cpu=cpu_seconds(one.pid), pid=one.pid) for name, one in processes.items()}
    next_churn = began + words.churn
    while time.monotonic() < began + words.seconds:
        if box is not None and time.monotonic() >= next_churn:
            box.churn()
            next_churn += words.churn
        for cost in costs.values():
            cost.sample(time.monotonic() - began)
        time.sleep(min(1.0, words.churn / 3))
    for cost in costs.values():
        cost.sample(time.monotonic() - began)
    return costs


def _judge(
    steady: dict[str, Cost],
    churn: dict[str, Cost],
    calls: dict[str, dict[str, int]],
    left_out: dict[str, str],
    words: argparse.Namespace,
) -> dict[str, Any]:
    agent = churn[AGENT]
    ratio = steady[AGENT].cpu_an_hour / steady[BARE].cpu_an_hour
    broken = []
    if ratio > MOST_RATIO:
        broken.append(f"the agent takes {ratio:.2f} times the bare loop's CPU, more than {MOST_RATIO}")
    if agent.most_mb > MOST_MB:
        broken.append(f"the agent holds {agent.most_mb:.0f} MB, more than {MOST_MB:.0f}")
    if words.seconds >= JUDGED_FROM_S and agent.growth_mb > MOST_GROWTH_MB:
        broken.append(f"the agent grew by {agent.growth_mb:.2f} MB in the last third, more than {MOST_GROWTH_MB}")
    of_agent, of_bare = (sum(calls[name].values()) for name in ("agent", "bare"))
    if abs(of_agent - of_bare) > of_agent / 50:
        broken.append(f"the race is not fair: {of_agent} calls a minute by the agent, {of_bare} by the bare loop")
    return {
        "machine": f"{os.cpu_count()} x {platform.machine()}, Python {platform.python_version()}",
        "seconds": words.seconds,
        "looks_a_second": words.rate,
        "living": LIVING,
        "churn_seconds": words.churn,
        "calls_a_minute": {"agent": of_agent, "bare": of_bare},
        "steady": _rows(steady),
        "churn": _rows(churn),
        "left_out": left_out,
        "broken": broken,
    }


def _rows(costs: dict[str, Cost]) -> list[dict[str, Any]]:
    bare, driver = costs[BARE].cpu_an_hour, costs[DRIVER].cpu_an_hour
    return [
        {
            "name": name,
            "cpu_seconds_an_hour": round(cost.cpu_an_hour, 2),
            "ratio": _ratio(cost.cpu_an_hour, bare),
            "without_the_driver": round(cost.cpu_an_hour - driver, 2),
            "ratio_without_the_driver": _ratio(cost.cpu_an_hour - driver, bare - driver),
            "most_mb": round(cost.most_mb, 1),
            "growth_mb": round(cost.growth_mb, 2),
            "slope_mb_an_hour": round(cost.slope_mb_an_hour, 1),
        }
        for name, cost in costs.items()
    ]


def _ratio(mine: float, theirs: float) -> float | None:
    return round(mine / theirs, 3) if theirs > 0 else None


def _print(result: dict[str, Any], out: TextIO) -> None:
    def say(line: str) -> None:
        print(line, file=out)

    say(
        f"{result['machine']}; 8 GPUs, {result['living']} living processes, {result['looks_a_second']:g} looks a second"
    )
    say(f"calls to the driver a minute: {result['calls_a_minute']}")
    for window, meaning in (
        ("steady", "nobody comes or goes"),
        ("churn", f"one goes and one comes every {result['churn_seconds']:g} s"),
    ):
        say(f"\n{window}, {result['seconds']:g} s: {meaning}")
        heads = ("CPU s/h", "ratio", "less driver", "ratio", "most MB", "growth MB", "MB/h")
        say(f"{'':24}" + "".join(f"{head:>12}" for head in heads))
        for row in result[window]:
            cells = [value for key, value in row.items() if key != "name"]
            say(f"{row['name']:24}" + "".join(f"{'' if cell is None else format(cell, '.2f'):>12}" for cell in cells))
    for name, why in result["left_out"].items():
        say(f"{name:24}left out: {why}")
    limits = (
        f"limits: ratio {MOST_RATIO} (steady), {MOST_MB:g} MB, growth {MOST_GROWTH_MB} MB from {JUDGED_FROM_S} s on"
    )
    say("")
    for sentence in result["broken"] or [f"all limits hold ({limits})"]:
        say(f"LIMIT BROKEN: {sentence}" if result["broken"] else sentence)


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "without a word"


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    for process in processes:
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
