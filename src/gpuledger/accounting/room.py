"""When there will be room: of devices by the ends that holders gave, of device-hours with a period that has enough.

Pure: holders, amounts and moments in, a moment out; or why none is known. Nobody is held to the end that they gave, so
each answer holds as long as they keep to it and nobody else comes before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import tzinfo
from fractions import Fraction
from itertools import accumulate
from math import lcm

from gpuledger.accounting.periods import period_of
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, iso
from gpuledger.model.quotas import NEVER_FITS, Holder, Per, Quota, QuotaUse

_SHOWN = 3
_NEVER = 1 << 63

_SHORTEST_US = {Per.DAY: 22 * HOUR_US, Per.WEEK: 166 * HOUR_US, Per.MONTH: (27 * 24 + 22) * HOUR_US}
"""No period is shorter, wherever clocks are changed."""

_MOST_PERIODS = 400
"""How many periods are looked through: days of more than a year, so that each length of a period is among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked for, whenever it may begin.

    Args:
        amount: devices x share.
        length_us: for how long; Missing of who gives no end.
    """

    amount: Fraction
    length_us: int | Missing

    @staticmethod
    def until(ends_us: int | Missing, amount: Fraction, *, at_us: int) -> Wish:
        """What is asked for now by an end: it keeps its length, whenever it may begin."""
        return Wish(amount=amount, length_us=ends_us if isinstance(ends_us, Missing) else max(0, ends_us - at_us))

    def hours(self, since_us: int, until_us: int) -> Fraction:
        """Device-hours of a period, begun at ``since_us``; 0 of who gives no end."""
        if isinstance(self.length_us, Missing):
            return Fraction(0)
        return self.amount * Fraction(min(self.length_us, until_us - since_us), HOUR_US)

    def fits(self, free: Fraction, since_us: int, until_us: int) -> bool:
        """Whether it fits into what is free of a period; who gives no end asks only that something is."""
        if not self.amount:
            return True
        return free > 0 if isinstance(self.length_us, Missing) else self.hours(since_us, until_us) <= free


def still_us(ends_us: int | Missing, since_us: int, until_us: int) -> int:
    """Microseconds of a span until an end; 0 where none was given, or it is over."""
    return 0 if isinstance(ends_us, Missing) else max(0, min(ends_us, until_us) - since_us)


def amount_of(holder: Holder) -> Fraction:
    """What somebody holds; 0 where nobody knows how much."""
    return Fraction(0) if isinstance(holder.amount, Missing) else holder.amount


def first_room(holders: Iterable[Holder], missing: Fraction, *, at_us: int) -> int | Missing:
    """When so much will have been given back, by the ends that holders gave; Missing with who did not say."""
    left, silent = missing, list[Holder]()
    for holder in sorted(holders, key=lambda each: (_end(each, at_us), each.workload)):
        end_us = _end(holder, at_us)
        if end_us == _NEVER:
            silent.append(holder)
            continue
        left -= amount_of(holder)
        if left <= 0:
            return end_us
    return _silence(silent) if any(map(amount_of, silent)) else NEVER_FITS


def last_room(moments: Iterable[int | Missing], *, at_us: int) -> int | Missing:
    """When all of it fits: the last of these; Missing where one is: never goes before not known."""
    last_us, missing = at_us, list[Missing]()
    for moment in moments:
        if isinstance(moment, Missing):
            missing.append(moment)
        else:
            last_us = max(last_us, moment)
    if not missing:
        return last_us
    return NEVER_FITS if NEVER_FITS in missing else Missing("; ".join(dict.fromkeys(each.reason for each in missing)))


def hours_room(
    quota: Quota, holders: Collection[Holder], wish: Wish, *, left: Fraction, at_us: int, from_us: int, zone: tzinfo
) -> int | Missing:
    """The first moment, from one on, at which a quota of device-hours has enough for a wish.

    Hours are not given back: what does not fit into its period waits for the beginning of one in which all of it fits
    beside what holders promised.

    Args:
        quota: of a period.
        holders: everybody whom it counts.
        wish: what is asked for.
        left: device-hours that are neither used nor promised of the period that ``at_us`` lies in.
        at_us: now.
        from_us: the moment; now, or later.
        zone: where periods begin.
    """
    promises = _Promises(holders, at_us=at_us)
    return _hours_room(quota, promises, wish, left=left, at_us=at_us, from_us=from_us, zone=zone)


def joint_room(
    uses: Iterable[QuotaUse], moments: Iterable[int | Missing], wish: Wish, *, at_us: int, zone: tzinfo
) -> int | Missing:
    """The first moment at which all fits at once: every quota, and every device whose moment is given.

    A place that comes free in a later period needs that period's hours, also of a quota that has room now.

    Args:
        uses: of every quota that applies.
        moments: when each device that was named and is full has room.
        wish: what is asked for.
        at_us: now.
        zone: where periods begin.
    """
    uses = list(uses)
    found = last_room([*(use.frees_us for use in uses if not use.fits), *moments], at_us=at_us)
    of_hours = [
        (use.bound.quota, _Promises(use.holders, at_us=at_us), use.left)
        for use in uses
        if use.bound.quota.per is not Per.AT_ONCE
    ]
    for _ in range(_MOST_PERIODS):
        if isinstance(found, Missing):
            return found
        later = [
            _hours_room(quota, promises, wish, left=left, at_us=at_us, from_us=found, zone=zone)
            for quota, promises, left in of_hours
        ]
        if all(moment == found for moment in later):
            return found
        found = last_room(later, at_us=found)
    return Missing(f"not before {iso(at_us if isinstance(found, Missing) else found)}")


class _Promises:
    """What holders will use by the ends that they gave, of any period: summed once, in whole numbers.

    Hundreds of periods may be looked at, and a team may hold thousands.

    Args:
        holders: everybody whom a quota counts.
        at_us: now.
    """

    def __init__(self, holders: Collection[Holder], *, at_us: int) -> None:
        self.silent = [each for each in holders if _end(each, at_us) == _NEVER and amount_of(each)]
        """Who holds, and gave no end or did not keep to it."""
        ends = [(each.ends_us, amount_of(each)) for each in holders if not isinstance(each.ends_us, Missing)]
        ends.sort(reverse=True)
        self._of = lcm(*(amount.denominator for _, amount in ends))
        parts = [amount.numerator * (self._of // amount.denominator) for _, amount in ends]
        self._starts = [-end_us for end_us, _ in ends]  # the last end first, so that they rise
        self._amounts = [0, *accumulate(parts)]
        products = (part * end_us for part, (end_us, _) in zip(parts, ends, strict=True))
        self._products = [0, *accumulate(products)]

    def hours(self, since_us: int, until_us: int) -> Fraction:
        """Device-hours of a period to come."""
        return Fraction(self._after(since_us) - self._after(until_us), self._of * HOUR_US)

    def _after(self, at_us: int) -> int:
        """Device-microseconds after a moment, times the common denominator."""
        number = bisect_right(self._starts, -at_us)
        return self._products[number] - self._amounts[number] * at_us


def _hours_room(
    quota: Quota, promises: _Promises, wish: Wish, *, left: Fraction, at_us: int, from_us: int, zone: tzinfo
) -> int | Missing:
    """:func:`hours_room`, by promises that were summed before."""
    if _is_never(quota, wish):
        return NEVER_FITS
    since_us, until_us = period_of(from_us, quota.per, zone)
    free = left if since_us <= at_us else quota.limit - promises.hours(since_us, until_us)
    meanwhile_us = from_us - max(at_us, since_us)  # who gave no end may use so much of each device, or nothing
    doubtful = sum(map(amount_of, promises.silent), Fraction(0)) * Fraction(meanwhile_us, HOUR_US)
    if wish.fits(free - doubtful, from_us, until_us):
        return from_us
    if wish.fits(free, from_us, until_us):
        return _silence(promises.silent)
    for _ in range(_MOST_PERIODS):
        since_us, until_us = period_of(until_us, quota.per, zone)
        if wish.fits(quota.limit - promises.hours(since_us, until_us), since_us, until_us):
            return since_us
    if not promises.hours(since_us, until_us):
        return NEVER_FITS
    return Missing(f"not before {iso(until_us)}: each {quota.per} until then is promised")


def _is_never(quota: Quota, wish: Wish) -> bool:
    """Whether even an empty period of the shortest kind has too little."""
    return not wish.fits(quota.limit, 0, _SHORTEST_US[quota.per])


def _silence(holders: Iterable[Holder]) -> Missing:
    said = [_why(each) for each in holders if amount_of(each)]
    more = f" and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
    return Missing(f"{', '.join(said[:_SHOWN])}{more}")


def _end(holder: Holder, at_us: int) -> int:
    ends = [each for each in (holder.ends_us, holder.lapses_us if holder.is_confirmed else holder.ends_us)
            if not isinstance(each, Missing)]  # fmt: skip
    end_us = min(ends, default=_NEVER)
    return end_us if end_us > at_us else _NEVER


def _why(holder: Holder) -> str:
    if isinstance(holder.ends_us, Missing):
        return f"{holder.workload} gave no end"
    return f"{holder.workload} should have ended at {iso(holder.ends_us)}"
