"""``meter``: one metering pass. Closed hours become records, late evidence becomes corrections.

A pass derives the hours that closed since the last one and the hours that new evidence touches, and
no others, so its work does not grow with history. Everything it books goes into one transaction;
two passes at once book each difference once, since the keys of records and corrections are unique.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace

from gpuledger.ledger.store import Ledger
from gpuledger.metering.derive import derive
from gpuledger.metering.late import dirty_hours
from gpuledger.metering.records import closed_until, compare
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US, hour_floor
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
from gpuledger.operations.evidence import covered_spans, end_of, load_evidence

_LONG_MS = 2 * HOUR_US // 1000
_TOLERANCE_US = 2_000_000
_ALWAYS_US = 0

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
    closed_us = closed_until(now_us)
    hours = _touched(ledger, seen_marks, marks)
    if last is not None:
        # what the last pass had seen of hours that were open then: with --now, or a clock set back, many
        _, latest_us = ledger.span_of((DriverRecord, Sighting, Watch))
        seen_us = last.at_us if isinstance(latest_us, Missing) else max(last.at_us, latest_us)
        hours |= set(range(spans[-1][1], min(hour_floor(seen_us) + HOUR_US, closed_us), HOUR_US))
    first_us, _ = ledger.span_of((DriverRecord, Sighting, Watch))
    from_us = closed_us if isinstance(first_us, Missing) else hour_floor(first_us)
    hours = {hour for hour in hours if from_us <= hour < closed_us}
    open_us = spans[-1][1] if spans else min(hours, default=closed_us)
    booked: list[Row] = []
    done = 0
    for chunk in _chunks(sorted(hours)):
        booked += _book(ledger, chunk, marks, spans, recorded_at_us=now_us)
        done += len(chunk)
        if progress is not None:
            progress(done, len(hours))
    covered_from_us = min([open_us, *(hour for hour in hours if not _is_covered(spans, hour))])
    covered_until_us = max(open_us, closed_us)
    if covered_from_us == covered_until_us and not booked:
        return MeterReport(
            at_us=now_us,
            covered_from_us=open_us,
            covered_until_us=open_us,
            hours_derived=len(hours),
            open_from_us=open_us,
        )
    records = [row for row in booked if isinstance(row, UsageRecord)]
    corrections = [row for row in booked if isinstance(row, UsageCorrection)]
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
        open_from_us=covered_until_us,
        problems=appended.conflicts,
    )


def _touched(ledger: Ledger, seen_marks: dict[str, int], marks: dict[str, int]) -> set[int]:
    """Starts of the hours that evidence newer than the last pass touches."""
    hours = dirty_hours(_unproven(ledger, ledger.scan(DriverRecord, after=seen_marks, upto=marks)))
    hours |= dirty_hours(ledger.scan(Sighting, after=seen_marks, upto=marks))
    hours |= dirty_hours(ledger.scan(Watch, after=seen_marks, upto=marks))
    hours |= dirty_hours(_renamed(ledger, ledger.scan(ProcessIdentity, after=seen_marks, upto=marks), marks))
    return hours


def _unproven(ledger: Ledger, rows: Iterable[DriverRecord]) -> Iterable[DriverRecord]:
    """Driver rows, long ones cut down to what no look had proven before.

    While a context lived, its looks and the driver's start of it gave the same hours that its row gives
    now. So when a month-old process exits, its last hours are derived again, and not a month of hours.
    """
    for row in list(rows):
        if row.context_ms < _LONG_MS or isinstance(row.started_at_us, Missing):
            yield row
            continue
        end_us = end_of(row)
        looks = ledger.scan(Sighting, pids={(row.host, row.pid)}, since_us=end_us - DAY_US, until_us=end_us)
        proven_us = max(
            (
                look.until_us
                for look in looks
                if look.device == row.device and look.context_started_at_us == row.started_at_us
            ),
            default=row.started_at_us,
        )
        yield replace(row, started_at_us=proven_us, context_ms=max(0, end_us - proven_us) // 1000)


def _renamed(
    ledger: Ledger, identities: Iterable[ProcessIdentity], marks: dict[str, int]
) -> Iterable[DriverRecord | Sighting]:
    """Rows that new identities can name: of their pid, and not over before the process began."""
    born_us: dict[tuple[str, int], int] = {}
    for identity in identities:
        key = (identity.host, identity.pid)
        began = identity.started_at_us
        began_us = _ALWAYS_US if isinstance(began, Missing) else began - _TOLERANCE_US
        born_us[key] = min(began_us, born_us.get(key, began_us))
    if not born_us:
        return
    first_us = min(born_us.values())
    for row in ledger.scan(DriverRecord, pids=set(born_us), since_us=first_us, upto=marks):
        if end_of(row) >= born_us[row.host, row.pid]:
            yield row
    for look in ledger.scan(Sighting, pids=set(born_us), since_us=first_us, upto=marks):
        if look.until_us >= born_us[look.host, look.pid]:
            yield look


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
