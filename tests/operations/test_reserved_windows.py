"""Windows: together they hold what one derivation of all of it holds, and empty decades cost nothing."""

from __future__ import annotations

import pytest

from gpuledger.model.moments import HOUR_US
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations import reserved_windows
from gpuledger.operations.reserved_windows import windows
from reserved_oracle import microseconds

EVERY_STORE = True


@pytest.mark.parametrize(("events", "rows"), [(1, 1), (2, 3), (5, 100), (150_000, 2)])
def test_windows_and_steps_hold_all_time_once(plane, monkeypatch, events, rows) -> None:
    """However few events and rows are taken at a time."""
    monkeypatch.setattr(reserved_windows, "EVENTS_AT_ONCE", events)
    for number in range(5):
        plane.run(f"w{number}", number, number + 4 if number % 2 else None, plane.placement(f"n{number}"))
    plane.tell("w0", "running", 6, plane.placement("n9"))
    found: dict[tuple[str, int, str, str], int] = {}
    since_us, until_us = plane.at(0), plane.at(12)
    end_us = since_us
    for window in windows(plane.ledger, plane.ledger.marks(), since_us, until_us, cut_us=until_us):
        assert window.since_us == end_us
        end_us = window.until_us
        for hours in window.steps(rows):
            with plane.ledger.snapshot():
                window.read.cut([(hour_us, hour_us + HOUR_US) for hour_us in hours], open_hours=())
                window.read.book_by_row()
                for time in window.read.times_by_row():
                    key = (time.workload, time.hour_us, time.placement, time.subject)
                    assert key not in found
                    found[key] = time.amount_us
    assert end_us == until_us
    assert found == microseconds(list(plane.ledger.scan(WorkloadEvent)), until_us=until_us)


def test_decades_without_time_have_no_hours(plane) -> None:
    """A job of 1970 and one of today: two days of steps, not fifty years of them."""
    plane.run("old", -8760 * 50, -8760 * 50 + 2, plane.placement(), declared=True)
    plane.run("new", 0, 2, plane.placement(), declared=True)
    stepped = 0
    first_us = plane.at(-8760 * 50)
    for window in windows(plane.ledger, plane.ledger.marks(), first_us, plane.at(5), cut_us=plane.at(5)):
        with plane.ledger.snapshot():
            told = list(window.read.runs(window.since_us, window.last_us))
        assert len(told) == 2
        stepped += len(list(window.steps(1)))
    assert stepped


@pytest.mark.parametrize("began", [1.25, 1.5, 2, 5])
def test_what_began_after_the_last_heartbeat_takes_no_time_from_the_steps(plane, began) -> None:
    """It ends before it begins, by any length: the steps of the others are what they are, and none is divided by 0."""
    plane.run("counted", 0, 1, plane.placement())
    plane.run("silent", began, None, plane.placement("n2"))
    plane.beat(0.25)
    (window,) = windows(plane.ledger, plane.ledger.marks(), plane.at(0), plane.at(8), cut_us=plane.at(8))
    assert window.read.running_us(plane.at(0), plane.at(8)) == HOUR_US
    assert [hour_us for hours in window.steps(100) for hour_us in hours] == [plane.at(0)]
    assert plane.meter(9).corrections == ()
    assert plane.held() == {(0, "counted", "n1"): 3600}
