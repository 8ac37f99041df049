"""Absence that says why, and can never turn into a zero."""

from __future__ import annotations

import pytest

from gpuledger.model.missing import Missing

ABSENT = Missing("driver: not supported")


def test_absence_is_neither_true_nor_false() -> None:
    """``if memory:`` would read an absent figure as none; it raises, and names the reason."""
    with pytest.raises(TypeError, match="driver: not supported"):
        bool(ABSENT)


@pytest.mark.parametrize("turned", [int, range, lambda value: [10, 20][value], lambda value: value + 1, sum])
def test_absence_is_no_number(turned) -> None:
    """No conversion, no index, no arithmetic."""
    with pytest.raises(TypeError):
        turned(ABSENT)


def test_absence_is_equal_by_its_reason() -> None:
    """It is a value: kept in rows, compared in tests, hashed in sets."""
    assert Missing("a") == Missing("a")
    assert len({Missing("a"), Missing("a"), Missing("b")}) == 2


def test_absence_is_shown_with_its_reason() -> None:
    """Never as a blank."""
    assert str(ABSENT) == "UNKNOWN (driver: not supported)"
