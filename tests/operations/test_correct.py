"""Correcting final hours: with a reason and a name, once, and never by itself."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane import ControlPlane
from gpuledger.errors import Misconfigured, Unavailable
from gpuledger.model.missing import Missing
from gpuledger.model.outcomes import CorrectReport
from gpuledger.model.rows import Pass, UsageCorrection
from gpuledger.operations.correct import NO_PASS, correct
from gpuledger.operations.verify import verify

EVERY_STORE = True


@pytest.fixture
def plane(plane: ControlPlane) -> ControlPlane:
    plane.run("a", 0, 3, plane.placement())
    plane.run("b", 0, 3, plane.placement("n2"))
    plane.meter(4)
    plane.tell("a", "stopped", 1)
    plane.meter(60)
    return plane


def book(plane: ControlPlane, **words: Any) -> CorrectReport:
    given: dict[str, Any] = {
        "why": "the runtime's log", "by": "al", "since_us": plane.at(0), "until_us": plane.at(60), "is_done": True,
        "now_us": plane.at(61), "writer": "box.correct", "pass_writer": "box.meter",
    }  # fmt: skip
    return correct(plane.ledger, **given | words)


def test_it_shows_first_and_books_once(plane) -> None:
    """Reason and name are in each correction; a second time nothing is left."""
    shown = book(plane, is_done=False)
    assert [row.delta for row in shown.corrections] == [-3600, -3600]
    assert plane.ledger.count(UsageCorrection) == 0
    booked = book(plane)
    assert [row.reason for row in booked.corrections] == ["late-evidence: the runtime's log (al)"] * 2
    assert all(row.evidence_count for row in booked.corrections)
    assert book(plane).corrections == ()
    assert not plane.meter(62).corrections
    assert not [finding for check in verify(plane.ledger, now_us=plane.at(62)).checks for finding in check.findings]


def test_only_whole_hours_of_the_window_are_meant(plane) -> None:
    """The others stay listed."""
    assert [row.hour_us for row in book(plane, since_us=plane.at(1.5)).corrections] == [plane.at(2)]
    assert [row.hour_us for row in book(plane).corrections] == [plane.at(1)]


def test_what_is_not_final_is_left_to_the_pass(plane) -> None:
    """A correction by hand is for final hours alone."""
    plane.tell("b", "stopped", 2)
    assert {row.host for row in book(plane, now_us=plane.at(51)).corrections} == set()


@pytest.mark.parametrize("words", [{"why": " "}, {"by": ""}, {"why": "x" * 201}])
def test_without_a_reason_or_a_name_it_is_refused(plane, words) -> None:
    """Nothing is written."""
    with pytest.raises(Misconfigured, match="needs a reason"):
        book(plane, **words)
    assert plane.ledger.count(UsageCorrection) == 0


def test_two_at_once_book_once(plane, monkeypatch) -> None:
    """Who comes second is told to look again."""
    append_if = plane.ledger.append_if

    def overtaken(provided: Any, rows: Any, **words: Any) -> Any:
        if words["writer"] != "box.correct":
            return append_if(provided, rows, **words)
        monkeypatch.setattr(plane.ledger, "append_if", append_if)
        book(plane)
        return append_if(provided, rows, **words)

    monkeypatch.setattr(plane.ledger, "append_if", overtaken)
    with pytest.raises(Unavailable, match="meanwhile"):
        book(plane)
    assert plane.ledger.count(UsageCorrection) == 2


def test_what_no_pass_has_seen_is_booked_with_how_far_was_looked(plane) -> None:
    """Verified at once, and after the next pass: what a pass may book by itself is booked by one that runs first."""
    book(plane)
    plane.tell("b", "stopped", 2)
    plane.run("c", 59, 61, plane.placement("n3"))
    booked = book(plane, now_us=plane.at(61.25))
    assert [row.delta for row in booked.corrections] == [-3600]
    assert not isinstance(booked.ran, Missing)
    assert [(row.hour_us, row.quantity) for row in booked.ran.records] == [(plane.at(60), 3600)]
    assert [(row.hour_us, row.delta) for row in booked.ran.corrections] == [(plane.at(59), 3600)]
    for hour in (61.25, 61.5, 63):
        found = [finding for check in verify(plane.ledger, now_us=plane.at(hour)).checks for finding in check.findings]
        assert found == []
        plane.meter(hour)
    assert (plane.ledger.count(UsageCorrection), book(plane).ran) == (4, NO_PASS)


def test_a_show_runs_no_pass(plane) -> None:
    """Nothing is written, whatever would be booked."""
    passes = plane.ledger.count(Pass)
    assert (book(plane, is_done=False).ran, plane.ledger.count(Pass)) == (NO_PASS, passes)
