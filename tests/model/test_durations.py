"""Figures as people read them."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.model import durations


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 ms"),
        (679, "679 ms"),
        (1000, "1 s"),
        (6748, "6.7 s"),
        (59_949, "59.9 s"),
        (59_960, "1 min"),
        (60_000, "1 min"),
        (3_600_000, "1 h"),
        (3_605_200, "1 h 0 min 5.2 s"),
        (9_240_000, "2 h 34 min"),
        (14_249_789, "3 h 57 min 29.8 s"),
        (86_400_000, "24 h"),
        (72 * 3_600_000, "3 d"),
        (313_868_569, "3 d 15 h 11 min"),
        (-6748, "-6.7 s"),
    ],
)
def test_duration(ms: int, words: str) -> None:
    """Durations carry their units, drop what is empty, and never read 60.0 s."""
    assert durations.duration_ms(ms) == words


def test_other_units_are_the_same_words() -> None:
    """Seconds and microseconds read like milliseconds."""
    assert durations.duration_s(9240) == "2 h 34 min"
    assert durations.duration_s(0) == "0 s"
    assert durations.duration_us(1_499_600) == "1.5 s"


@settings(max_examples=200)
@given(st.integers(min_value=0, max_value=10**12))
def test_duration_is_near_what_it_says(ms: int) -> None:
    """Read back, a duration is off by half of its last unit at most."""
    units = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
    words = durations.duration_ms(ms)
    back = sum(Fraction(number) * units[unit] for number, unit in re.findall(r"([\d.]+) (ms|s|min|h|d)", words))
    assert abs(back - ms) <= (50 if ms < durations.DAYS_FROM_MS else 30_000)


@pytest.mark.parametrize(
    ("mib", "words"), [(0, "0 B"), (184, "184 MiB"), (14_410, "14.1 GiB"), (24_576, "24 GiB"), (1_048_575, "1 TiB")]
)
def test_memory(mib: int, words: str) -> None:
    """Memory is in the largest unit that fits, rounded once."""
    assert durations.memory_mib(mib) == words


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Fraction(0), "0 %"),
        (Fraction(1), "100 %"),
        (Fraction(1, 10), "10.0 %"),
        (Fraction(1, 60), "1.7 %"),
        (Fraction(1, 100_000), "<0.1 %"),
        (Fraction(99_999, 100_000), ">99.9 %"),
        (Fraction(-1, 100_000), "-0.1 %"),
    ],
)
def test_percent_never_rounds_to_an_end(part: Fraction, words: str) -> None:
    """What is some never reads 0, and what is not all never reads 100."""
    assert durations.percent(part) == words


@pytest.mark.parametrize(("scaled", "words"), [(1234, "1.234"), (-5, "-0.005"), (0, "0.000")])
def test_decimal(scaled: int, words: str) -> None:
    """Fixed-point text without floats."""
    assert durations.decimal(scaled, 3) == words
    assert durations.count(14_249_789) == "14,249,789"
