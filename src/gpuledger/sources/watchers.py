"""Watchers: who the processes are that a driver lists, look after look. The seam for event sources.

In: the pids that the driver names now. Out: a :class:`NamesLook`. Polling is the fallback and is here;
a watcher of kernel events is one more file with a class of the same shape, and tells in ``fresh`` also the
processes that lived and died between two looks, each with its own times.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gpuledger.clock import Clock
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.readings import Named, NamesLook
from gpuledger.sources import procfs
from gpuledger.sources.procfs import GONE, PROC, ProcessReading

RECHECK_US = 5 * SECOND_US
"""A known process is read again this often, to see whether it became another program."""

MOST_REMEMBERED = 4096
"""Processes kept in memory; a machine's GPUs hold 950 pids each at most (FACTS A.1)."""

MOST_TITLES = 16
"""Times that a process may change its command line without changing its executable and be told anew.

Ray writes what they do into its title, which is no new program each time."""


class Watcher(Protocol):
    """What the agent asks of a source of names.

    Attributes:
        method: ``poll``, or the event source's name; stands in the watch, beside the agent's interval.
        urgent: set when a look should come before its time, cleared by who looks, before the driver is read; None
            where nothing tells.
    """

    method: str
    urgent: threading.Event | None

    def look(self, pids: Collection[int], now_us: int, *, restarted: Collection[int] = ()) -> NamesLook:
        """Name these pids.

        Args:
            pids: what the driver lists now, on any device.
            now_us: wall clock of the look, microseconds UTC.
            restarted: those whose context on the device is new since the last look.
        """
        ...

    def close(self) -> None:
        """Let go of what is held; the watcher is not used again."""
        ...


@dataclass(slots=True, kw_only=True)
class _Known:
    """A process that was read, and the marks by which a change is seen."""

    named: Named
    presence: tuple[int, int] | Missing
    program_mark: int
    read_at_us: int
    titles: int = 0


class PollWatcher:
    """Names what the driver lists by reading ``/proc`` at each look.

    A process that is known costs one stat(2) a look; whether it became another program is seen every
    :data:`RECHECK_US`, at once when its context on the device is new. A process that lives and dies
    between two looks is never seen: that is what the interval in the watch says.

    Args:
        clock: both clocks, for the wall-clock start of a process.
        proc: where ``/proc`` is; another folder in tests.
    """

    method = "poll"
    urgent: threading.Event | None = None

    def __init__(self, *, clock: Clock, proc: Path = PROC) -> None:
        self._clock = clock
        self._proc = proc
        self._known: OrderedDict[int, _Known] = OrderedDict()
        self._asked: frozenset[int] = frozenset()

    def look(self, pids: Collection[int], now_us: int, *, restarted: Collection[int] = ()) -> NamesLook:
        """Name these pids; see :meth:`Watcher.look`."""
        asked = frozenset(pids)
        current: dict[int, Named] = {}
        fresh: list[Named] = []
        unreadable: set[int] = set()
        for pid in sorted(asked):
            known = self._surviving(pid)
            if known is not None and pid not in restarted and 0 <= now_us - known.read_at_us < RECHECK_US:
                current[pid] = known.named
                continue
            told = known.named if known is not None else None
            seen = self._read(pid, known, now_us)
            if isinstance(seen, Missing):
                if seen is not GONE:
                    unreadable.add(pid)
                continue
            current[pid] = seen
            if seen is not told:
                fresh.append(seen)
        for pid in self._asked - asked:
            self._bury_the_dead(pid)
        self._asked = asked
        self._forget_surplus()
        return NamesLook(
            method=self.method,
            current=current,
            fresh=tuple(fresh),
            unreadable=frozenset(unreadable),
        )

    def close(self) -> None:
        """Forget everything."""
        self._known.clear()
        self._asked = frozenset()

    def _surviving(self, pid: int) -> _Known | None:
        """What is known of the process behind a pid, once it is seen to be the same and alive."""
        known = self._known.get(pid)
        if known is None:
            return None
        presence = procfs.presence(pid, proc=self._proc)
        if isinstance(presence, Missing) or presence != known.presence:
            self._bury_the_dead(pid)
            if pid not in self._known:
                return None
            known.presence = presence
        self._known.move_to_end(pid)
        return known

    def _bury_the_dead(self, pid: int) -> None:
        """Forget a known process that has died; one that only let go of its devices stays known."""
        known = self._known.get(pid)
        if known is None:
            return
        stat = procfs.read_stat(pid, proc=self._proc)
        if isinstance(stat, Missing):
            is_dead = stat is GONE
        else:
            is_dead = not stat.is_alive or stat.start_ticks != known.named.start_ticks
        if is_dead:
            del self._known[pid]

    def _read(self, pid: int, known: _Known | None, now_us: int) -> Named | Missing:
        """The process as it is now: the same object as known when it is still the same program."""
        if known is not None and procfs.program_mark(pid, proc=self._proc) == known.program_mark:
            known.read_at_us = now_us
            return known.named
        booted_at_us = procfs.boot_wall_us(self._clock.now_us(), self._clock.boot_us())
        presence = procfs.presence(pid, proc=self._proc)
        reading = procfs.read_identity(pid, booted_at_us=booted_at_us, proc=self._proc)
        if isinstance(reading, Missing):
            if known is None:
                return reading
            self._bury_the_dead(pid)
            # alive, and no longer readable: what was read stands
            return known.named if pid in self._known else GONE
        if known is not None and known.named.start_ticks != reading.start_ticks:
            known = None
        if known is None:
            named = _named(reading, now_us, exec_number=0, started_at_us=reading.started_at_us)
            self._known[pid] = _Known(
                named=named, presence=presence, program_mark=reading.program_mark, read_at_us=now_us
            )
            return named
        return _changed(known, reading, now_us)

    def _forget_surplus(self) -> None:
        """Keep the memory bounded: the longest unseen go first, never those asked for now."""
        surplus = len(self._known) - max(MOST_REMEMBERED, len(self._asked))
        for pid in [pid for pid in self._known if pid not in self._asked][: max(0, surplus)]:
            del self._known[pid]


def _changed(known: _Known, reading: ProcessReading, now_us: int) -> Named:
    """A known process read again: another program, or only another title."""
    known.program_mark, known.read_at_us = reading.program_mark, now_us
    old, new = known.named.text, reading.text
    is_same_exe = old.exe == new.exe or not new.exe
    if is_same_exe and (old.command == new.command or known.titles >= MOST_TITLES):
        return known.named
    known.titles = known.titles + 1 if is_same_exe else 0
    # a clock set meanwhile does not move the start that was told
    started_at_us = known.named.started_at_us
    known.named = _named(reading, now_us, exec_number=known.named.exec_number + 1, started_at_us=started_at_us)
    return known.named


def _named(reading: ProcessReading, now_us: int, *, exec_number: int, started_at_us: int) -> Named:
    return Named(
        pid=reading.pid,
        start_ticks=reading.start_ticks,
        exec_number=exec_number,
        started_at_us=started_at_us,
        seen_at_us=now_us,
        text=reading.text,
    )
