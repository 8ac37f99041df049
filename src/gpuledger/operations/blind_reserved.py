"""What reservations do not tell in a window, sized: the part of ``blind`` that reads lifecycle events.

Devices without a UUID are reserved like any other, and whether two sources reserve the same one cannot be told.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from gpuledger.ledger.reserved import Reading, reading
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import intervals
from gpuledger.model.durations import several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, SECOND_US, hour_floor
from gpuledger.model.reasons import ReservedReason
from gpuledger.model.reserved import Difference, ReservedGap, ReservedTime
from gpuledger.model.rows import Pass
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent
from gpuledger.operations.correct import due

_MISSED_BEATS = 2
"""Heartbeats that may be missing before a source counts as silent: one can be on its way."""


def reserved_gaps(ledger: Ledger, *, since_us: int, until_us: int, now_us: int) -> list[ReservedGap]:
    """Time without a placement, silent sources, devices reserved twice, and differences that no pass books."""
    if isinstance(ledger.last_moment((WorkloadEvent,)), Missing) or since_us >= until_us:
        return []
    with reading(ledger, ledger.marks()) as read:
        read.want_living(hour_floor(since_us), until_us)
        spans = list(_spans(since_us, until_us))
        times = list(read.times(spans, until_us=until_us))
        known = read.placements({time.placement for time in times} - {""})
        gaps = [*_unplaced(times), *_silent(read, times, spans, until_us)]
    gaps += _double(ledger, times, known, since_us=since_us, until_us=until_us)
    gaps += _late(late_differences(ledger, since_us=since_us, until_us=until_us, now_us=now_us))
    return gaps


def late_differences(ledger: Ledger, *, since_us: int, until_us: int, now_us: int) -> list[Difference]:
    """Final hours of a window whose records the events contradict: what ``correct`` would book."""
    return list(due(ledger, list(ledger.scan(Pass)), since_us=since_us, until_us=until_us, now_us=now_us).late)


def _spans(since_us: int, until_us: int) -> Iterator[tuple[int, int]]:
    """A window cut at hours."""
    at_us = since_us
    while at_us < until_us:
        end_us = min(hour_floor(at_us) + HOUR_US, until_us)
        yield at_us, end_us
        at_us = end_us


def _unplaced(times: Iterable[ReservedTime]) -> Iterator[ReservedGap]:
    by_workload: dict[str, list[ReservedTime]] = defaultdict(list)
    for time in times:
        if not time.placement:
            by_workload[time.workload].append(time)
    for workload, found in by_workload.items():
        yield ReservedGap(
            reason=ReservedReason.UNPLACED,
            what=workload,
            seconds=sum(time.amount_us for time in found) // SECOND_US,
            since_us=min(time.hour_us for time in found),
            until_us=max(time.hour_us for time in found) + HOUR_US,
            detail=f"{found[0].source} says that it runs, and not on what",
        )


def _silent(
    read: Reading, times: Sequence[ReservedTime], spans: Sequence[tuple[int, int]], until_us: int
) -> Iterator[ReservedGap]:
    """Time of open workloads after the last heartbeat of their source."""
    silent = {
        source: beat
        for source, beat in read.beats.items()
        if not isinstance(beat, Missing) and beat + _MISSED_BEATS * read.interval_us(source) < until_us
    }
    if not silent:
        return
    counted: dict[tuple[str, int, str, str], int] = {
        (time.workload, time.hour_us, time.placement, time.subject): time.amount_us for time in times
    }
    read.forget_beats()
    missing: dict[str, int] = defaultdict(int)
    workloads: dict[str, set[str]] = defaultdict(set)
    for time in read.times(spans, until_us=until_us):
        more_us = time.amount_us - counted.get((time.workload, time.hour_us, time.placement, time.subject), 0)
        if more_us > 0 and not time.is_declared and time.source in silent:
            missing[time.source] += more_us
            workloads[time.source].add(time.workload)
    for source, amount_us in missing.items():
        yield ReservedGap(
            reason=ReservedReason.CONTROLLER_SILENT,
            what=source,
            seconds=amount_us // SECOND_US,
            since_us=silent[source],
            until_us=until_us,
            detail=f"{several(len(workloads[source]), 'open workload')} since its last heartbeat",
        )


def _double(
    ledger: Ledger,
    times: Iterable[ReservedTime],
    known: dict[str, PlacementRow],
    *,
    since_us: int,
    until_us: int,
) -> Iterator[ReservedGap]:
    """Devices that two sources reserve at the same moment."""
    holders: dict[tuple[str, int], set[tuple[str, str]]] = defaultdict(set)
    for time in times:
        if time.placement and (devices := known[time.placement].devices) != "[]":
            for device in json.loads(devices):
                holders[device, hour_floor(time.hour_us)].add((time.source, time.workload))
    suspects: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for (device, _), found in holders.items():
        if len({source for source, _ in found}) > 1:
            suspects[device] |= found
    if not suspects:
        return
    wanted = {workload for found in suspects.values() for _, workload in found}
    events: dict[str, list[WorkloadEvent]] = defaultdict(list)
    for event in ledger.scan(WorkloadEvent):
        if event.workload in wanted:
            events[event.workload].append(event)
    for device, found in sorted(suspects.items()):
        held: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for source, workload in sorted(found):
            for stay in intervals(events[workload]):
                end_us = until_us if isinstance(stay.until_us, Missing) else stay.until_us
                low_us, high_us = max(stay.since_us, since_us), min(end_us, until_us)
                if low_us < high_us and stay.placement in known and device in known[stay.placement].devices:
                    held[source].append((low_us, high_us))
        overlap = _overlap(held)
        if overlap:
            yield ReservedGap(
                reason=ReservedReason.DOUBLE_SOURCE,
                what=device,
                seconds=sum(end - start for start, end in overlap) // SECOND_US,
                since_us=overlap[0][0],
                until_us=overlap[-1][1],
                detail=f"reserved by {' and '.join(sorted(held))} at once: both are counted",
            )


def _overlap(held: dict[str, list[tuple[int, int]]]) -> list[tuple[int, int]]:
    """The spans in which more than one source holds."""
    edges: list[tuple[int, int, str]] = []
    for source, spans in held.items():
        for start_us, end_us in spans:
            edges += [(start_us, 1, source), (end_us, -1, source)]
    counts: dict[str, int] = defaultdict(int)
    found: list[tuple[int, int]] = []
    since_us: int | None = None
    for at_us, change, source in sorted(edges):
        counts[source] += change
        several = sum(1 for count in counts.values() if count) > 1
        if several and since_us is None:
            since_us = at_us
        elif not several and since_us is not None:
            found.append((since_us, at_us))
            since_us = None
    return found


def _late(differences: Iterable[Difference]) -> Iterator[ReservedGap]:
    by_workload: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    for one in differences:
        by_workload[one.workload, one.meter].append(one)
    for (workload, meter), found in by_workload.items():
        hours = sorted({one.hour_us for one in found})
        yield ReservedGap(
            reason=ReservedReason.LATE_EVIDENCE,
            what=workload,
            seconds=sum(one.derived - one.recorded for one in found),
            since_us=hours[0],
            until_us=hours[-1] + HOUR_US,
            detail=f"{meter}, {several(len(hours), 'final hour')}",
        )
