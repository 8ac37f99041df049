"""Decay: what a usage still counts after some time. Exact integers, so that every machine finds the same.

Usage decays by whole hours, as records are made: with D = 2^(-1 hour / half-life), the usage of the hour that is now
counts whole, that of the hour before D, of the one before that D^2 (Slurm's published formula, with an hour for its
calculation period). Weights are fixed-point numbers of :data:`BITS` binary places.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import isqrt

from gpuledger.model.moments import hour_floor

LIMB_BITS = 31
"""A store adds up 64-bit integers: seconds of a hundred years times so many bits fit into one."""

BITS = 3 * LIMB_BITS
"""Binary places of a weight: 28 decimal ones, in three limbs."""

ONE = 1 << BITS
"""The weight of an hour that has not decayed."""

_GUARD = BITS + 32
"""Places that are calculated with: 125 products, each rounded down, cost less than 8 of the 32 to spare."""


def _roots() -> tuple[int, ...]:
    """2^(-1/2), 2^(-1/4), 2^(-1/8), ... each the square root of the one before."""
    found = [isqrt(1 << (2 * _GUARD - 1))]
    while len(found) < _GUARD:
        found.append(isqrt(found[-1] << _GUARD))
    return tuple(found)


_ROOTS = _roots()


def half_power(exponent: Fraction) -> int:
    """2^(-exponent) in units of 2^-:data:`BITS`, for an exponent from 0 on; off by less than one unit.

    A whole exponent is exact. 2^(-x) for another fraction is irrational, so no rounding to decimals meets a half.
    """
    whole, rest = divmod(exponent.numerator, exponent.denominator)
    if whole > BITS:
        return 0
    digits = (rest << _GUARD) // exponent.denominator
    value = 1 << _GUARD
    for place, root in enumerate(_ROOTS, 1):
        if digits >> (_GUARD - place) & 1:
            value = value * root >> _GUARD
    return value >> (_GUARD - BITS + whole)


class Decay:
    """What an hour counts at one moment.

    Args:
        half_life_us: microseconds, above 0.
        at_us: the moment that is asked about.
    """

    def __init__(self, *, half_life_us: int, at_us: int) -> None:
        self.half_life_us = half_life_us
        self._hour_us = hour_floor(at_us)
        self._by_rest: dict[int, int] = {}

    @property
    def first_us(self) -> int:
        """Hours that begin before this weigh less than one unit: nothing."""
        return max(0, self._hour_us - (BITS + 1) * self.half_life_us)

    def exponent(self, hour_us: int) -> Fraction:
        """Half-lives between the hour that begins at ``hour_us`` and the one that is asked in; 0 for the latter."""
        return Fraction(max(0, self._hour_us - hour_us), self.half_life_us)

    def weight(self, hour_us: int) -> int:
        """What one unit of an hour's usage counts, in units of 2^-:data:`BITS`."""
        age_us = max(0, self._hour_us - hour_us)
        whole, rest_us = divmod(age_us, self.half_life_us)
        if rest_us not in self._by_rest:
            self._by_rest[rest_us] = half_power(Fraction(rest_us, self.half_life_us))
        return self._by_rest[rest_us] >> whole if whole <= BITS else 0


def limbs(weight: int) -> tuple[int, int, int]:
    """A weight as three whole numbers of :data:`LIMB_BITS`, the highest first; the highest may be one more."""
    mask = (1 << LIMB_BITS) - 1
    return weight >> 2 * LIMB_BITS, weight >> LIMB_BITS & mask, weight & mask


def joined(high: int, middle: int, low: int) -> int:
    """What sums of limbs come to; they may be negative."""
    return ((high << LIMB_BITS) + middle << LIMB_BITS) + low


def epoch_of(hour_us: int, changes_us: Sequence[int]) -> int:
    """The last of the moments at which owners change, sorted, at or before an hour; 0 where there is none."""
    place = bisect_right(changes_us, hour_us)
    return changes_us[place - 1] if place else 0


Sums = dict[tuple[str, str, int], tuple[int, int]]
"""Seconds, and seconds times weight in units of 2^-:data:`BITS`, by (subject, device, epoch)."""


def add_decayed(
    sums: Sums, hours: Iterable[tuple[str, str, int, int]], decay: Decay, changes_us: Sequence[int] = ()
) -> Sums:
    """Sums with these hours added.

    Args:
        sums: what is added to.
        hours: subject, device, start of the hour and seconds, signed; in any order.
        decay: what an hour counts.
        changes_us: moments at which owners change, sorted.
    """
    found = dict(sums)
    for subject, device, hour_us, seconds in hours:
        key = (subject, device, epoch_of(hour_us, changes_us))
        plain, weighted = found.get(key, (0, 0))
        found[key] = (plain + seconds, weighted + seconds * decay.weight(hour_us))
    return found
