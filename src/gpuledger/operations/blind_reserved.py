"""What reservations do not tell in a window, sized: the part of ``blind`` that reads lifecycle events.

What is in doubt because of who tells it, or of what, stands in :mod:`.blind_controllers`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from gpuledger.ledger.reserved import Reading, reading
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import MISSED_BEATS, is_hour_over
from gpuledger.model.durations import duration_s, several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, SECOND_US, hour_floor
from gpuledger.model.reasons import ReservedReason
from gpuledger.model.reserved import Difference, ReservedGap
from gpuledger.model.rows import Pass
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.blind_controllers import clock_skews, clock_steps, passed_through
from gpuledger.operations.correct import due


def reserved_gaps(ledger: Ledger, *, since_us: int, until_us: int, now_us: int) -> list[ReservedGap]:
    """Time without a placement, silent sources, devices reserved twice or unseen, clocks that are off, and differences
    that no pass books."""
    if isinstance(ledger.last_moment((WorkloadEvent,)), Missing) or since_us >= until_us:
        return []
    with reading(ledger, ledger.marks()) as read:
        silent = _silent_sources(read, until_us)
        sources = read.sources()
        several_sources = len(sources) > 1
        if silent or several_sources:
            read.want_living(hour_floor(since_us), until_us)
        else:
            read.want_doubtful(hour_floor(since_us), until_us)
        if any(sources.values()):
            read.want_living(until_us, until_us)
        read.derive((), until_us=until_us, cut=False)
        gaps = [*_unplaced(read, since_us, until_us), *_silent(read, silent, since_us, until_us)]
        gaps += _double(read, since_us, until_us) if several_sources else ()
    gaps += clock_skews(ledger, since_us=since_us, until_us=until_us)
    gaps += clock_steps(ledger, since_us=since_us, until_us=until_us)
    gaps += passed_through(ledger, since_us=since_us, until_us=until_us)
    gaps += _late(late_differences(ledger, since_us=since_us, until_us=until_us, now_us=now_us))
    return gaps


def late_differences(ledger: Ledger, *, since_us: int, until_us: int, now_us: int) -> list[Difference]:
    """Final hours of a window whose records the events contradict: what ``correct`` would book."""
    passes = list(ledger.scan(Pass))
    return list(due(ledger, passes, ledger.marks(), since_us=since_us, until_us=until_us, now_us=now_us).late)


def _unplaced(read: Reading, since_us: int, until_us: int) -> Iterator[ReservedGap]:
    """Time of workloads that run, nobody knows where; between the hours in which it lies."""
    by_workload: dict[str, list[tuple[int, int]]] = defaultdict(list)
    sources: dict[str, str] = {}
    for held in read.held(since_us, until_us, {""}):
        low_us, high_us = max(held.since_us, since_us), min(held.counted_us, until_us)
        if low_us < high_us:
            by_workload[held.workload].append((low_us, high_us))
            sources.setdefault(held.workload, held.source)
    for workload, found in by_workload.items():
        yield ReservedGap(
            reason=ReservedReason.UNPLACED,
            what=workload,
            seconds=sum(high_us - low_us for low_us, high_us in found) // SECOND_US,
            since_us=max(hour_floor(min(low_us for low_us, _ in found)), since_us),
            until_us=max(hour_floor(max(high_us for _, high_us in found) - 1), since_us) + HOUR_US,
            detail=f"{sources[workload]} says that it runs, and not on what",
        )


def _silent_sources(read: Reading, until_us: int) -> dict[str, int]:
    """Sources that had beaten, and did not in time for a moment: until when each was heard."""
    return {
        source: beat
        for source, beat in read.beats.items()
        if not isinstance(beat, Missing) and beat + MISSED_BEATS * read.interval_us(source) < until_us
    }


def _silent(read: Reading, silent: Mapping[str, int], since_us: int, until_us: int) -> Iterator[ReservedGap]:
    """Time of open workloads after the last heartbeat of their source, or after all that a history tells.

    A source that was imported promises no next time, so the hour in which it was is left to it.
    """
    beating = {source for source in read.beats if read.interval_us(source)}
    missing: dict[str, int] = defaultdict(int)
    begun: dict[str, int] = {}
    workloads: dict[str, set[str]] = defaultdict(set)
    for held in read.held(since_us, until_us):
        if not held.is_open:
            continue
        told_us = max(held.since_us, held.counted_us)
        if held.is_declared and held.source not in beating:
            is_silent = is_hour_over(told_us, until_us)
        else:
            is_silent = held.source in silent
        from_us = max(told_us, since_us)
        if is_silent and from_us < until_us:
            missing[held.source] += until_us - from_us
            begun[held.source] = min(told_us, begun.get(held.source, told_us))
            workloads[held.source].add(held.workload)
    for source, amount_us in missing.items():
        last = "its last heartbeat" if source in beating else "the last that was told of it"
        yield ReservedGap(
            reason=ReservedReason.CONTROLLER_SILENT,
            what=source,
            seconds=amount_us // SECOND_US,
            since_us=silent.get(source, begun[source]),
            until_us=until_us,
            detail=f"{several(len(workloads[source]), 'open workload')} since {last}",
        )


def _double(read: Reading, since_us: int, until_us: int) -> Iterator[ReservedGap]:
    """Devices that two sources reserve at the same moment."""
    known = read.placements(read.placed())
    devices = {key: json.loads(row.devices) for key, row in known.items() if row.devices != "[]"}
    held: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for each in read.held(since_us, until_us, devices):
        low_us, high_us = max(each.since_us, since_us), min(each.end_us, until_us)
        if low_us < high_us:
            for device in devices[each.placement]:
                held[device][each.source].append((low_us, high_us))
    for device, by_source in sorted(held.items()):
        overlap = _overlap(by_source) if len(by_source) > 1 else []
        if overlap:
            yield ReservedGap(
                reason=ReservedReason.DOUBLE_SOURCE,
                what=device,
                seconds=sum(end - start for start, end in overlap) // SECOND_US,
                since_us=overlap[0][0],
                until_us=overlap[-1][1],
                detail=f"reserved by {' and '.join(sorted(by_source))} at once: both are counted",
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
        more = sum(max(0, one.derived - one.recorded) for one in found)
        less = sum(max(0, one.recorded - one.derived) for one in found)
        moved = f": {duration_s(less)} less on one placement or owner, {duration_s(more)} more on another"
        yield ReservedGap(
            reason=ReservedReason.LATE_EVIDENCE,
            what=workload,
            seconds=sum(one.derived - one.recorded for one in found),
            since_us=hours[0],
            until_us=hours[-1] + HOUR_US,
            detail=f"{meter}, {several(len(hours), 'final hour')}{moved if more and less else ''}",
        )
