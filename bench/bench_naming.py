"""``make bench-naming``: who names a process that lives 10 ms, 100 ms, 1 s; a storm of 20,000; what watching costs.

On the fake driver, as root, with real kernel events. All sources watch the same jobs at once on the same box, each
with a ledger of its own, and every figure is a share or a ratio within one run. Each process has a word of its own in
its command line; named is who is told with that word, and every other one must be counted under a cause, or lie in
time that is told to be UNKNOWN. Exit 1 when a limit is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import naming_shares
import watcher_cost
from naming_box import Agent, Life, NamingBox
from naming_peers import Peers
from naming_report import say_all
from naming_shares import Share

from gpuledger.clock import SystemClock
from gpuledger.ledger.store import Ledger
from gpuledger.model.moments import iso
from gpuledger.operations.pulse import hear

LIVES_MS = (10, 100, 1000)
GPUS = 4
MOST_ALIVE = 50
"""Of the crowd at a time: each costs every source that looks a dozen calls a second, on the same two cores."""
EVERY_S = 60
"""Between two looks of the slow poll."""
MOST_RATIO = 2.0
LEAST_CONNECTOR = 99.9
IDLE_MS_A_SECOND = 1.0
"""What watching may cost an idle agent beyond one that names nobody: a thousandth of a core."""
ALLOWED_MS = 1.0
"""For each process that somebody else starts meanwhile: then the box is not idle."""
SETTLED_S = 4
MOST_LATE_S = 180
EVENTS = 3
"""Of each process: exec, open, exit; and fork, exec, exit for the connector."""


def main() -> int:
    """Run what is asked for and print its tables."""
    words = _arguments()
    if os.geteuid() != 0:
        print("kernel events and device nodes need root: sudo make bench-naming", file=sys.stderr)
        return 2
    result: dict[str, Any] = {
        "machine": f"{os.cpu_count()} x {platform.machine()}, Linux {platform.release()}, "
        f"Python {platform.python_version()}",
        "load_before": [round(one, 1) for one in os.getloadavg()],
        "broken": [],
    }
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="gpuledger-bench-")))

        def box(name: str, gpus: int) -> NamingBox:
            made = NamingBox(folder / name, gpus=gpus)
            ending.callback(made.close)
            return made

        if words.count:
            result["shares"] = _shares(box("lives", GPUS), words, result["broken"])
        if words.storm:
            result["storm"] = _storm(box("storm", 1), words, result["broken"])
            result["watchers"] = _watchers(box("watchers", 1), words, result["broken"])
        if words.idle:
            result["idle"] = _idle(box("idle", 1), words, result["broken"])
    result["load_after"] = [round(one, 1) for one in os.getloadavg()]
    say_all(result, sys.stderr if words.json else sys.stdout)
    if words.json:
        print(json.dumps(result, indent=1))
    return 1 if result["broken"] else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5000, help="processes of each length; 0: leave this part out")
    parser.add_argument("--rate", type=float, default=90, help="of them started a second")
    parser.add_argument("--storm", type=int, default=20_000, help="processes of the storm; 0: leave it out")
    parser.add_argument("--at-once", type=int, default=500, help="of them alive together, ending together")
    parser.add_argument("--idle", type=float, default=60, help="seconds of the idle window; 0: leave it out")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="also run the peers")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, the tables on stderr")
    return parser.parse_args()


# Who names whom


def _shares(box: NamingBox, words: argparse.Namespace, broken: list[str]) -> dict[str, Any]:
    floor, _ = box.one_by_one("floor", 40, per_second=20, us=0)
    agents = {way: box.agent(way, "--watch", way) for way in ("ebpf", "connector", "poll")}
    slow = box.ledger_of_cron("poll-60s")
    peers = Peers(box, wanted=words.peers)
    lives: dict[int, list[Life]] = {}
    cpu: dict[str, float] = {}
    rates = []
    with _as_by_cron(box, slow):
        time.sleep(SETTLED_S)
        urgent = _is_urgent(agents["connector"])
        before = {way: agents[way].cpu()[0] for way in ("ebpf", "connector")}
        for ms in LIVES_MS:
            rate = min(words.rate, MOST_ALIVE * 1000 / ms)
            lives[ms], seconds = box.one_by_one(f"of{ms}ms", words.count, per_second=rate, us=1000 * ms)
            rates.append(round(words.count / (seconds - ms / 1000), 1))
        time.sleep(SETTLED_S)
        total = EVENTS * sum(map(len, lives.values()))
        cpu = {way: 1e6 * (agents[way].cpu()[0] - before[way]) / total for way in before}
    for agent in agents.values():
        agent.stop()
    peers.stop()
    rows: dict[str, dict[str, Any]] = {}
    for name, agent in {**agents, "poll-60s": slow}.items():
        rows[name] = {str(ms): _share(box, agent, lives[ms], broken) for ms in LIVES_MS}
    _judge(rows, urgent=urgent, broken=broken)
    for name in peers.names:
        everybody = [life for ms in LIVES_MS for life in lives[ms]]
        told = peers.told(name, everybody)
        rows[name] = {
            str(ms): Share(of=words.count, named=sum(life.word in told for life in lives[ms])).as_json()
            for ms in LIVES_MS
        }
    return {
        "count": words.count,
        "asked_a_second": words.rate,
        "started_a_second": rates,
        "floor_ms": _median_ms(floor),
        "lived_ms": {str(ms): _median_ms(lives[ms]) for ms in LIVES_MS},
        "real_time": urgent,
        "sources": rows,
        "user_us_an_event": {way: round(spent, 1) for way, spent in cpu.items()},
        "left_out": peers.left_out,
    }


def _share(box: NamingBox, agent: Agent, lives: list[Life], broken: list[str]) -> dict[str, Any]:
    """What one ledger says of the processes of one length, after its own answers are seen to add up."""
    since, until = (iso(at_us) for at_us in (min(one.began_us for one in lives), max(one.ended_us for one in lives)))
    window = ("--since", since, "--until", until)
    usage, blind = box.read(agent, "usage", *window), box.read(agent, "blind", *window)
    unnamed = usage["unattributed"]
    is_answered = usage["total"] is not None  # else all of it is UNKNOWN, and no figure is given
    if is_answered and usage["total"] != sum(row["quantity"] for row in usage["rows"]) + unnamed["quantity"]:
        broken.append(f"{agent.name}: the total of usage is not its rows and its unattributed")
    causes = {one["cause"]: one["quantity"] for one in blind["unattributed"]["causes"]}
    if is_answered and not unnamed["quantity"] == sum(unnamed["causes"].values()) == sum(causes.values()):
        broken.append(f"{agent.name}: unattributed time is not the sum of its causes")
    share = naming_shares.of_ledger(agent.ledger, lives, usage)
    return share.as_json()


def _judge(rows: dict[str, dict[str, Any]], *, urgent: bool, broken: list[str]) -> None:
    for name, by_length in rows.items():
        for ms, share in by_length.items():
            what = f"{name}, {ms} ms"
            percent = 100 * share["named"] / share["of"]
            if name == "ebpf" and share["named"] != share["of"]:
                broken.append(f"{what}: {percent:.2f} % named, less than all")
            listed = share["of"] - share["unlisted"]
            if name == "connector" and urgent and 100 * share["named"] < LEAST_CONNECTOR * listed:
                broken.append(f"{what}: {share['named']} of {listed} named, less than {LEAST_CONNECTOR} %")
            _judge_honesty(what, share, broken)


def _judge_honesty(what: str, share: dict[str, Any], broken: list[str]) -> None:
    for key, meaning in (
        ("silent", "missed without a cause"),
        ("misnamed", "told with another's name"),
        ("twice", "told twice"),
    ):
        if share[key]:
            broken.append(f"{what}: {share[key]} {meaning}")
    if not share["adds_up"]:
        broken.append(f"{what}: named and missed are not all there were")


def _median_ms(lives: list[Life]) -> float:
    return round(statistics.median(life.ended_us - life.began_us for life in lives) / 1000, 1)


def _is_urgent(agent: Agent) -> bool:
    """Whether the process that reads the connector runs at real-time priority."""
    return any(os.sched_getscheduler(pid) == os.SCHED_FIFO for pid in agent.children())


@contextmanager
def _as_by_cron(box: NamingBox, agent: Agent) -> Iterator[None]:
    """A poll every minute, which does not look more often when the driver's ring fills, as a running agent would."""
    done = threading.Event()
    looks: list[subprocess.Popen[bytes]] = []

    def look_on() -> None:
        while True:
            looks.append(box.look(agent, "--watch", "poll", "--interval", f"{EVERY_S}s"))
            if done.wait(EVERY_S):
                break
        for one in looks:
            one.wait()

    thread = threading.Thread(target=look_on)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


