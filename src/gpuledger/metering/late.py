"""Late evidence: which hours new rows can have changed, so that a pass re-derives those and no others.

In: rows that a pass has not seen. Out: hours, and the pids whose contexts can have got another name.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from gpuledger.metering.stints import TOLERANCE_US, look_span
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, hour_floor
from gpuledger.model.quantities import Context
from gpuledger.model.rows import DriverRecord, ProcessIdentity, Row, Sighting, Watch


def dirty_hours(rows: Iterable[Row]) -> set[int]:
    """Starts of the UTC hours whose quantities the spans of new rows touch.

    A driver row touches its whole span, a sighting and a naming watch their own. A sighting need not
    touch all time since its context began: the sightings of one context follow each other from the
    driver's start of it, so what is older was told by older rows, and a context that has lived for a month
    costs a pass no month. An identity has no span of its own, and any row about a pid can change the name
    of its other contexts: add ``hours_of(contexts, touched_pids(rows))``.
    """
    hours: set[int] = set()
    for row in rows:
        match row:
            case DriverRecord():
                since_us, until_us = _row_span(row)
                hours.update(_hours(since_us - TOLERANCE_US, until_us + TOLERANCE_US))
            case Sighting():
                hours.update(_hours(*look_span(row)))
            case Watch(source="process"):
                hours.update(_hours(row.since_us, row.until_us))
            case _:
                pass  # identities are joined by pid; devices and driver watches change no quantity
    return hours


def touched_pids(rows: Iterable[Row]) -> set[tuple[str, int]]:
    """(host, pid) of every row about a process: their contexts can have got another name, or become one."""
    return {(row.host, row.pid) for row in rows if isinstance(row, ProcessIdentity | DriverRecord | Sighting)}


def hours_of(contexts: Iterable[Context], pids: Container[tuple[str, int]]) -> set[int]:
    """Starts of the hours in which contexts of these pids held a device."""
    return {
        hour_us
        for context in contexts
        if (context.host, context.pid) in pids
        for since_us, until_us in context.spans
        for hour_us in _hours(since_us, until_us)
    }


def _row_span(row: DriverRecord) -> tuple[int, int]:
    length_us = row.context_ms * 1000
    if isinstance(row.started_at_us, Missing):
        return (row.read_at_us - length_us, row.read_at_us)
    return (row.started_at_us, row.started_at_us + length_us)


def _hours(since_us: int, until_us: int) -> range:
    return range(hour_floor(since_us), max(until_us, since_us + 1), HOUR_US)
