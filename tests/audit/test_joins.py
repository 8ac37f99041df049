"""Operators between two queries."""

from __future__ import annotations

from gpuledger.audit.branches import Branch, Flow, Scope
from gpuledger.audit.joins import binary
from gpuledger.audit.promql_tree import Binary, Selector

PROF = Branch(flows=(Flow("DCGM_FI_PROF_X", Scope.PROF),), bounds=(0, None))
A, B = Selector("a"), Selector("b")


def joined(left: Branch, right: Branch, op: str = "*", **how: object) -> Branch:
    """The one branch of an operator."""
    (found,) = binary(Binary(op, A, B, **how), [left], [right], same=False)  # type: ignore[arg-type]
    return found


def test_group_left_brings_only_what_the_other_side_has() -> None:
    """A label that was aggregated away over there arrives as none."""
    other = Branch().only(frozenset({"UUID"}))
    found = joined(PROF, other, on=("UUID",), group="left", include=("pod",))
    assert found.marks == ()
    assert not found.has("pod")


def test_group_left_of_an_open_side_brings_the_pod() -> None:
    """Whatever series it is of."""
    assert joined(PROF, Branch(), on=("UUID",), group="left", include=("pod",)).marks == (
        ("pod", "group_left(pod) brings it over"),
    )


def test_what_comes_over_by_the_pod_stands_for_the_pod() -> None:
    """A label of any name; one of a place is of the place."""
    found = joined(PROF, Branch(), on=("pod",), group="left", include=("purpose", "node"))
    assert found.stands_for == (("purpose", "pod"),)
    assert joined(PROF, Branch(), on=("UUID",), group="left", include=("purpose",)).stands_for == ()


def test_a_number_leaves_the_labels_of_the_other_side() -> None:
    """``scalar()`` of a figure is one: what it rests on is kept, and no label of it."""
    number = PROF.only(frozenset())._replace(is_scalar=True)
    found = joined(Branch().marked("pod", "r"), number)
    assert (found.has("pod"), found.is_scalar, [flow.metric for flow in found.flows]) == (
        True,
        False,
        ["DCGM_FI_PROF_X"],
    )


def test_one_to_one_on_leaves_just_those_labels() -> None:
    """And those of workloads are marked."""
    found = joined(PROF, Branch(), on=("pod", "gpu"))
    assert found.names == {"pod", "gpu"}
    assert [label for label, _ in found.marks] == ["pod"]


def test_ignoring_drops_labels() -> None:
    """Of both sides."""
    assert not joined(PROF, Branch(), ignoring=("pod",)).has("pod")


def test_or_keeps_both_and_and_keeps_the_left() -> None:
    """``and`` depends on the right side's being there."""
    assert len(binary(Binary("or", A, B), [PROF], [Branch()], same=False)) == 2
    found = joined(Branch(), PROF, "and")
    assert [flow.is_value for flow in found.flows] == [False]


def test_a_number_changes_no_label() -> None:
    """Only the bounds."""
    number = Branch(is_open=False, bounds=(0, 0), is_scalar=True)
    found = joined(PROF, number)
    assert found.is_open
    assert [flow.is_value for flow in found.flows] == [False]


def test_the_exporters_pod_stays_the_exporters() -> None:
    """Joined on the pod of dcgm-exporter to find its node."""
    other = Branch(pinned=frozenset({"pod"}))
    found = joined(PROF, other, on=("pod",), group="left", include=("node",))
    assert found.marks == ()
    assert not found.carries("pod")
