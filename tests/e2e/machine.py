"""What the end-to-end tests stand on: real processes, a clock that can be moved, and the right to do either.

In: a folder. Out: processes with names, ended with the test; a clock file for ``clock.c``; and
:func:`need`, which skips where this machine cannot, and fails where CI cannot.
"""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

HERE = Path(__file__).parent
NOBODY = 65534
"""The user that owns nothing, on every Linux."""

ME = pwd.getpwuid(os.geteuid()).pw_name
"""The user of every process that a test starts."""

PATIENCE_S = 30.0
"""How long anything is waited for: a hundred times what it takes, so that a loaded machine fails no test."""

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")

T = TypeVar("T")


def need(able: bool, sentence: str) -> None:
    """Go on only where the machine can; in CI what cannot be tested is a failure."""
    if able:
        return
    if os.environ.get("CI"):
        pytest.fail(f"CI cannot test this: {sentence}")
    pytest.skip(sentence)


def eventually(find: Callable[[], T], what: str, *, within_s: float = PATIENCE_S) -> T:
    """What ``find`` gives once it gives something true."""
    until = time.monotonic() + within_s
    while True:
        found = find()
        if found:
            return found
        if time.monotonic() > until:
            pytest.fail(f"not within {within_s:g} s: {what}")
        time.sleep(0.02)


class Clock:
    """The wall clock and the boot-time clock of the command under test; a file that ``clock.c`` reads.

    Args:
        file: where it is kept; without the file both clocks are the machine's own.
        library: ``clock.c``, compiled.
    """

    def __init__(self, file: Path, library: Path) -> None:
        self._file = file
        self._library = library
        self._wall_us = self._boot_us = 0

    def environment(self) -> dict[str, str]:
        """Variables that put a process under this clock."""
        if not self._file.exists():
            return {}
        return {"LD_PRELOAD": str(self._library), "GPULEDGER_FAKE_CLOCK": str(self._file)}

    def now_us(self) -> int:
        """The wall clock, microseconds UTC."""
        return time.time_ns() // 1000 + self._wall_us

    def stand_at(self, at_us: int) -> None:
        """Begin the test at a known moment, time passing as it does."""
        self._write(at_us - time.time_ns() // 1000, self._boot_us)

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks, as the agent sees it."""
        us = int(seconds * 1_000_000)
        self._write(self._wall_us + us, self._boot_us + us)

    def step(self, seconds: float) -> None:
        """Somebody sets the wall clock; the boot-time clock does not move."""
        self._write(self._wall_us + int(seconds * 1_000_000), self._boot_us)

    def _write(self, wall_us: int, boot_us: int) -> None:
        self._wall_us, self._boot_us = wall_us, boot_us
        fresh = self._file.with_suffix(".fresh")
        fresh.write_text(f"{wall_us} {boot_us}\n")
        fresh.rename(self._file)


def build_clock(directory: Path) -> Path:
    """``clock.c`` as a shared library."""
    target = directory / "libclock.so"
    command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(target)]
    subprocess.run([*command, str(HERE / "clock.c")], check=True)
    return target


class Job:
    """A real process that lives until told to end; a script of its own, so that it has a name.

    Args:
        script: the script's path, which becomes its name in the ledger.
        arguments: words after it.
        pid: the process id that it must have; needs root.
    """

    def __init__(self, script: Path, *arguments: str, pid: int | None = None) -> None:
        self.script = script
        script.write_text("import sys\nsys.stdin.read()\n")
        command = [sys.executable, "-S", "-E", str(script), *arguments]
        self._process = _start(command) if pid is None else _start_as(command, pid)
        self.pid = self._process.pid

    @property
    def name(self) -> str:
        """How :func:`e2e.box.short` calls it."""
        return self.script.name

    def end(self) -> None:
        """The process exits; returns when it is gone from ``/proc``."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.PIPE)


def _start_as(command: list[str], pid: int) -> subprocess.Popen[bytes]:
    """Start a process under a given pid: the kernel gives the next free one after ``ns_last_pid``."""
    for _ in range(200):
        try:
            LAST_PID.write_text(str(pid - 1))
        except OSError as error:
            need(False, f"a pid cannot be chosen here: {LAST_PID}: {error.strerror}")
        process = _start(command)
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
    pytest.fail(f"pid {pid} could not be had in 200 tries")
