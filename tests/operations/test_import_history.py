"""A history into the ledger: once, in parts, with what it leaves open known to its own time and no further."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import intervals
from gpuledger.model.lifecycle import History, Placement, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, SECOND_US, parse_moment
from gpuledger.model.outcomes import HistoryReport
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent
from gpuledger.operations import import_history as room
from gpuledger.operations.import_history import begun_anew, import_history

T0 = parse_moment("2026-07-27", now_us=0)
NOW_US = T0 + 48 * HOUR_US
L4 = Placement(class_name="L4", share=Fraction(1, 2))


def at(hour: float) -> int:
    return T0 + round(hour * HOUR_US)


def told(workload: str, state: State, hour: float, **words) -> Transition:
    placed = {"placement": L4} if state is State.RUNNING else {}
    return Transition(
        workload=workload, event_id=f"{workload}#{state}@{hour}", state=state, at_us=at(hour), source="trace:lab",
        user="ann", **placed | words,
    )  # fmt: skip


def history(*transitions: Transition, as_of: float | None = None, **words) -> History:
    return History(
        source="trace:lab",
        transitions=tuple(sorted(transitions, key=lambda each: each.at_us)),
        as_of_us=Missing("the map does not say") if as_of is None else at(as_of),
        rows_read=len(transitions),
        **words,
    )


class Desk:
    """A ledger that may not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "desk.db"

    def open(self) -> Ledger:
        return Ledger.open(self.place, mode="append")

    def bring(self, found: History, **words) -> HistoryReport:
        given = {"path": "lab.csv", "as_of_us": None, "now_us": NOW_US, "writer": "box.import"} | words
        return import_history(self.open, begun_anew(found), **given)

    def events(self) -> list[WorkloadEvent]:
        with self.open() as ledger:
            return list(ledger.scan(WorkloadEvent))

    def held_s(self, workload: str) -> Fraction:
        """Device-seconds that the events of a workload prove: what nothing ends counts to its last event."""
        with self.open() as ledger:
            amounts = {row.placement: Fraction(row.count * row.share_num, row.share_den)
                       for row in ledger.scan(PlacementRow)}  # fmt: skip
        mine = [event for event in self.events() if event.workload == workload]
        return sum(
            (
                amounts[stay.placement] * (stay.until_us - stay.since_us) / SECOND_US
                for stay in intervals(mine)
                if not isinstance(stay.until_us, Missing)
            ),
            Fraction(0),
        )


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Nothing imported yet."""
    return Desk(tmp_path)


RUN = (told("w", State.PENDING, 1), told("w", State.RUNNING, 2), told("w", State.STOPPED, 4))


def test_the_past_comes_in_once(desk: Desk) -> None:
    """Declared, with a provisioning at its start; the second time all of it is known."""
    first = desk.bring(history(*RUN))
    again = desk.bring(history(*RUN))
    assert (first.added, first.known, again.added, again.known) == (4, 0, 0, 4)
    assert {event.is_declared for event in desk.events()} == {1}
    assert [event.state for event in desk.events()] == ["pending", "provisioning", "running", "stopped"]
    assert (first.by, first.since_us, first.until_us, first.running) == ("user", at(1), at(4), 0)
    assert isinstance(first.as_of_us, Missing)
    assert desk.held_s("w") == 3600


def test_parts_add_up_to_the_whole(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """One transaction for each part, and progress after each."""
    monkeypatch.setattr(room, "AT_ONCE", 3)
    steps: list[tuple[int, int]] = []
    report = desk.bring(
        history(*RUN, told("v", State.RUNNING, 3), told("v", State.FAILED, 5)),
        progress=lambda done, of: steps.append((done, of)),
    )
    assert steps == [(3, 7), (6, 7), (7, 7)]
    assert (report.added, desk.held_s("w"), desk.held_s("v")) == (7, 3600, 3600)


def test_a_part_that_came_in_before_a_kill_is_known(desk: Desk) -> None:
    """The rest comes in by importing again."""
    desk.bring(history(*RUN[:2], as_of=2))
    assert desk.bring(history(*RUN)).added == 1
    assert desk.held_s("w") == 3600


def test_a_changed_row_is_told_and_not_written(desk: Desk) -> None:
    """The first stays, the others of the file come in."""
    desk.bring(history(*RUN))
    moved = Transition(**{**fields_of(RUN[2]), "at_us": at(9)})
    report = desk.bring(history(*RUN[:2], moved, told("v", State.RUNNING, 3), told("v", State.STOPPED, 4)))
    assert (report.conflicts, report.added) == (1, 3)
    assert [problem.code for problem in report.problems] == ["conflict"]
    assert desk.held_s("w") == 3600


def fields_of(transition: Transition) -> dict:
    return {name: getattr(transition, name) for name in Transition.__slots__}


def test_what_is_open_counts_to_the_time_of_the_file(desk: Desk) -> None:
    """And no further, however late it is."""
    report = desk.bring(history(told("w", State.RUNNING, 2), told("v", State.PENDING, 3), as_of=6))
    assert (report.running, report.waiting, report.as_of_us) == (1, 1, at(6))
    assert desk.held_s("w") == 2 * 3600
    assert desk.bring(history(told("w", State.RUNNING, 2), told("v", State.PENDING, 3), as_of=6)).added == 0


def test_a_later_file_that_does_not_tell_of_it_lets_it_stand(desk: Desk) -> None:
    """One dump of alice's jobs and a later one of bob's: alice's is known to the first, bob's to the second."""
    desk.bring(history(told("alice", State.RUNNING, 2), as_of=6))
    desk.bring(history(told("bob", State.RUNNING, 2), as_of=20))
    assert (desk.held_s("alice"), desk.held_s("bob")) == (2 * 3600, 9 * 3600)


def test_files_may_come_in_any_order(desk: Desk) -> None:
    """The later one first, which knows the end; the earlier one, which saw it run, adds no time."""
    desk.bring(history(*RUN))
    desk.bring(history(*RUN[:2], as_of=3))
    assert desk.held_s("w") == 3600
    desk.bring(history(told("x", State.RUNNING, 2), as_of=20))
    desk.bring(history(told("x", State.RUNNING, 2), told("x", State.STOPPED, 3)))
    assert desk.held_s("x") == 1800


def test_something_open_needs_a_time(desk: Desk) -> None:
    """Else it would hold for ever, or not at all: refused before a ledger is made, and --as-of says it."""
    with pytest.raises(Misconfigured) as refused:
        desk.bring(history(told("w", State.RUNNING, 2)))
    assert (refused.value.code, "--as-of" in refused.value.hint) == ("as-of-needed", True)
    assert not desk.place.exists()
    assert desk.bring(history(told("w", State.RUNNING, 2)), as_of_us=at(3)).as_of_us == at(3)
    assert desk.held_s("w") == 1800


def test_who_only_waits_needs_none(desk: Desk) -> None:
    """Nothing is metered of it."""
    report = desk.bring(history(told("v", State.PENDING, 3)))
    assert (report.waiting, report.added) == (1, 1)
    assert isinstance(report.as_of_us, Missing)


@pytest.mark.parametrize("hour", [1.9, 49])
def test_a_time_that_cannot_be_is_refused(desk: Desk, hour: float) -> None:
    """Before the last that the file tells, or ahead of now."""
    with pytest.raises(Misconfigured) as refused:
        desk.bring(history(told("w", State.RUNNING, 2)), as_of_us=at(hour))
    assert refused.value.code == "bad-as-of"


def test_what_the_file_itself_tells_counts(desk: Desk) -> None:
    """A time given beside it is told to be of no use."""
    report = desk.bring(history(told("w", State.RUNNING, 2), as_of=6), as_of_us=at(9))
    assert (report.as_of_us, report.codes) == (at(6), ("as-of-known",))


def test_a_second_run_of_a_workload_counts(desk: Desk) -> None:
    """A stop voids what follows until a provisioning, so each run has one; also when it comes by another file."""
    desk.bring(history(*RUN, told("w", State.RUNNING, 6), told("w", State.STOPPED, 8)))
    desk.bring(history(told("w", State.RUNNING, 10), told("w", State.STOPPED, 12)))
    assert desk.held_s("w") == 3 * 3600


def test_nothing_is_nothing(desk: Desk) -> None:
    """An empty file adds nothing and tells no span."""
    report = desk.bring(history())
    assert (report.added, report.by) == (0, "class")
    assert isinstance(report.since_us, Missing)
