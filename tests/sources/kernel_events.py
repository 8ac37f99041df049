"""What tests of real kernel events stand on: the right to have them, a process that does as told, and what was heard.

In: a source. Out: its events by process; :func:`need_root` skips where this machine cannot, and fails where CI cannot.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from e2e.machine import LAST_PID, eventually, need
from gpuledger.errors import Unavailable
from gpuledger.sources.ebpf import EbpfSource
from gpuledger.sources.process_events import Happened, ProcessEvent

HERE = Path(__file__).parent
NULL = (1, 3)
"""/dev/null: a node that every machine has, in place of a GPU's."""


@cache
def need_root() -> None:
    """Go on only where kernel programs can be loaded."""
    need(os.geteuid() == 0, "kernel events are root's")
    try:
        EbpfSource().close()
    except Unavailable as error:
        need(False, f"this machine has no kernel events: {error.message}")


def build_worker(folder: Path) -> Path:
    """``worker.c``, static, so that it runs in any root."""
    target = folder / "worker"
    command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-o", str(target)]
    subprocess.run([*command, str(HERE / "worker.c")], check=True)
    return target


def descriptors() -> set[Path]:
    """What this process has open."""
    return set(Path("/proc/self/fd").iterdir())


class Heard:
    """What a source tells, kept.

    Args:
        source: made before the processes are started.
    """

    def __init__(self, source: EbpfSource) -> None:
        self.source = source
        self.events: list[ProcessEvent] = []

    def all(self) -> list[ProcessEvent]:
        """Everything told up to now."""
        self.events += self.source.read()
        return self.events

    def of(self, pid: int, happened: Happened | None = None) -> list[ProcessEvent]:
        """What was told of a pid."""
        return [event for event in self.all() if event.pid == pid and happened in (None, event.happened)]

    def wait_for(self, pid: int, happened: Happened) -> ProcessEvent:
        """The first such event of a pid, once it has come."""
        return eventually(lambda: self.of(pid, happened), f"{happened.name} of {pid}")[0]

    def where(self, choose: Callable[[ProcessEvent], bool]) -> list[ProcessEvent]:
        """The events that are meant."""
        return [event for event in self.all() if choose(event)]


def run(*command: str | Path, **words: object) -> int:
    """Run a command to its end; the pid that it had."""
    process = subprocess.Popen([str(word) for word in command], **words)  # type: ignore[call-overload]
    assert process.wait(timeout=30) == 0
    return int(process.pid)


def run_as(pid: int, *command: str | Path, **words: object) -> None:
    """Run a command under this pid, which must be free."""
    for _ in range(200):
        LAST_PID.write_text(str(pid - 1))
        if run(*command, **words) == pid:
            return
        time.sleep(0.005)  # another process was quicker
    raise AssertionError(f"pid {pid} could not be had")
