"""Rounding: parts always add up."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.model.rounding import largest_remainder, nearest

FRACTIONS = st.lists(st.fractions(min_value=-1000, max_value=1000, max_denominator=97), max_size=20)


@pytest.mark.parametrize(
    ("value", "whole"), [(Fraction(1, 2), 1), (Fraction(-1, 2), 0), (Fraction(149, 100), 1), (7, 7)]
)
def test_nearest_takes_a_half_up(value: Fraction | int, whole: int) -> None:
    """Halves go up, on both sides of zero."""
    assert nearest(value) == whole


def test_seven_sevenths_make_one_hour() -> None:
    """Seven sevenths of 3,600 s are whole seconds that add up to 3,600."""
    parts = largest_remainder([Fraction(3600, 7)] * 7)
    assert sum(parts) == 3600
    assert sorted(set(parts)) == [514, 515]
    assert parts[:2] == [515, 515]


@settings(max_examples=150)
@given(FRACTIONS)
def test_parts_add_up_and_none_moves_by_a_unit(parts: list[Fraction]) -> None:
    """The sum is the rounded sum; every part is its floor or its ceiling; whole parts stand still."""
    whole = largest_remainder(parts)
    assert sum(whole) == nearest(sum(parts, Fraction(0)))
    assert all(abs(number - part) < 1 for number, part in zip(whole, parts, strict=True))


@settings(max_examples=100)
@given(FRACTIONS, st.booleans())
def test_a_given_total_is_met(parts: list[Fraction], up: bool) -> None:
    """The total may be the sum rounded down or up."""
    exact = sum(parts, Fraction(0))
    total = -((-exact.numerator) // exact.denominator) if up else exact.numerator // exact.denominator
    assert sum(largest_remainder(parts, total)) == total


@pytest.mark.parametrize("total", [0, 3, 4])
def test_a_total_that_is_not_the_sum_is_a_bug(total: int) -> None:
    """Rounding never hides a unit that was lost or made up elsewhere."""
    with pytest.raises(ValueError, match="not the rounded sum"):
        largest_remainder([Fraction(1, 2), Fraction(3, 2)], total)
