"""``meter``: one metering pass. Closed hours become records, late evidence becomes corrections.

A pass derives the hours that closed since the last one and the hours that new evidence touches, and
no others, so its work does not grow with history. Everything it books goes into one transaction;
two passes at once book each difference once, since the keys of records and corrections are unique.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from gpuledger.ledger.store import Ledger
from gpuledger.metering.derive import derive
from gpuledger.metering.late import dirty_hours, touched_pids
from gpuledger.metering.records import closed_until, compare
from gpuledger.model.moments import HOUR_US, hour_floor
from gpuledger.model.outcomes import MeterReport
from gpuledger.model.rows import (
    DriverRecord,
    Pass,
    ProcessIdentity,
    Row,
    Sighting,
    UsageCorrection,
    UsageRecord,
    Watch,
)
from gpuledger.operations.evidence import covered_spans, load_evidence

_CHUNK_HOURS = 24
"""Hours derived at a time: a day of a busy box fits into memory with room to spare."""


def meter(
    ledger: Ledger, *, now_us: int, writer: str, progress: Callable[[int, int], None] | None = None
) -> MeterReport:
    """Run one pass for the time ``now_us``.

    Args:
        ledger: open for appending.
        writer: chain to write to, ``HOST.meter``.
        progress: called with hours done and hours in all.
    """
    passes = list(ledger.scan(Pass))
    last = max(passes, key=lambda row: (row.at_us, row.covered_until_us), default=None)
    spans = covered_spans(passes)
    seen_marks: dict[str, int] = json.loads(last.evidence_marks) if last else {}
    marks = ledger.marks()
    hours = _hours_to_derive(ledger, seen_marks, marks, spans, closed_us=closed_until(now_us))
    if not hours:
        open_us = spans[-1][1] if spans else hour_floor(now_us)
        return MeterReport(
            at_us=now_us, covered_from_us=open_us, covered_until_us=open_us, hours_derived=0, records=(),
            corrections=(), open_from_us=open_us,
        )  # fmt: skip
    booked: list[Row] = []
    done = 0
    for chunk in _chunks(sorted(hours)):
        booked += _book(ledger, chunk, marks, spans, recorded_at_us=now_us)
        done += len(chunk)
        if progress is not None:
            progress(done, len(hours))
    fresh = [hour for hour in hours if not _is_covered(spans, hour)]
    covered_from_us = min(fresh, default=spans[-1][1] if spans else 0)
    covered_until_us = max(fresh, default=covered_from_us - HOUR_US) + HOUR_US
    records = [row for row in booked if isinstance(row, UsageRecord)]
    corrections = [row for row in booked if isinstance(row, UsageCorrection)]
    if not fresh and not booked:
        return MeterReport(
            at_us=now_us, covered_from_us=covered_from_us, covered_until_us=covered_from_us,
            hours_derived=len(hours), records=(), corrections=(), open_from_us=spans[-1][1],
        )  # fmt: skip
    this = Pass(
        at_us=now_us,
        covered_from_us=covered_from_us,
        covered_until_us=covered_until_us,
        evidence_marks=json.dumps(marks, sort_keys=True),
        records_added=len(records),
        corrections_added=len(corrections),
    )
    appended = ledger.append([*records, *corrections, this], writer=writer, at_us=now_us)
    return MeterReport(
        at_us=now_us,
        covered_from_us=covered_from_us,
        covered_until_us=covered_until_us,
        hours_derived=len(hours),
        records=tuple(row for row in appended.added if isinstance(row, UsageRecord)),
        corrections=tuple(row for row in appended.added if isinstance(row, UsageCorrection)),
        open_from_us=max(covered_until_us, spans[-1][1] if spans else 0),
        problems=appended.conflicts,
    )


def _hours_to_derive(
    ledger: Ledger,
    seen_marks: dict[str, int],
    marks: dict[str, int],
    spans: list[tuple[int, int]],
    *,
    closed_us: int,
) -> set[int]:
    """Starts of the closed hours that new evidence touches, and of those that closed since the last pass."""
    hours: set[int] = set()
    for kind in (DriverRecord, Sighting, Watch):
        hours |= dirty_hours(ledger.scan(kind, after=seen_marks, upto=marks))
    named = touched_pids(ledger.scan(ProcessIdentity, after=seen_marks, upto=marks))
    if named:
        hours |= dirty_hours(ledger.scan(DriverRecord, pids=named, upto=marks))
        hours |= dirty_hours(ledger.scan(Sighting, pids=named, upto=marks))
    hours = {hour for hour in hours if hour < closed_us}
    if spans or hours:
        first_us = spans[-1][1] if spans else min(hours)
        hours |= set(range(first_us, closed_us, HOUR_US))
    return hours


def _chunks(hours: list[int]) -> Iterable[list[int]]:
    """Hours in runs that lie within one day's width, so that evidence is loaded once for each run."""
    chunk: list[int] = []
    for hour in hours:
        if chunk and hour - chunk[0] >= _CHUNK_HOURS * HOUR_US:
            yield chunk
            chunk = []
        chunk.append(hour)
    if chunk:
        yield chunk


def _book(
    ledger: Ledger,
    hours: list[int],
    marks: dict[str, int],
    spans: list[tuple[int, int]],
    *,
    recorded_at_us: int,
) -> list[Row]:
    since_us, until_us = hours[0], hours[-1] + HOUR_US
    wanted = set(hours)
    evidence = load_evidence(ledger, since_us=since_us, until_us=until_us, upto=marks)
    derived = [found for found in derive(evidence, since_us=since_us, until_us=until_us) if found.hour_us in wanted]
    recorded = [row for row in ledger.scan(UsageRecord, since_us=since_us, until_us=until_us) if row.hour_us in wanted]
    corrected = [
        row for row in ledger.scan(UsageCorrection, since_us=since_us, until_us=until_us) if row.hour_us in wanted
    ]
    records, corrections = compare(
        derived,
        recorded,
        corrected,
        covered_hours=lambda hour_us: _is_covered(spans, hour_us),
        recorded_at_us=recorded_at_us,
        watches=evidence.watches,
    )
    return [*records, *corrections]


def _is_covered(spans: Iterable[tuple[int, int]], hour_us: int) -> bool:
    return any(since_us <= hour_us < until_us for since_us, until_us in spans)
