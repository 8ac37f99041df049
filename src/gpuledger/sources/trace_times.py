"""The times of a trace: epoch numbers, counts from an origin, ISO 8601, or a spreadsheet's own pattern.

In: a cell's text and how the trace writes times. Out: microseconds UTC, exactly; two of them where a
local clock showed that time twice. Digits beyond the microsecond are cut off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpuledger.model.moments import DAY_US, HOUR_US, LATEST_US, MINUTE_US, SECOND_US, to_us

COUNTED: dict[str, int | Fraction] = {
    "s": SECOND_US, "ms": 1000, "us": 1, "ns": Fraction(1, 1000), "min": MINUTE_US, "h": HOUR_US, "d": DAY_US,
}  # fmt: skip
"""Units of times and durations that are numbers, in microseconds."""

CLOCK = "clock"
"""Durations written as a clock shows them: ``1:30:00``, ``1-02:03:04``, ``1 day, 2:03:04``."""

LASTING = (*COUNTED, CLOCK)
"""Units of durations."""

ISO = "iso"
"""Times written as ISO 8601."""

PLAUSIBLE_US = 946_684_800 * SECOND_US
"""The year 2000: no GPU computed before it, so an earlier time is a count from an origin not declared."""

_NUMBER = re.compile(r"(-?)([0-9]{1,20})(?:\.([0-9]{0,40}))?([eE][+-]?[0-9]{1,2})?")
_SPAN = re.compile(
    r"(?:(?P<days>[0-9]{1,6})(?:-| days?,? ))?(?P<hours>[0-9]{1,9}):(?P<minutes>[0-5]?[0-9]):(?P<seconds>[0-5]?[0-9])"
    r"(?:\.(?P<rest>[0-9]{0,40}))?"
)
_UTC = re.compile(r" ?(?:UTC|GMT)$")


class ZoneNeeded(ValueError):
    """A local time, and nothing says of which zone."""


class Skipped(ValueError):
    """A local time that the clocks of its zone never showed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How a trace writes its times.

    Args:
        unit: ``s``, ``ms`` or ``us`` of a count, ``iso``, or a pattern of ``strptime``, ``%d.%m.%Y %H:%M``.
        zone: of times that carry none; None where none was declared.
        origin_us: what a count counts from, microseconds UTC; None where none was declared: from 1970.
        repeated_hour: ``first`` or ``second``: which of the two is meant when clocks were set back;
            empty where it was not declared.
        decimal_comma: numbers are written ``1,5``.
    """

    unit: str = "s"
    zone: tzinfo | None = None
    origin_us: int | None = None
    repeated_hour: str = ""
    decimal_comma: bool = False

    def read(self, text: str) -> tuple[int, ...]:
        """The moments that a time can be, microseconds UTC: one, or two where it was shown twice, in their order.

        Raises:
            ZoneNeeded: it is local, and no zone was declared.
            Skipped: it is local, and its zone never had it.
            ValueError: it is no time; with a sentence for the person.
        """
        if self.unit in COUNTED:
            # an origin before 1970 is as good as any; what counts is where the sum lies
            moments: tuple[int, ...] = ((self.origin_us or 0) + self.lasting(text, self.unit),)
        else:
            moments = self._written(text)
        if not 0 <= moments[0] < LATEST_US:
            raise ValueError(f"{_shown(text)} lies outside 1970 to 2999; is the unit of times right?")
        return moments

    def lasting(self, text: str, unit: str) -> int:
        """Whole microseconds of a number in a unit of :data:`COUNTED`, or of a duration in one of :data:`LASTING`.

        Raises:
            ValueError: it is no number, or below 0; with a sentence for the person.
        """
        if unit == CLOCK:
            return self._clock(text)
        match = _NUMBER.fullmatch(text.replace(",", ".") if self.decimal_comma else text)
        if match is None:
            raise ValueError(f"{_shown(text)} is not a number of {unit}")
        sign, whole, rest, power = match.groups()
        if sign:
            raise ValueError(f"{_shown(text)} is negative")
        each_us = COUNTED[unit]
        if power or not isinstance(each_us, int):
            return int(Fraction(f"{whole}.{rest or 0}{power or ''}") * each_us)
        return int(whole) * each_us + (int(rest) * each_us // int(10 ** len(rest)) if rest else 0)

    def _clock(self, text: str) -> int:
        found = _SPAN.fullmatch(text.replace(",", ".", 1) if self.decimal_comma else text)
        if found is None:
            raise ValueError(f"{_shown(text)} is not a duration written as 1:30:00, 1-02:03:04 or 1 day, 2:03:04")
        days, hours, minutes, seconds = (int(found[part] or 0) for part in ("days", "hours", "minutes", "seconds"))
        rest = Fraction(int(found["rest"] or 0), 10 ** len(found["rest"] or ""))
        return ((days * 24 + hours) * 60 + minutes) * MINUTE_US + int((seconds + rest) * SECOND_US)

    def _written(self, text: str) -> tuple[int, ...]:
        try:
            # a time without a zone stays so until the declared one is put to it
            if self.unit == ISO:
                moment = datetime.fromisoformat(_UTC.sub("Z", text))
            else:
                moment = datetime.strptime(text, self.unit)  # noqa: DTZ007
        except ValueError:
            wanted = "as 2026-11-29T14:00:00Z" if self.unit == ISO else f"as {self.unit}"
            raise ValueError(f"{_shown(text)} is not a time written {wanted}") from None
        try:
            if moment.tzinfo is not None:
                return (to_us(moment),)
            return self._local(text, moment)
        except OverflowError:
            raise ValueError(f"{_shown(text)} is no time of any calendar") from None

    def _local(self, text: str, moment: datetime) -> tuple[int, ...]:
        if self.zone is None:
            raise ZoneNeeded(f"{_shown(text)} is a local time, and nothing says of which zone")
        first_us = to_us(moment.replace(tzinfo=self.zone, fold=0))
        second_us = to_us(moment.replace(tzinfo=self.zone, fold=1))
        if first_us == second_us:
            return (first_us,)
        if first_us > second_us:  # PEP 495: in the gap the offsets stand in the other order
            raise Skipped(f"{_shown(text)} was skipped by the clocks of {self.zone}")
        if self.repeated_hour:
            return (first_us if self.repeated_hour == "first" else second_us,)
        return (first_us, second_us)


def is_pattern(unit: str) -> bool:
    """Whether a unit is a pattern of ``strptime`` that reads what it writes.

    ``%Z`` is none: names such as IST mean several zones, and Python drops them. Written as plain letters
    (``%H:%M PST``) they are matched, and the zone is declared.
    """
    if "%" not in unit or "%Z" in unit:
        return False
    try:
        datetime.strptime(datetime(2026, 11, 29, tzinfo=UTC).strftime(unit), unit)  # noqa: DTZ007 - only tried
    except (ValueError, re.error):  # re: a directive that stands twice
        return False
    return True


def zone_named(name: str) -> tzinfo:
    """The zone of a name such as ``Europe/Berlin``.

    Raises:
        ValueError: there is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{_shown(name)} is not a time zone") from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:39]}…")
