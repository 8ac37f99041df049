"""What is known of a query's result: labels, marks, bounds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpuledger.audit import branches
from gpuledger.audit.branches import Branch, Flow, Scope

FLOW = Flow("DCGM_FI_PROF_SM_ACTIVE", Scope.PROF)


def test_labels_of_an_open_branch_are_all_but_some() -> None:
    """And of a closed one just those."""
    opened = Branch().without(frozenset({"pod"}))
    assert not opened.has("pod")
    assert opened.has("gpu")
    closed = opened.only(frozenset({"pod", "gpu"}))
    assert closed.names == {"gpu"}


def test_a_mark_goes_with_its_label() -> None:
    """What is dropped is no longer given."""
    marked = Branch().marked("pod", "grouped").marked("pod", "again")
    assert marked.marks == (("pod", "grouped"),)
    assert marked.without(frozenset({"pod"})).marks == ()


def test_the_exporters_own_label_is_carried_by_nobody() -> None:
    """A pinned label is there, and is no workload's."""
    pinned = Branch(pinned=frozenset({"pod"}))
    assert pinned.has("pod")
    assert not pinned.carries("pod")


def test_a_constant_tells_nothing_of_its_metric() -> None:
    """Unless a comparison chose the series by their value before."""
    plain = Branch(flows=(FLOW,))
    assert not plain.bounded((1, 1)).flows[0].is_value
    assert plain.gated().bounded((1, 1)).flows[0].is_value


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (branches.plus((0, None), (1, 1)), (1, None)),
        (branches.times((0, None), (0, 0)), (0, 0)),
        (branches.times((0, None), (-2, -2)), (None, 0)),
        (branches.times((0, 3), (0, 4)), (0, 12)),
        (branches.over((0, 4), (8, 8)), (0, Fraction(1, 2))),
        (branches.at_most((0, None), (0, 0)), (0, 0)),
        (branches.at_least((None, 5), (5, 5)), (5, 5)),
        (branches.negated((0, None)), (None, 0)),
    ],
)
def test_bounds_are_kept_through_arithmetic(found: branches.Bounds, expected: branches.Bounds) -> None:
    """As far as constants and signs go."""
    assert found == expected


def test_comparisons_that_always_hold_choose_nothing() -> None:
    """``>= 0`` of what is never negative."""
    assert branches.always(">=", (0, None), (0, 0))
    assert branches.always("<", (0, 0), (1, None))
    assert not branches.always(">", (0, None), (0, 0))


def test_many_alternatives_are_put_together_and_lose_no_mark() -> None:
    """The last branch stands for all that are left."""
    many = [Branch(flows=(FLOW,)).marked(f"pod_{n}", "x") for n in range(100)]
    found = branches.limited(many)
    assert len(found) == branches.MOST_BRANCHES
    assert {label for branch in found for label, _ in branch.marks} == {f"pod_{n}" for n in range(100)}
