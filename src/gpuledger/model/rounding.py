"""The one place that rounds an amount: exact fractions in, whole units out, and the parts still add up."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def nearest(value: Fraction | int) -> int:
    """The nearest whole number; a half goes up."""
    exact = Fraction(value)
    return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)


def largest_remainder(parts: Sequence[Fraction | int], total: int | None = None) -> list[int]:
    """Whole numbers for ``parts`` that add up to ``total`` exactly.

    Each part is rounded down, then the units that are left go to the largest remainders, first come
    first served among equals. So no part moves by a whole unit, and a whole part never moves.

    Args:
        parts: exact amounts, already in the unit of the result; may be negative.
        total: what the result adds up to; ``None``: the nearest whole number of the sum.

    Raises:
        ValueError: when ``total`` is not the sum rounded up or down: a bug of the caller.
    """
    exact = [Fraction(part) for part in parts]
    whole = [part.numerator // part.denominator for part in exact]
    wanted = nearest(sum(exact, Fraction(0))) if total is None else total
    remainders = [part - floor for part, floor in zip(exact, whole, strict=True)]
    left = wanted - sum(whole)
    movable = sorted((place for place, rest in enumerate(remainders) if rest), key=lambda place: -remainders[place])
    if not 0 <= left <= len(movable) or abs(wanted - sum(exact, Fraction(0))) >= 1:
        raise ValueError(f"{wanted} is not the rounded sum of these parts")
    for place in movable[:left]:
        whole[place] += 1
    return whole
