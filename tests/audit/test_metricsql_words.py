"""Words of MetricsQL."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpuledger.audit.metricsql_words import number_of, unquoted, words_of
from gpuledger.audit.promql_tree import Unparsable


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("12", 12),
        ("1.5", Fraction(3, 2)),
        ("1e3", 1000),
        ("0x1F", 31),
        ("2Ki", 2048),
        ("1MB", 10**6),
        ("5m", None),
        ("1h30m", None),
    ],
)
def test_numbers_have_suffixes_and_durations_are_none(word: str, number: Fraction | None) -> None:
    """No label depends on a duration."""
    assert number_of(word) == number


def test_strings_are_unquoted() -> None:
    """In each of the three quotes; others stay as they are."""
    assert [unquoted(word) for word in ('"a\\"b"', "'a\\nb'", "`a\\nb`", "a")] == ['a"b', "a\nb", "a\\nb", "a"]


def test_comments_and_blanks_are_no_words() -> None:
    """And a sign of no language ends it."""
    assert [word for _, word in words_of("a # b\n+ c")] == ["a", "+", "c"]
    with pytest.raises(Unparsable):
        words_of("a ; b")