# The storm


def _storm(box: NamingBox, words: argparse.Namespace, broken: list[str]) -> dict[str, Any]:
    agent = box.agent("storm", "--watch", "ebpf")
    time.sleep(SETTLED_S)
    lives, seconds = box.waves("storm", words.storm, at_once=words.at_once, opening=True)
    late_s = _caught_up_s(agent, max(one.ended_us for one in lives))
    agent.stop()
    share = _share(box, agent, lives, broken)
    window = ("--since", iso(min(one.began_us for one in lives)), "--until", iso(max(one.ended_us for one in lives)))
    reasons = {one["reason"]: one["seconds"] for one in box.read(agent, "blind", *window)["reasons"]}
    kept = naming_shares.identities(agent.ledger, (life.word for life in lives))
    found = {
        **share,
        "at_once": words.at_once,
        "a_second": round(words.storm / seconds),
        "caught_up_s": round(late_s, 1),
        "identities": kept,
        "unknown_seconds": reasons,
        "talk": [line for line in agent.talk.splitlines() if "lost" in line],
    }
    _judge_honesty("storm", share, broken)
    is_loss_told = "events-lost" in reasons or "events-lost" in share["misses"]
    if kept != words.storm and not is_loss_told:
        broken.append(f"storm: {kept} identities of {words.storm} are kept, and no events-lost is told")
    if share["named"] != words.storm and not is_loss_told:
        broken.append(f"storm: {share['named']} contexts of {words.storm} are named, and no events-lost is told")
    if "ring-overflow" not in reasons:
        broken.append("storm: the driver lost rows, and no ring-overflow is told")
    return found


