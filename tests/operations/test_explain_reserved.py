"""Explaining reserved time: from a line to records, and from a record to its transitions."""

from __future__ import annotations

from fractions import Fraction

import pytest

from control_plane import ControlPlane
from gpuledger.errors import Misconfigured, NotFound
from gpuledger.model.explanation import Explanation
from gpuledger.operations.explain import explain

EVERY_STORE = True


@pytest.fixture
def plane(plane: ControlPlane) -> ControlPlane:
    plane.run("a", 0, Fraction(5, 2), plane.placement(share="1/2"), labels='{"qos": "LS"}')
    plane.tell("a", "running", 2)
    plane.run("b", 1, 2, plane.placement("n2"), user="bo", team="nlp")
    plane.meter(4)
    return plane


def told(plane: ControlPlane, ref: str) -> Explanation:
    return explain(
        plane.ledger, ref, meter="gpu.reserved", since_us=plane.at(0), until_us=plane.at(5), now_us=plane.at(5)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ref", "product"),
    [
        ("total", "8100.000"),
        ("team:nlp", "3600.000"),
        ("host:n1", "4500.000"),
        ("workload:a", "4500.000"),
        ("label:qos:LS", "4500.000"),
        ("class:H100-80GB", "8100.000"),
    ],
)
def test_a_line_is_what_usage_says(plane, ref, product) -> None:
    """With the records behind it, the largest first."""
    tree = told(plane, ref)
    assert dict(tree.figures)["device-seconds"] == product
    assert tree.children


def test_a_record_leads_to_its_transitions(plane) -> None:
    """And these to themselves; what a stop voided says so."""
    record = told(plane, "workload:b").children[0]
    states = [child.title.split()[-1] for child in record.children if child.refs[0].startswith("event:")]
    assert states == ["provisioning", "running", "stopped"]
    for child in record.children:
        assert told(plane, child.refs[0]).refs == child.refs
    plane.tell("b", "failed", Fraction(3, 2))
    plane.tell("b", "booting", Fraction(7, 4))
    again = told(plane, record.refs[0])
    assert any("void" in child.title for child in again.children)


def test_what_is_not_recorded_is_in_the_figure(plane) -> None:
    """A line counts what the next pass will book."""
    plane.tell("b", "stopped", Fraction(3, 2))
    assert dict(told(plane, "team:nlp").figures)["seconds_not_recorded_yet"] == -1800


def test_what_is_not_recorded_leads_to_its_transitions_too(plane) -> None:
    """Before any pass, of what is still open, and of a part of an hour: the parts add up to the line."""
    plane.run("c", Fraction(9, 2), None, plane.placement("n3"), user="bo", team="nlp")
    plane.tell("b", "stopped", Fraction(3, 2), event_id="late")
    tree = told(plane, "user:bo")
    parts = [(child.title.partition(" ")[0], dict(child.figures)["seconds"]) for child in tree.children]
    assert parts == [("record:", 3600), ("not", -1800), ("not", 1800)]
    assert dict(tree.figures)["seconds"] == sum(seconds for _, seconds in parts) == 3600
    for child in tree.children:
        (placement, *events) = child.children
        assert placement.refs[0].startswith("placement:")
        assert events
        assert all(event.refs[0].startswith("event:") for event in events)


def test_a_record_that_the_window_cuts_is_not_counted_beside_its_part(plane) -> None:
    """What the window holds of its hour is derived, and leads to the same transitions."""
    tree = explain(
        plane.ledger, "workload:b", meter="gpu.reserved", since_us=plane.at(0), until_us=plane.at(Fraction(3, 2)),
        now_us=plane.at(5),
    )  # fmt: skip
    assert [dict(child.figures)["seconds"] for child in tree.children] == [1800]
    assert dict(tree.figures)["seconds"] == 1800


def test_what_is_no_line_is_refused(plane) -> None:
    """And a line that has nothing is not found."""
    with pytest.raises(Misconfigured, match="no line"):
        told(plane, "planet:mars")
    with pytest.raises(NotFound, match="nothing"):
        told(plane, "team:nobody")
