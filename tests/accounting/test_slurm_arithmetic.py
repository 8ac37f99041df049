"""Quotients as IEEE 754 rounds them: against this machine's own doubles, and against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuledger.accounting.slurm_arithmetic import DOUBLE, INFINITE, LONG_DOUBLE, ZERO, divide, quotient, value_of

NUMBERS = st.integers(1, 2**53)


@given(NUMBERS, NUMBERS)
@example(1, 3)
@example(2**53 - 1, 2**53)
@example(4, 17)
def test_a_double_is_what_the_machine_divides_to(number: int, of: int) -> None:
    """Bit by bit."""
    assert value_of(quotient(number, of, DOUBLE)) == Fraction(number / of)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_pairs_compare_as_their_values_do(a: int, b: int, c: int, d: int) -> None:
    """So a sort needs no fractions."""
    left, right = quotient(a, b, LONG_DOUBLE), quotient(c, d, LONG_DOUBLE)
    assert (left < right) == (value_of(left) < value_of(right))
    assert ZERO < left < INFINITE


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_a_quotient_is_the_nearest_that_its_bits_can_say(a: int, b: int, c: int, d: int) -> None:
    """Off by half of its last bit at most, also of a quotient of quotients."""
    found = divide(quotient(a, b, DOUBLE), quotient(c, d, LONG_DOUBLE), LONG_DOUBLE)
    exact = value_of(quotient(a, b, DOUBLE)) / value_of(quotient(c, d, LONG_DOUBLE))
    assert found[1].bit_length() == LONG_DOUBLE
    assert abs(value_of(found) - exact) <= Fraction(2) ** (found[0] - 1)


@given(NUMBERS, NUMBERS, st.integers(1, 2**80))
def test_a_common_factor_changes_nothing(number: int, of: int, times: int) -> None:
    """However large the numbers are."""
    assert quotient(number * times, of * times, LONG_DOUBLE) == quotient(number, of, LONG_DOUBLE)


def test_the_tie_that_slurm_breaks() -> None:
    """Test 24.4: 4/17 by 2/11 and 5/17 by 5/22 are both 22/17, and differ in the last bits."""
    second = divide(quotient(40, 170, DOUBLE), quotient(20, 110, LONG_DOUBLE), LONG_DOUBLE)
    third = divide(quotient(50, 170, DOUBLE), quotient(25, 110, LONG_DOUBLE), LONG_DOUBLE)
    assert second != third
    assert second < third


@pytest.mark.parametrize(("number", "of"), [(1, 3), (40, 170), (123_456_789, 7), (2**61 + 1, 3)])
def test_a_long_double_is_eleven_bits_finer(number: int, of: int) -> None:
    """Its relative error is below 2^-63."""
    long = value_of(quotient(number, of, LONG_DOUBLE))
    assert abs(long - Fraction(number, of)) <= Fraction(number, of) / 2**63