def _caught_up_s(agent: Agent, ended_us: int) -> float:
    """Waits until two looks are written that began when all rows were settled: who left no row is waited for so long.

    Returns:
        Seconds from the end of the last process until then, without what is waited for at least.
    """
    clock = SystemClock()
    first_us = 0
    while (late_s := (clock.now_us() - ended_us) / 1e6) < MOST_LATE_S:
        time.sleep(0.2)
        with Ledger.open(agent.ledger, mode="read") as ledger:
            pulse = hear(ledger, now_us=clock.now_us())
        if pulse is not None and pulse.looked_us > ended_us + SETTLED_S * 1_000_000:
            first_us = first_us or pulse.looked_us
            if pulse.looked_us != first_us:
                return late_s - SETTLED_S
    sys.exit(f"the agent has not caught up {MOST_LATE_S} s after the storm: {agent.talk[-2000:]}")


# What watching costs


def _watchers(box: NamingBox, words: argparse.Namespace, broken: list[str]) -> list[dict[str, Any]]:
    rows = []
    for source, opening in (("ebpf", False), ("connector", False), ("ebpf", True)):
        row = watcher_cost.race(box, source, count=words.storm, at_once=words.at_once, opening=opening)
        rows.append(row)
        if not opening and row["ratio"] > MOST_RATIO:
            broken.append(
                f"{source}: {row['ratio']:.2f} times the bare reader's CPU for an event, more than {MOST_RATIO}"
            )
    return rows


def _idle(box: NamingBox, words: argparse.Namespace, broken: list[str]) -> dict[str, Any]:
    found = watcher_cost.idle(box, seconds=words.idle)
    most = IDLE_MS_A_SECOND + ALLOWED_MS * found["processes_started_meanwhile"] / found["seconds"]
    broken += [
        f"idle: {way} takes {spent:.2f} ms a second more than an agent that names nobody, more than {most:.2f}"
        for way, spent in found["beyond_base_ms_a_second"].items()
        if spent > most
    ]
    return found


if __name__ == "__main__":
    sys.exit(main())
