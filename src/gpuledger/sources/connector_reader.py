"""What the process connector's datagrams mean: exec, fork and exit, with ``/proc`` read at once.

In: the kernel's datagrams. Out: :class:`ProcessEvent`. The kernel says only that a pid did something; what it
runs is read from ``/proc`` in the same moment, so a process that dies within a millisecond may be told without
its program.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from gpuledger.clock import SystemClock
from gpuledger.sources.connector_socket import EVENT, EVENT_AT, EXEC, EXIT, FORK, Connection
from gpuledger.sources.proc_files import TICKS_PER_SECOND, ProcessStat, read_program, read_stat
from gpuledger.sources.process_events import Happened, ProcessEvent, Program

MOST_AT_ONCE = 1024
"""Events of one reading: a tenth of a second of work, after which what was read can be passed on."""


class _Told(NamedTuple):
    """What the kernel has told.

    Attributes:
        ns: when, by its monotonic clock.
        other: the parent of a birth; the thread of an end.
        read: what an exec runs; None where it died unread.
    """

    ns: int
    what: int
    pid: int
    other: int
    read: tuple[ProcessStat, Program] | None


class ConnectorReader:
    """Events of two connections: one whose execs cannot wait, one whose births and ends can.

    The kernel tells a child as its parent's even where it was made with CLONE_PARENT, that is by a sibling.

    Args:
        execs, others: its alone from now on.
    """

    def __init__(self, execs: Connection, others: Connection) -> None:
        self._clock = SystemClock()
        self._execs = execs
        self._others = others
        self._told: list[_Told] = []
        self._events: list[ProcessEvent] = []
        self._born: dict[int, int] = {}
        """Where among the events a birth is whose start is not known yet, by pid."""
        self._start_ticks: dict[int, int] = {}
        """Of processes that were read and live; emptied when an exit may have been lost."""
        self._without_first: set[int] = set()
        """Processes whose first thread has ended while others may go on."""
        self._spells = 0

    @property
    def spells(self) -> int:
        """Spells in which events were lost, so far."""
        return self._execs.overruns + self._others.overruns

    def read(self) -> bool:
        """Take up execs, and read at once what they run; whether there was any."""
        ahead_ns = self._clock.boot_ahead_ns()
        for taken in range(MOST_AT_ONCE):
            datagram = self._execs.receive()
            if datagram is None:
                return taken > 0
            what, _, ns, _, pid, _, _ = EVENT.unpack_from(datagram, EVENT_AT)
            if what == EXEC:
                self._told.append(_Told(ns, EXEC, pid, 0, read_program(pid, _ticks((ns + ahead_ns) // 1000))))
        return True

    def take(self) -> list[ProcessEvent]:
        """All that has happened since the last call, in the kernel's order.

        What comes in meanwhile waits for the next call: an exec that is received after its birth was not would
        come before it. Most children become another program at once, and are read then; the others are looked
        at now.
        """
        ahead_ns = self._clock.boot_ahead_ns()
        until_ns = self._clock.boot_us() * 1000 - ahead_ns
        self._receive_others()
        while self.read():
            pass
        if self.spells != self._spells:
            self._forget()
        self._told.sort(key=_when)
        ripe = bisect_right(self._told, until_ns, key=_when)
        told, self._told = self._told[:ripe], self._told[ripe:]
        for one in told:
            boot_us = (one.ns + ahead_ns) // 1000
            if one.what == EXEC:
                self._exec(boot_us, one.pid, one.read)
            elif one.what == FORK:
                self._born[one.pid] = len(self._events)
                self._events.append(ProcessEvent(Happened.FORK, boot_us, one.pid, 0, one.other))
            elif one.pid == one.other or one.pid in self._without_first:
                self._exit(boot_us, one.pid)
        for pid in tuple(self._born):
            stat = read_stat(pid)
            if stat is not None and stat.start_ticks <= _ticks(self._events[self._born[pid]].boot_us):
                self._know(pid, stat)
        self._born.clear()
        events, self._events = self._events, []
        return events

    @property
    def holds_back(self) -> bool:
        """Whether something waits for the next call."""
        return bool(self._told)

    def _receive_others(self) -> None:
        while (datagram := self._others.receive()) is not None:
            what, _, ns, pid, process, child, child_process = EVENT.unpack_from(datagram, EVENT_AT)
            if what == EXIT:
                self._told.append(_Told(ns, EXIT, process, pid, None))
            elif what == FORK and child == child_process:
                self._told.append(_Told(ns, FORK, child, process, None))

    def _exec(self, boot_us: int, pid: int, read: tuple[ProcessStat, Program] | None) -> None:
        self._settle(pid)
        if read is None:
            self._events.append(ProcessEvent(Happened.EXEC, boot_us, pid, 0))
            return
        stat, program = read
        self._know(pid, stat)
        self._events.append(ProcessEvent(Happened.EXEC, boot_us, pid, stat.start_ticks, stat.parent, program=program))

    def _exit(self, boot_us: int, pid: int) -> None:
        """A thread's end is its process' end when no other goes on.

        The first thread may end before the others, and does when another one execs; it stays, a zombie, until
        the last has ended and the parent has asked for it. Meanwhile the kernel is let tell of every thread.
        """
        stat = self._goes_on(boot_us, pid)
        if stat is not None and pid not in self._without_first:
            self._without_first.add(pid)
            self._others.tell_of_threads(True)
            stat = self._goes_on(boot_us, pid)  # the last may have ended just before that
        if stat is None:
            self._settle(pid)
            self._born.pop(pid, None)
            self._events.append(ProcessEvent(Happened.EXIT, boot_us, pid, self._start_ticks.pop(pid, 0)))

    def _goes_on(self, boot_us: int, pid: int) -> ProcessStat | None:
        """The stat of a process that has not ended, or has become another program meanwhile."""
        stat = read_stat(pid)
        if stat is None or stat.start_ticks > _ticks(boot_us):
            return None
        self._know(pid, stat)
        return None if stat.is_zombie and stat.threads == 1 else stat

    def _know(self, pid: int, stat: ProcessStat) -> None:
        """The start of a process, also for its birth, if that is still here."""
        self._start_ticks[pid] = stat.start_ticks
        at = self._born.pop(pid, None)
        if at is not None:
            self._events[at] = self._events[at]._replace(start_ticks=stat.start_ticks)

    def _settle(self, pid: int) -> None:
        """Nothing more is awaited of the threads of a process."""
        if pid in self._without_first:
            self._without_first.remove(pid)
            if not self._without_first:
                self._others.tell_of_threads(False)

    def _forget(self) -> None:
        """After a loss nothing kept of a pid is sure to be of the process that has it now."""
        self._spells = self.spells
        self._start_ticks.clear()
        self._born.clear()
        for pid in tuple(self._without_first):
            self._settle(pid)


def _when(told: _Told) -> int:
    return told.ns


def _ticks(boot_us: int) -> int:
    """A time since boot as ``/proc/PID/stat`` has it: whole ticks, cut."""
    return boot_us * TICKS_PER_SECOND // 1_000_000
