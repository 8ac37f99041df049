"""Decay: halves are exact halves, and sums in limbs are the sums."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from gpuledger.accounting.decay import BITS, ONE, Decay, add_decayed, epoch_of, half_power, joined, limbs
from gpuledger.model.moments import DAY_US, HOUR_US, MINUTE_US


@pytest.mark.parametrize("exponent", [0, 1, 2, 10, 93, 94, 5000])
def test_whole_half_lives_are_exact(exponent: int) -> None:
    """And beyond what a unit can say, nothing is left."""
    assert half_power(Fraction(exponent)) == (ONE >> exponent)


@pytest.mark.parametrize("exponent", ["1/3", "3875/3000", "1/168", "99/100", "6.5", "41.123456789", "1/1000000007"])
def test_other_powers_are_right_to_the_last_but_one_unit(exponent: str) -> None:
    """Against the decimal module with 60 digits, which is another way to find them."""
    exact = Fraction(exponent)
    with localcontext() as context:
        context.prec = 60
        wanted = Decimal(2) ** (-(Decimal(exact.numerator) / Decimal(exact.denominator))) * ONE
    assert abs(half_power(exact) - int(wanted)) <= 1


def test_an_hour_counts_by_its_age_in_whole_hours() -> None:
    """The hour that is now counts whole, that of one half-life ago a half, the first of two a quarter."""
    at_us = 1000 * DAY_US + 17 * MINUTE_US
    decay = Decay(half_life_us=7 * DAY_US, at_us=at_us)
    hour_us = 1000 * DAY_US
    ages = [0, 7 * DAY_US, 14 * DAY_US, 21 * DAY_US]
    assert [Fraction(decay.weight(hour_us - age), ONE) for age in ages] == [1, *(Fraction(1, 2**n) for n in (1, 2, 3))]
    assert 0 < decay.weight(hour_us - HOUR_US) < ONE
    assert decay.weight(decay.first_us - HOUR_US) == 0
    assert decay.exponent(hour_us - 84 * HOUR_US) == Fraction(1, 2)


def test_a_steady_use_tends_to_what_an_exponential_average_says() -> None:
    """Two devices held all the time: after one, two and three half-lives 1.0, 1.5 and 1.75 of them are remembered."""
    hours, half_life_us = 168, 168 * HOUR_US
    decay = Decay(half_life_us=half_life_us, at_us=10_000 * HOUR_US)
    endless = Fraction(2 * ONE, 1) / (1 - Fraction(decay.weight(9_999 * HOUR_US), ONE))
    for half_lives, remembered in ((1, "1.0"), (2, "1.5"), (3, "1.75")):
        held = sum(2 * decay.weight((10_000 - age) * HOUR_US) for age in range(hours * half_lives))
        assert abs(held / endless * 2 - Fraction(remembered)) < Fraction(1, 10**9)


@pytest.mark.parametrize("weight", [0, 1, ONE, ONE - 1, ONE // 3, (1 << 62) + 5])
def test_limbs_join_to_what_they_were_cut_from(weight: int) -> None:
    """Also when they were added up first, and taken away."""
    assert joined(*limbs(weight)) == weight
    assert joined(*(3600 * each for each in limbs(weight))) == 3600 * weight
    assert joined(*(-7 * each for each in limbs(weight))) == -7 * weight
    assert all(each < 1 << 32 for each in limbs(weight))
    assert BITS == 93


def test_an_epoch_is_the_last_change_at_or_before_the_hour() -> None:
    """Before the first one, 0."""
    assert [epoch_of(at, (10, 20)) for at in (9, 10, 19, 20, 99)] == [0, 10, 10, 20, 20]
    assert epoch_of(5, ()) == 0


def test_open_hours_are_added_to_what_is_recorded() -> None:
    """By subject, device and epoch; a correction takes away."""
    decay = Decay(half_life_us=HOUR_US, at_us=10 * HOUR_US)
    sums = {("s", "d", 0): (100, 100 * ONE)}
    hours = [("s", "d", 10 * HOUR_US, 60), ("s", "d", 9 * HOUR_US, -20), ("t", "d", 9 * HOUR_US, 8)]
    found = add_decayed(sums, hours, decay, [9 * HOUR_US])
    assert found == {
        ("s", "d", 0): (100, 100 * ONE),
        ("s", "d", 9 * HOUR_US): (40, 60 * ONE - 10 * ONE),
        ("t", "d", 9 * HOUR_US): (8, 4 * ONE),
    }
    assert sums == {("s", "d", 0): (100, 100 * ONE)}
