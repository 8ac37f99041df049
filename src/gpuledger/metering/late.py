"""Late evidence: which hours new rows can have changed, so that a pass re-derives those and no others.

In: rows that a pass has not seen. Out: hours.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpuledger.metering.stints import look_span
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, MINUTE_US, hour_floor
from gpuledger.model.rows import DriverRecord, Row, Sighting, Watch

NEAR_US = 10 * MINUTE_US
"""A death, a birth or a look decides names within seconds of itself; ten minutes are more than any tolerance."""


def dirty_hours(rows: Iterable[Row]) -> set[int]:
    """Starts of the UTC hours whose quantities the spans of new rows touch.

    A driver row touches its whole span, a sighting and a naming watch their own. A sighting need not
    touch all time since its context began: the sightings of one context follow each other from the
    driver's start of it, so what is older was told by older rows, and a context that has lived for a month
    costs a pass no month. What it says of its pid can decide the name of a context close by, hence
    :data:`NEAR_US` around it. An identity has no span of its own: give the rows that it can name.
    """
    hours: set[int] = set()
    for row in rows:
        match row:
            case DriverRecord():
                since_us, until_us = _row_span(row)
                hours.update(_hours(since_us - NEAR_US, until_us + NEAR_US))
            case Sighting():
                since_us, until_us = look_span(row)
                hours.update(_hours(since_us - NEAR_US, until_us + NEAR_US))
            case Watch(source="process"):
                hours.update(_hours(row.since_us, row.until_us))
            case _:
                pass  # identities are joined by pid; devices and driver watches change no quantity
    return hours


def _row_span(row: DriverRecord) -> tuple[int, int]:
    length_us = row.context_ms * 1000
    if isinstance(row.started_at_us, Missing):
        return (row.read_at_us - length_us, row.read_at_us)
    return (row.started_at_us, row.started_at_us + length_us)


def _hours(since_us: int, until_us: int) -> range:
    return range(hour_floor(since_us), max(until_us, since_us + 1), HOUR_US)
