"""The driver's accounting list of one device: finished rows, and which processes it shows running.

In: a device handle. Out: an :class:`AccountingLook`. Touching the driver (:meth:`AccountingList.look`,
:func:`read_stats`) is apart from what a row means (:func:`interpret`), which is pure.
"""

# ruff: noqa: N815 - fields bear NVIDIA's names

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pynvml

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.model.readings import FinishedRow
from gpuledger.sources.nvml_binding import Binding, Handle, Trouble, meaning_of

NOT_AVAILABLE_U32 = 4294967295
NOT_AVAILABLE_U64 = 18446744073709551615
"""What NVML writes where it has no value (nvml.h, NVML_VALUE_NOT_AVAILABLE)."""

MIB = 1024 * 1024
CUDA_BIRTH_US = 1_167_609_600_000_000
"""2007-01-01: no CUDA context is older, so a start before it comes from a clock that was not set yet."""

FULL_LOOKS = 60
"""Every so many looks all rows are read again, whatever the proof below says: one minute at one look a second."""

NOT_GIVEN = Missing("driver: not available")
HIDDEN = Missing("driver: an older finished row of this pid hides the running one")
_NO_START = Missing("driver: the start is not a time")


class RawStats(NamedTuple):
    """One row as the driver gives it, by the binding's names and in the order of nvml.h, sentinels and all.

    Units: %, %, bytes, ms (0 while running), microseconds, 0 or 1.
    """

    gpuUtilization: int
    memoryUtilization: int
    maxMemoryUsage: int
    time: int
    startTime: int
    isRunning: int

    @property
    def ended_at_us(self) -> int:
        """End of the row, microseconds UTC."""
        return self.startTime + self.time * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A finished row: as given, and understood. ``row`` is Missing when it cannot be believed."""

    pid: int
    raw: RawStats
    row: FinishedRow | Missing
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingLook:
    """What the list said at one look.

    Args:
        finished: believable finished rows, oldest end first; the same object as before while unchanged.
        running: pid to start of its context in microseconds UTC.
        doubled: pids listed as finished and again as running; their running row cannot be read.
        listed: number of entries.
        ended: pids that ended after the list was read and before the living were.
        problems: rows or figures that could not be believed.
    """

    finished: tuple[FinishedRow, ...] = ()
    running: Mapping[int, int | Missing] = field(default_factory=dict)
    doubled: frozenset[int] = frozenset()
    listed: int | Missing = 0
    ended: frozenset[int] = frozenset()
    problems: tuple[Problem, ...] = ()


EMPTY_LOOK = AccountingLook()
UNREAD_LOOK = AccountingLook(listed=Missing("the list could not be read"))


class AccountingList:
    """One device's list over many looks: reads what may have changed, remembers the rest.

    A stats call costs about 14 us, and eight full rings 1,024 of them, so settled rows are not asked for
    again. That is safe by proof, not by guess. The driver keeps dead rows in order of their end: a process
    that ends is appended, its pid's older row freed, and rows leave only at the head (gpu_acct.c, 515 to
    595: listAppendExisting, listHead). So if a row that had already ended before an earlier look stands
    unchanged, every row listed before it ended earlier still, was read in its final form at that look, and
    cannot have been replaced since, not even by another life of its pid: that would stand behind it. The
    walk goes backwards from the end of the list, over the running rows and the new dead ones, to the first
    such row. The order is checked on the rows' own times; where it does not hold (the clock was set back,
    or a driver that sorts otherwise), all rows are read at every look.
    """

    def __init__(self, where: str, memory_mib: int | Missing) -> None:
        self._where = where
        self._memory_mib = memory_mib
        self._looks = 0
        self._pids: list[int] = []
        self._places: dict[int, int] = {}
        # What the last look settled: pids and rows in the driver's order, and the same by pid.
        self._dead: list[int] = []
        self._settled: list[Settled] = []
        self._known: dict[int, Settled] = {}
        self._known_at_us = 0
        self._ordered = False
        self._finished: tuple[FinishedRow, ...] = ()
        self._problems: tuple[Problem, ...] = ()

    def look(self, binding: Binding, handle: Handle, now_us: int) -> AccountingLook:
        """Read the list at ``now_us``.

        Raises:
            pynvml.NVMLError: any but "not found", which only means that a row went away meanwhile.
        """
        pids = binding.nvmlDeviceGetAccountingPids(handle)
        if pids != self._pids:
            self._pids = pids
            self._places = {pid: place for place, pid in reversed(list(enumerate(pids)))}
        full = not self._ordered or self._looks % FULL_LOOKS == 0
        self._looks += 1
        settled, running = self._walk(binding, handle, now_us, full=full)
        if settled != self._settled:
            self._keep(settled)
        self._known_at_us = now_us
        doubled = frozenset() if len(self._places) == len(pids) else self._doubled()
        return AccountingLook(
            finished=self._finished, running=running, doubled=doubled, listed=len(pids), problems=self._problems
        )

    def with_late(
        self, look: AccountingLook, binding: Binding, handle: Handle, pids: Collection[int]
    ) -> AccountingLook:
        """The same look, asked again for those who are alive and were not in the list when it was read.

        On a busy machine seconds can lie between the two lists. A context without its start could not be tied to
        its row then, and would count beside it.

        Args:
            pids: alive, and not known from the look before: a stats call each.
        """
        late = {pid: raw for pid in pids if pid not in look.running and pid not in look.doubled
                if (raw := read_stats(binding, handle, pid)) is not None}  # fmt: skip
        if not late:
            return look
        hidden = {pid for pid, raw in late.items() if pid in self._known and self._known[pid].raw == raw}
        return replace(
            look,
            running={**look.running, **{pid: start_of(raw.startTime) for pid, raw in late.items() if raw.isRunning}},
            doubled=look.doubled | hidden,
            ended=frozenset(pid for pid, raw in late.items() if not raw.isRunning) - hidden,
        )

    def _keep(self, settled: list[Settled]) -> None:
        self._settled = settled
        self._dead = [one.pid for one in settled]
        self._known = dict(zip(self._dead, settled, strict=True))
        self._ordered = _in_order(settled)
        self._finished = tuple(one.row for one in settled if isinstance(one.row, FinishedRow))
        self._problems = tuple(problem for one in settled for problem in one.problems)

    def _walk(
        self, binding: Binding, handle: Handle, now_us: int, *, full: bool
    ) -> tuple[list[Settled], dict[int, int | Missing]]:
        pids, places, known = self._pids, self._places, self._known
        running: dict[int, int | Missing] = {}
        newest_first: list[Settled] = []
        place = len(pids)
        while place:
            place -= 1
            pid = pids[place]
            if places[pid] != place:
                continue  # the second listing of a pid is the running one; the stats call only gives the dead row
            raw = read_stats(binding, handle, pid)
            if raw is None:
                continue
            if raw.isRunning:
                running[pid] = start_of(raw.startTime)
                continue
            before = known.get(pid)
            one = before if before and before.raw == raw else self._settle(pid, raw, now_us)
            newest_first.append(one)
            if one is before and not full and one.raw.ended_at_us + 1000 < self._known_at_us:
                break  # proven; + 1000 us because the driver cuts its ms
        older = self._older(binding, handle, now_us, place)
        return older + newest_first[::-1], running

    def _older(self, binding: Binding, handle: Handle, now_us: int, until: int) -> list[Settled]:
        """The proven rows: those listed before place ``until``."""
        pids = self._pids[:until]
        if pids == self._dead[:until]:
            return self._settled[:until]
        older: list[Settled] = []
        for place, pid in enumerate(pids):
            if self._places[pid] != place:
                continue
            proven = self._known.get(pid)
            if proven is None:  # not readable at the last look
                raw = read_stats(binding, handle, pid)
                if raw is None or raw.isRunning:
                    continue
                proven = self._settle(pid, raw, now_us)
            older.append(proven)
        return older

    def _settle(self, pid: int, raw: RawStats, now_us: int) -> Settled:
        return interpret(pid, raw, where=self._where, memory_mib=self._memory_mib, now_us=now_us)

    def _doubled(self) -> frozenset[int]:
        return frozenset(pid for place, pid in enumerate(self._pids) if self._places[pid] != place)


def _in_order(settled: list[Settled]) -> bool:
    """Whether ends rise along the list, give or take the millisecond that the driver cuts off."""
    last = 0
    for one in settled:
        ended_at_us = one.raw.ended_at_us
        if ended_at_us + 1000 < last:
            return False
        last = ended_at_us
    return True


def read_stats(binding: Binding, handle: Handle, pid: int) -> RawStats | None:
    """One row, or None when it went away between the list and this call.

    Version 1 of the call is used on every driver, so that a row reads the same before and after a driver
    update and the same as in ``nvidia-smi``; version 2 (R610) only adds decimals.

    Raises:
        pynvml.NVMLError: any but "not found".
    """
    try:
        stats = binding.nvmlDeviceGetAccountingStats(handle, pid)
    except pynvml.NVMLError as error:
        if meaning_of(error).trouble is Trouble.GONE:
            return None
        raise
    return stats if type(stats) is RawStats else RawStats(*(getattr(stats, name) for name in RawStats._fields))


def start_of(started_at_us: int) -> int | Missing:
    """The driver's start of a context, or Missing when it is no time a context can have started at."""
    return started_at_us if CUDA_BIRTH_US <= started_at_us < NOT_AVAILABLE_U64 // 2 else _NO_START


