"""Where periods begin: days, weeks and months of a time zone, as spans of UTC.

Pure: the zone is a value. Its offsets are whole hours, so that every edge is one of the hours of records.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, tzinfo

from gpuledger.model.moments import to_datetime, to_us
from gpuledger.model.quotas import Per


def period_of(at_us: int, per: Per, zone: tzinfo) -> tuple[int, int]:
    """The period that holds a moment, half-open, microseconds UTC; of :attr:`Per.AT_ONCE` the moment twice.

    A day of the zone has 23 or 25 hours where its clock is changed; a week begins on Monday.
    """
    if per is Per.AT_ONCE:
        return at_us, at_us
    today = to_datetime(at_us).astimezone(zone).date()
    if per is Per.DAY:
        first, after = today, today + timedelta(days=1)
    elif per is Per.WEEK:
        first = today - timedelta(days=today.weekday())
        after = first + timedelta(days=7)
    else:
        first = today.replace(day=1)
        after = (first + timedelta(days=31)).replace(day=1)
    return _midnight(first, zone), _midnight(after, zone)


def _midnight(day: date, zone: tzinfo) -> int:
    """When a day begins. Of a midnight that comes twice the first; of one that is skipped the moment after it."""
    return to_us(datetime.combine(day, time(), tzinfo=zone))
