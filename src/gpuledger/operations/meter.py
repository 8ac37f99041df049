"""``meter``: one metering pass. Closed hours become records, late evidence becomes corrections.

A pass derives the hours that closed since the last one and the hours that new evidence touches, and
no others, so its work does not grow with history; of reserved time :mod:`.meter_reserved` does. Everything
it books goes into one transaction, which goes through only if no other pass was booked since it began: else
it derives again from what now stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from gpuledger.errors import Unavailable
from gpuledger.ledger.store import Ledger
from gpuledger.metering.derive import derive
from gpuledger.metering.records import closed_until, compare
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, hour_floor
from gpuledger.model.outcomes import MeterReport
from gpuledger.model.rows import (
    DriverRecord,
    Pass,
    Row,
    Sighting,
    UsageCorrection,
    UsageRecord,
    Watch,
)
from gpuledger.operations.evidence import covered_spans, is_covered, load_evidence, of_processes
from gpuledger.operations.meter_reserved import meter_reserved
from gpuledger.operations.touched import touched_hours

_TRIES = 5
"""How often a pass that another overtook begins anew."""

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
    for _ in range(_TRIES):
        report = _pass(ledger, now_us=now_us, writer=writer, progress=progress)
        if report is not None:
            return report
    raise Unavailable(
        "passes-collide", f"{_TRIES} passes in a row were overtaken by others", hint="gpuledger meter   (again, later)"
    )


def _pass(
    ledger: Ledger, *, now_us: int, writer: str, progress: Callable[[int, int], None] | None
) -> MeterReport | None:
    """One try: None when another pass was booked while this one derived, so that what it derived is old."""
    passes = list(ledger.scan(Pass))
    spans = covered_spans(passes)
    marks = ledger.marks()
    closed_us = closed_until(now_us)
    hours = touched_hours(ledger, passes, marks)
    if passes:
        # what earlier passes had seen of hours that were open then: with --now, or a clock set back, many
        latest_us = ledger.last_moment((DriverRecord, Sighting, Watch))
        seen_us = max(row.at_us for row in passes)
        seen_us = seen_us if isinstance(latest_us, Missing) else max(seen_us, latest_us)
        hours |= set(range(spans[-1][1], min(hour_floor(seen_us) + HOUR_US, closed_us), HOUR_US))
    hours = {hour for hour in hours if hour < closed_us or is_covered(spans, hour)}
    if hours and not (spans and spans[0][0] <= min(hours)):
        # no hour before all evidence; the first hour ever closed is not, so a later pass need not look for it
        first_us, _ = ledger.span_of((DriverRecord, Sighting, Watch))
        from_us = closed_us if isinstance(first_us, Missing) else hour_floor(first_us)
        hours = {hour for hour in hours if from_us <= hour}
    open_us = spans[-1][1] if spans else min(hours, default=closed_us)
    reserved = meter_reserved(ledger, passes, marks, now_us=now_us)
    booked: list[Row] = [*reserved.booking.records, *reserved.booking.corrections]
    done = 0
    for chunk in _chunks(sorted(hours)):
        booked += _book(ledger, chunk, marks, spans, recorded_at_us=now_us)
        done += len(chunk)
        if progress is not None:
            progress(done, len(hours))
    reserved_from = () if isinstance(reserved.from_us, Missing) else (reserved.from_us,)
    covered_from_us = min([open_us, *reserved_from, *(hour for hour in hours if not is_covered(spans, hour))])
    covered_until_us = max(open_us, closed_us)
    if covered_from_us == covered_until_us and not booked:
        return MeterReport(
            at_us=now_us,
            covered_from_us=open_us,
            covered_until_us=open_us,
            hours_derived=len(hours),
            open_from_us=open_us,
            late=len(reserved.booking.late),
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
    appended = ledger.append_if(
        lambda: ledger.count(Pass) == len(passes), [*records, *corrections, this], writer=writer, at_us=now_us
    )
    if appended is None:
        return None
    return MeterReport(
        at_us=now_us,
        covered_from_us=covered_from_us,
        covered_until_us=covered_until_us,
        hours_derived=len(hours),
        records=tuple(row for row in appended.added if isinstance(row, UsageRecord)),
        corrections=tuple(row for row in appended.added if isinstance(row, UsageCorrection)),
        open_from_us=covered_until_us,
        problems=appended.conflicts,
        late=len(reserved.booking.late),
    )


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
    recorded = of_processes(ledger.scan(UsageRecord, since_us=since_us, until_us=until_us), wanted)
    corrected = of_processes(ledger.scan(UsageCorrection, since_us=since_us, until_us=until_us), wanted)
    records, corrections = compare(
        derived,
        recorded,
        corrected,
        covered_hours=lambda hour_us: is_covered(spans, hour_us),
        recorded_at_us=recorded_at_us,
        watches=evidence.watches,
    )
    return [*records, *corrections]
