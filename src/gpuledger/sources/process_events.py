"""Kernel events of processes: the words that event sources speak, and the seam behind which they stand.

In: nothing. Out: :class:`ProcessEvent` and :class:`EventSource`. A source says what happened and holds
nothing back; :mod:`gpuledger.sources.event_watcher` remembers, and decides what is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

NVIDIA_MAJOR = 195
"""The fixed major number of ``nvidia`` (NVIDIA open kernel modules, ``nv-linux.h``); its other modules are dealt
theirs when they are loaded."""


class Happened(IntEnum):
    """What a process did."""

    EXEC = 1
    """It became the program that the event carries."""
    FORK = 2
    """It was born of its parent and is the parent's program until it execs. Not every source tells."""
    EXIT = 3
    """Its last thread ended: it holds no device any more."""
    OPEN = 4
    """It asked to open a device node for reading or writing. No proof of use, nor that the open succeeded."""
    HOLD = 5
    """It was found holding a device node open, by a snapshot."""


class Program(NamedTuple):
    """What a process runs, raw as the kernel has it: nothing of it may be written before it is redacted.

    Attributes:
        exe: path of the executable; empty where it could not be read.
        args: the command line, words ended by NUL; empty where it could not be read.
        cwd: working directory, absolute; empty where it could not be read.
        uid: real user id.
        cgroup: the lines of ``/proc/PID/cgroup``; empty where it could not be read.
    """

    exe: bytes
    args: bytes
    cwd: bytes
    uid: int
    cgroup: bytes


class ProcessEvent(NamedTuple):
    """One thing that one process did.

    Attributes:
        happened: what.
        boot_us: when, boot-time clock, microseconds; for a HOLD when the snapshot was taken.
        pid: process id (the kernel's tgid) in the init pid namespace; threads have no events of their own.
        start_ticks: field 22 of ``/proc/PID/stat``; with the pid the process itself. 0 where it died unread.
        parent: pid of the parent; 0 where not told.
        major, minor: of the device node, for OPEN and HOLD; else 0.
        program: what it runs; None where the event does not tell or it died unread. An EXEC without one is a
            process of which nothing but its existence is known.
    """

    happened: Happened
    boot_us: int
    pid: int
    start_ticks: int
    parent: int = 0
    major: int = 0
    minor: int = 0
    program: Program | None = None


class EventSource(Protocol):
    """A stream of kernel events. Made ready by its constructor, which raises ``Unavailable`` with the reason.

    ``wait`` is called by one thread; ``read``, ``lost`` and ``snapshot`` by one thread at a time.

    Attributes:
        method: stands in watches and identities: ``ebpf``, ``connector``.
        sees_opens: opens of NVIDIA device nodes are among the events, whoever opens them and wherever.
        counts_losses: ``lost`` is an exact number of events, not of spells in which some were lost.
        pause_s: how long events may wait in the kernel before ``read``: 0 where they must be read at once.
    """

    method: str
    sees_opens: bool
    counts_losses: bool
    pause_s: float

    def begin(self) -> None:
        """Told once, by the thread that waits and mostly reads: a source may make it urgent."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Whether events are there to be read, after this long at most."""
        ...

    def catch_up(self) -> None:
        """Have ready for ``read`` all that has happened until now: a look must not see a birth without its exec."""
        ...

    def read(self) -> Sequence[ProcessEvent]:
        """What has happened since the last call, in the kernel's order; empty where nothing has."""
        ...

    def lost(self) -> int:
        """Events (or spells of them) lost since the source was made; never shrinks."""
        ...

    def snapshot(self) -> Sequence[ProcessEvent]:
        """HOLD events of every process that has an NVIDIA device node open now; empty where it cannot tell."""
        ...

    def close(self) -> None:
        """Let the kernel's side go; the source is not used again."""
        ...
