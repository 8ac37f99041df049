"""The usage report's own laws: no zero without evidence."""

from __future__ import annotations

from gpuledger.model.missing import Missing
from gpuledger.model.usage import BY, TIME_BY, known_sum


def test_sum_of_the_known() -> None:
    """Known quantities add up; none known of some is missing; none at all is 0 only where something was seen."""
    assert known_sum((3, Missing("x"), 4)) == 7
    assert isinstance(known_sum((Missing("x"),)), Missing)
    assert known_sum(()) == 0
    assert isinstance(known_sum((), answered=False), Missing)


def test_times_are_groupings() -> None:
    """Every time grouping is a grouping."""
    assert set(TIME_BY) < set(BY)
