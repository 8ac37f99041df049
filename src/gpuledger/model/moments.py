"""Times: microseconds UTC inside, ISO 8601 outside, hours of the UTC clock for records.

All spans are half-open: ``since`` belongs to them, ``until`` does not.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from gpuledger.errors import Misconfigured
from gpuledger.model.missing import Missing

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 3600 * SECOND_US
DAY_US = 24 * HOUR_US

CLOCK_TOLERANCE_US = 2 * SECOND_US
"""Two clocks that differ by no more are taken to agree, and one that moves by no more was slewed, not set: the driver's
stamp, a look, the start of a process, a controller and its runtime each have their own (DESIGN section 6, Clocks)."""

LATEST_US = 32_503_680_000 * SECOND_US
"""The year 3000: nothing is told of it, and a larger figure is in a smaller unit than was meant."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AGO = re.compile(r"(\d{1,15})([smhdw])")
_AGO_US = {"s": SECOND_US, "m": MINUTE_US, "h": HOUR_US, "d": DAY_US, "w": 7 * DAY_US}
_MONTH = re.compile(r"(\d{4})-(\d{2})")
_TIME_HINT = "use 2026-11-29T14:00:00Z, 2026-11-29, 2026-11, today, yesterday, now, or an age such as 7d, 24h, 30m"


def hour_floor(at_us: int) -> int:
    """The start of the UTC hour that holds ``at_us``, in microseconds."""
    return at_us - at_us % HOUR_US


def day_floor(at_us: int) -> int:
    """The start of the UTC day that holds ``at_us``, in microseconds."""
    return at_us - at_us % DAY_US


def to_us(moment: datetime) -> int:
    """Microseconds since the epoch of an aware datetime; exact, no float."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def to_datetime(at_us: int) -> datetime:
    """The aware UTC datetime of microseconds since the epoch."""
    return _EPOCH + timedelta(microseconds=at_us)


def iso(at_us: int) -> str:
    """ISO 8601 UTC with ``Z``; whole seconds where the moment is one, else as many digits as needed."""
    moment = to_datetime(at_us)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f"{at_us % SECOND_US:06d}".rstrip("0")
    return f"{text}.{fraction}Z" if fraction else f"{text}Z"


def length_us(text: str) -> int | Missing:
    """Microseconds of a length such as ``90m``, ``4h`` or ``7d``; Missing where it is none."""
    found = _AGO.fullmatch(text.strip())
    return int(found[1]) * _AGO_US[found[2]] if found else Missing("no length of time")


def parse_moment(text: str, *, now_us: int) -> int:
    """Microseconds UTC of a time as people type it.

    Takes ISO 8601 (without a zone: UTC), ``today``, ``yesterday``, ``now``, a month ``2026-11`` (its
    first instant), or an age such as ``7d``, ``24h``, ``90m`` before ``now_us``.

    Raises:
        Misconfigured: ``bad-time`` when it is none of these.
    """
    word = text.strip()
    if word == "now":
        return now_us
    if word == "today":
        return day_floor(now_us)
    if word == "yesterday":
        return day_floor(now_us) - DAY_US
    if ago := _AGO.fullmatch(word):
        at_us = now_us - int(ago[1]) * _AGO_US[ago[2]]
        if at_us < 0:
            raise Misconfigured("bad-time", f"{text!r} lies before 1970", hint=_TIME_HINT)
        return at_us
    try:
        if month := _MONTH.fullmatch(word):
            return to_us(datetime(int(month[1]), int(month[2]), 1, tzinfo=UTC))
        moment = datetime.fromisoformat(word)
        return to_us((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC))
    except ValueError:
        raise Misconfigured("bad-time", f"{text!r} is not a time", hint=_TIME_HINT) from None
    except OverflowError:
        raise Misconfigured("bad-time", f"{text!r} lies outside the years 1 to 9999", hint=_TIME_HINT) from None
