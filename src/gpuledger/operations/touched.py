"""Which hours have evidence that no pass has seen: a pass derives them again, and a reader at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpuledger.ledger.archived import archived_until
from gpuledger.ledger.store import Ledger
from gpuledger.metering.late import dirty_hours
from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US, DAY_US, HOUR_US
from gpuledger.model.rows import DriverRecord, Pass, ProcessIdentity, Sighting, Watch
from gpuledger.operations.evidence import end_of

_LONG_MS = 2 * HOUR_US // 1000
_ALWAYS_US = 0
HEARTBEATS = "controller"
"""The source of watches that tell of a controller and not of a device."""


def seen_by(passes: Iterable[Pass]) -> dict[str, int]:
    """By writer, the last row that any pass had seen; passes may have run for any time, in any order."""
    seen: dict[str, int] = {}
    for row in passes:
        for writer, number in json.loads(row.evidence_marks).items():
            seen[writer] = max(number, seen.get(writer, 0))
    return seen


def touched_hours(ledger: Ledger, passes: Iterable[Pass], marks: Mapping[str, int]) -> set[int]:
    """Starts of the hours that evidence touches which no pass has seen, and that are not archived.

    Args:
        passes: all that were booked.
        marks: where the evidence ends, by writer.
    """
    return touched(ledger, passes, marks)[0]


def touched(ledger: Ledger, passes: Iterable[Pass], marks: Mapping[str, int]) -> tuple[set[int], set[int]]:
    """As :func:`touched_hours`, and beside them the hours that stay as recorded, for their evidence is archived.

    What is left of it could only say less than what was there when they were recorded.
    """
    seen_marks = seen_by(passes)
    hours = dirty_hours(_unproven(ledger, ledger.scan(DriverRecord, after=seen_marks, upto=marks)))
    hours |= dirty_hours(ledger.scan(Sighting, after=seen_marks, upto=marks))
    looks = ledger.scan(Watch, after=seen_marks, upto=marks)
    hours |= dirty_hours(row for row in looks if row.source != HEARTBEATS)
    hours |= dirty_hours(_renamed(ledger, ledger.scan(ProcessIdentity, after=seen_marks, upto=marks), marks))
    closed_us = archived_until(ledger)
    closed = {hour for hour in hours if hour < closed_us}
    return hours - closed, closed


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
    ledger: Ledger, identities: Iterable[ProcessIdentity], marks: Mapping[str, int]
) -> Iterable[DriverRecord | Sighting]:
    """Rows that new identities can name: of their pid, and not over before the process began."""
    born_us: dict[tuple[str, int], int] = {}
    for identity in identities:
        key = (identity.host, identity.pid)
        began = identity.started_at_us
        began_us = _ALWAYS_US if isinstance(began, Missing) else began - CLOCK_TOLERANCE_US
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
