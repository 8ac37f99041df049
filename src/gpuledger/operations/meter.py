"""``meter``: one metering pass. Closed hours become records, late evidence becomes corrections.

A pass derives the hours that closed since the last one and the hours that new evidence touches, and
no others, so its work does not grow with history; of reserved time :mod:`.meter_reserved` does. What it books goes
into one transaction, or of a long backlog into a few, one after the other in the order of time, each with a row of its
own that says what it covers. A transaction goes through only if no other pass was booked since it began: else the pass
derives again from what now stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from gpuledger.errors import Unavailable
from gpuledger.ledger.appending import Appended
from gpuledger.ledger.reserved import Reading
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.stored_rows import StoredRows
from gpuledger.metering.derive import derive
from gpuledger.metering.records import closed_until, compare
from gpuledger.model.durations import several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, hour_floor
from gpuledger.model.outcomes import MeterReport
from gpuledger.model.problem import Problem
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
from gpuledger.operations.meter_reserved import ReservedPart, reserved_parts
from gpuledger.operations.reserved_windows import MakeReading
from gpuledger.operations.touched import touched

_TRIES = 5
"""How often a pass that another overtook begins anew."""

_CHUNK_HOURS = 24
"""Hours derived at a time: a day of a busy box fits into memory with room to spare."""


def meter(
    ledger: Ledger, *, now_us: int, writer: str, progress: Callable[[int, int], None] | None = None,
    make: MakeReading = Reading,
) -> MeterReport:  # fmt: skip
    """Run one pass for the time ``now_us``.

    Args:
        ledger: open for appending.
        writer: chain to write to, ``HOST.meter``.
        progress: called with hours done and hours in all.
        make: makes the readings of reserved time that closed, where the rule runs on another engine.
    """
    run = _Run(ledger, writer=writer, now_us=now_us)
    for _ in range(_TRIES):
        if _pass(ledger, run, now_us=now_us, writer=writer, progress=progress, make=make):
            return run.report()
    raise Unavailable(
        "passes-collide", f"{_TRIES} passes in a row were overtaken by others", hint="gpuledger meter   (again, later)"
    )


class _Run:
    """What one call has booked so far."""

    def __init__(self, ledger: Ledger, *, writer: str, now_us: int) -> None:
        self._ledger = ledger
        self._writer = writer
        self._now_us = now_us
        self._records: list[range] = []
        self._corrections: list[UsageCorrection] = []
        self._problems: list[Problem] = []
        self._covered: list[tuple[int, int]] = []
        self.open_from_us = 0
        self.late = 0
        self.hours = 0
        self.reserved_hours = 0
        self.archived = 0

    def booked(self, appended: Appended, row: Pass) -> None:
        """A transaction that is committed: records, then corrections, then the pass itself."""
        self._problems += appended.conflicts
        corrections = [each for each in appended.added if isinstance(each, UsageCorrection)]
        self._corrections += corrections
        first, last = appended.numbers.start, appended.numbers.stop - 1 - len(corrections)
        self._records.append(range(first, last))
        self._covered.append((row.covered_from_us, row.covered_until_us))
        self.open_from_us = row.covered_until_us

    def report(self) -> MeterReport:
        """What the call did."""
        return MeterReport(
            at_us=self._now_us,
            covered_from_us=min((since_us for since_us, _ in self._covered), default=self.open_from_us),
            covered_until_us=max((until_us for _, until_us in self._covered), default=self.open_from_us),
            hours_derived=self.hours,
            reserved_hours_derived=self.reserved_hours,
            records=StoredRows(self._ledger, UsageRecord, self._writer, self._records),
            corrections=tuple(self._corrections),
            open_from_us=self.open_from_us,
            problems=(*self._problems, *self._too_late()),
            late=self.late,
        )

    def _too_late(self) -> Iterable[Problem]:
        if self.archived:
            message = (
                f"evidence came for {several(self.archived, 'hour')} whose evidence is archived: they stay as recorded"
            )
            yield Problem(code="archived", message=message, where="meter")


def _pass(
    ledger: Ledger, run: _Run, *, now_us: int, writer: str, progress: Callable[[int, int], None] | None,
    make: MakeReading,
) -> bool:  # fmt: skip
    """One try: False when another pass was booked while this one derived, so that what it derived is old."""
    passes = list(ledger.scan(Pass))
    spans = covered_spans(passes)
    marks = ledger.marks()
    closed_us = closed_until(now_us)
    hours = _hours_of_processes(ledger, run, passes, spans, marks, closed_us)
    open_us = spans[-1][1] if spans else min(hours, default=closed_us)
    run.open_from_us, run.late, run.hours, run.reserved_hours = open_us, 0, len(hours), 0
    left = sorted(hours)
    booked_before = 0
    since_us = min([open_us, *(hour for hour in hours if not is_covered(spans, hour))])
    for part in reserved_parts(ledger, passes, marks, now_us=now_us, make=make):
        run.late += len(part.booking.late)
        run.reserved_hours += part.hours
        is_last = part.until_us >= max(open_us, closed_us)
        due = left if is_last else [hour for hour in left if hour < part.until_us]
        left = left[len(due) :]
        booked: list[Row] = [*part.booking.records, *part.booking.corrections]
        for chunk in _chunks(due):
            booked += _book(ledger, chunk, marks, spans, recorded_at_us=now_us)
            if progress is not None and len(chunk):
                progress(len(hours) - len(left) - len(due) + due.index(chunk[-1]) + 1, len(hours))
        reserved_from = () if isinstance(part.from_us, Missing) else (part.from_us,)
        row, rows = _pass_row(
            part,
            booked,
            covered_from_us=min([since_us, *reserved_from]),
            covered_until_us=max(open_us, closed_us) if is_last else max(part.until_us, spans[-1][1] if spans else 0),
            marks=marks,
            now_us=now_us,
        )
        if row is None:
            continue
        expected = len(passes) + booked_before
        ready = None if isinstance(part.ready, Missing) else part.ready
        appended = ledger.append_if(
            lambda expected=expected: ledger.count(Pass) == expected,  # type: ignore[misc]
            rows, writer=writer, at_us=now_us, ready=ready,
        )  # fmt: skip
        if appended is None:
            return False
        booked_before += 1
        run.booked(appended, row)
        since_us = row.covered_until_us
    return True


def _hours_of_processes(
    ledger: Ledger, run: _Run, passes: list[Pass], spans: list[tuple[int, int]], marks: dict[str, int], closed_us: int
) -> set[int]:
    """The hours whose records of processes are derived: those that closed, and those that new evidence touches."""
    hours, archived = touched(ledger, passes, marks)
    run.archived = len(archived)
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
    return hours


def _pass_row(
    part: ReservedPart, booked: list[Row], *, covered_from_us: int, covered_until_us: int, marks: dict[str, int],
    now_us: int,
) -> tuple[Pass | None, list[Row]]:  # fmt: skip
    """The row of one transaction of a pass, and all rows that go with it; None where there is nothing to say."""
    ready = 0 if isinstance(part.ready, Missing) else part.ready.count
    if covered_from_us == covered_until_us and not booked and not ready:
        return None, []
    records = [row for row in booked if isinstance(row, UsageRecord)]
    corrections = [row for row in booked if isinstance(row, UsageCorrection)]
    row = Pass(
        at_us=now_us,
        covered_from_us=covered_from_us,
        covered_until_us=covered_until_us,
        evidence_marks=json.dumps(marks, sort_keys=True),
        records_added=len(records) + ready,
        corrections_added=len(corrections),
    )
    return row, [*records, *corrections, row]


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
