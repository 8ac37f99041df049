"""CPU of watching: for each kernel event beside a bare reader of the same, and of agents that have nothing to do.

In: a box. Out: figures of one window each, in which both sides ran at once.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from naming_box import Agent, NamingBox

COLLECTORS = Path(__file__).with_name("collectors.py")
NAMELESS = Path(__file__).with_name("nameless_agent.py")
WINDOWS = 5
"""Of the idle time: the median is told."""
SETTLED_S = 3
"""After the last process: the watchers' next look and a half."""


def race(box: NamingBox, source: str, *, count: int, at_once: int, opening: bool) -> dict[str, Any]:
    """The product's watcher and the bare reader of one source, on one storm.

    Args:
        source: ``ebpf`` or ``connector``.
        opening: each process opens a GPU's node, so that the product tells its identity, redacted.
    """
    sides = ("watcher", "bare")
    running = {side: _started(f"{side}-{source}", box) for side in sides}
    _, seconds = box.waves(f"{source}{opening:d}", count, at_once=at_once, opening=opening)
    time.sleep(SETTLED_S)
    found = {side: _ended(running[side]) for side in sides}
    events = found["bare"]["events"]
    return {
        "source": source,
        "opening": opening,
        "processes": count,
        "events": events,
        "a_second": round(count / seconds),
        **{
            side: {
                "user_us_an_event": round(1e6 * found[side]["user_s"] / events, 2),
                "system_us_an_event": round(1e6 * found[side]["system_s"] / events, 2),
                "told": found[side]["told"],
                "lost": found[side]["lost"],
            }
            for side in sides
        },
        "ratio": round(found["watcher"]["user_s"] / found["bare"]["user_s"], 2),
        "ratio_with_system": round(_all(found["watcher"]) / _all(found["bare"]), 2),
    }


def _all(bill: dict[str, float]) -> float:
    return bill["user_s"] + bill["system_s"]


def _started(kind: str, box: NamingBox) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, str(COLLECTORS), kind], env=box.environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    if process.stdout.readline() != "READY\n":
        sys.exit(f"{kind} does not start")
    return process


def _ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    process.terminate()
    told, _ = process.communicate(timeout=60)
    found: dict[str, Any] = json.loads(told)
    return found


def idle(box: NamingBox, *, seconds: float, warm_up_s: float = 6) -> dict[str, Any]:
    """Agents of each way of naming, and one that names nobody, a look a second, where nobody comes or goes.

    All at once, in several windows: whatever else the machine does falls on all of them, and the median of the windows
    leaves out what fell on one. What watching costs is the difference to the agent that names nobody.
    """
    nobody = box.agent("idle-base", program=(sys.executable, str(NAMELESS)))
    agents = {
        "base": nobody,
        **{way: box.agent(f"idle-{way}", "--watch", way) for way in ("poll", "ebpf", "connector")},
    }
    time.sleep(warm_up_s)
    windows: list[dict[str, float]] = []
    forks = _forks()
    for _ in range(WINDOWS):
        began, before = time.monotonic(), {way: _spent(agent) for way, agent in agents.items()}
        time.sleep(seconds / WINDOWS)
        took = time.monotonic() - began
        windows.append({way: 1000 * (_spent(agent) - before[way]) / took for way, agent in agents.items()})
    forks = _forks() - forks
    for agent in agents.values():
        agent.stop()
    beyond = {way: sorted(one[way] - one["base"] for one in windows) for way in agents if way != "base"}
    return {
        "seconds": seconds,
        "processes_started_meanwhile": forks,
        "cpu_ms_a_second": {way: round(statistics.median(one[way] for one in windows), 2) for way in agents},
        "beyond_base_ms_a_second": {way: round(statistics.median(each), 2) for way, each in beyond.items()},
        "beyond_base_from_to": {way: [round(each[0], 2), round(each[-1], 2)] for way, each in beyond.items()},
    }


def _spent(agent: Agent) -> float:
    """CPU seconds of an agent and who reads beside it, in nanoseconds of the scheduler."""
    assert agent.process is not None
    paths = [
        path for pid in (agent.process.pid, *agent.children()) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")
    ]
    return sum(int(path.read_text().split()[0]) for path in paths) / 1e9


def _forks() -> int:
    """Processes and threads started on this machine since boot."""
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith("processes "):
            return int(line.split()[1])
    raise LookupError("/proc/stat tells of no processes")