def interpret(pid: int, raw: RawStats, *, where: str, memory_mib: int | Missing, now_us: int) -> Settled:
    """What a finished row says, at ``now_us``, on a device with ``memory_mib`` in all. Pure.

    A sentinel is an absent value and no problem. A figure that cannot be is Missing with a problem; a row
    whose time cannot be is no row: there is no plausible number to put in its place. 0 MiB and 0 % stay
    as the driver gives them: they are not evidence of no use, and not absent either.
    """
    problems: list[Problem] = []
    if raw.time * 1000 > max(0, now_us - CUDA_BIRTH_US):
        # The driver subtracts wall clock readings without a sign: a clock set back meanwhile wraps around.
        told = f"pid {pid} finished with a context time of {raw.time} ms, which cannot be: row left out"
        problem = Problem(code="bad-context-time", message=told, where=where)
        return Settled(pid=pid, raw=raw, row=Missing("driver: impossible context time"), problems=(problem,))
    started_at_us = start_of(raw.startTime)
    if isinstance(started_at_us, Missing):
        told = f"pid {pid} finished with a start of {raw.startTime} us, which is not a time"
        problems.append(Problem(code="bad-start-time", message=told, where=where))
    row = FinishedRow(
        pid=pid,
        started_at_us=started_at_us,
        context_ms=raw.time,
        peak_memory_mib=memory_of(raw.maxMemoryUsage, pid, where=where, memory_mib=memory_mib, problems=problems),
        gpu_percent=_percent_of(raw.gpuUtilization, pid, where=where, problems=problems),
        memory_percent=_percent_of(raw.memoryUtilization, pid, where=where, problems=problems),
    )
    return Settled(pid=pid, raw=raw, row=row, problems=tuple(problems))


def memory_of(
    memory_bytes: int | None, pid: int, *, where: str, memory_mib: int | Missing, problems: list[Problem]
) -> int | Missing:
    """Bytes as whole MiB; Missing when the driver has none, or more than the whole device (a problem)."""
    if memory_bytes is None or memory_bytes == NOT_AVAILABLE_U64:
        return NOT_GIVEN
    mib = memory_bytes // MIB
    if not isinstance(memory_mib, Missing) and mib > memory_mib:
        told = f"pid {pid} is said to hold {mib} MiB of a device that has {memory_mib} MiB: left out"
        problems.append(Problem(code="bad-memory", message=told, where=where))
        return Missing("driver: more memory than the device has")
    return mib


def _percent_of(percent: int, pid: int, *, where: str, problems: list[Problem]) -> int | Missing:
    if percent == NOT_AVAILABLE_U32:
        return NOT_GIVEN
    if percent > 100:
        told = f"pid {pid} finished with a utilisation of {percent} %: left out"
        problems.append(Problem(code="bad-utilisation", message=told, where=where))
        return Missing("driver: utilisation over 100 %")
    return percent
