"""Reading reserved time: the statement against the plain oracle, case by case."""

from __future__ import annotations

from fractions import Fraction

import pytest

from control_plane import ControlPlane
from gpuledger.ledger.reserved import reading
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.workload_rows import WorkloadEvent
from reserved_oracle import microseconds

EVERY_STORE = True


def derived(plane: ControlPlane, hours: int = 12) -> dict[tuple[str, int, str, str], int]:
    spans = [(plane.at(hour), plane.at(hour + 1)) for hour in range(-2, hours)]
    with reading(plane.ledger, plane.ledger.marks()) as read:
        read.want_living(plane.at(-2), plane.at(hours))
        times = list(read.times(spans, until_us=plane.at(hours)))
        beats = {source: beat for source, beat in read.beats.items() if not isinstance(beat, Missing)}
    found = {(time.workload, time.hour_us, time.placement, time.subject): time.amount_us for time in times}
    assert len(found) == len(times), "one row a key"
    assert found == microseconds(
        list(plane.ledger.scan(WorkloadEvent)), until_us=plane.at(hours), beats=beats
    )  # fmt: skip
    return found


CASES = {
    "a whole life": [("provisioning", 0, "n1"), ("running", 1, None), ("stopped", 3, None)],
    "still open": [("provisioning", 0, "n1"), ("running", Fraction(1, 3), None)],
    "a stop voids what follows": [
        ("provisioning", 0, "n1"), ("running", 1, None), ("booting", 4, None), ("running", 5, None),
        ("stopped", 2, None), ("failed", 3, None),
    ],
    "a new life": [
        ("provisioning", 0, "n1"), ("running", 1, None), ("stopped", 2, None), ("provisioning", 3, "n2"),
        ("running", 4, None), ("failed", 5, None),
    ],
    "a new life without a placement takes no old one": [
        ("provisioning", 0, "n1"), ("running", 1, None), ("stopped", 2, None), ("provisioning", 3, None),
        ("running", 4, None), ("stopped", 5, None),
    ],
    "a move splits": [
        ("provisioning", 0, "n1"), ("running", 1, None), ("running", Fraction(5, 2), "n2"), ("stopped", 4, None),
    ],
    "a placement after the start leaves it unplaced": [
        ("provisioning", 0, None), ("running", 1, None), ("running", 2, "n1"), ("stopped", 3, None),
    ],
    "a placement of a void event does not count": [
        ("provisioning", 0, "n1"), ("stopped", 1, None), ("booting", 2, "n2"), ("running", 3, None),
    ],
    "twice at the same moment": [
        ("provisioning", 1, "n1"), ("running", 1, None), ("running", 1, "n2"), ("stopped", 2, None),
    ],
    "waits for a new life": [
        ("provisioning", 0, "n1"), ("running", 1, None), ("stopped", 2, None), ("pending", 2, None),
        ("running", 3, None),
    ],
    "flaps within an hour": [
        ("provisioning", 0, "n1"), ("running", Fraction(1, 10), None), ("booting", Fraction(2, 10), None),
        ("running", Fraction(3, 10), None), ("stopping", Fraction(4, 10), None), ("stopped", Fraction(5, 10), None),
    ],
    "ends before it began to run": [("provisioning", 0, "n1"), ("failed", 1, None), ("running", 2, None)],
}  # fmt: skip


@pytest.mark.parametrize("events", CASES.values(), ids=CASES)
def test_the_statement_is_the_oracle(plane, events) -> None:
    """Every rule of an interval, once."""
    for state, hour, machine in events:
        plane.tell("w", state, hour, plane.placement(machine) if machine else None)
    derived(plane)


def test_evidence_is_the_events_that_decide(plane) -> None:
    """The admission, the start and the end; of a flapping hour all of it with its neighbours."""
    plane.run("a", 0, 3, plane.placement())
    plane.tell("b", "provisioning", 0, plane.placement("n2"))
    for quarter in range(4):
        plane.tell("b", "running" if quarter % 2 else "booting", Fraction(quarter, 4))
    plane.tell("b", "stopped", 2)
    with reading(plane.ledger, plane.ledger.marks()) as read:
        read.want_living(plane.at(0), plane.at(3))
        times = list(read.times([(plane.at(0), plane.at(1))], until_us=plane.at(3)))
    numbers = {time.workload: sorted(int(ref.rsplit("/")[-1]) for ref in time.evidence) for time in times}
    assert len(numbers["a"]) == 3
    assert len(numbers["b"]) == 6


def test_marks_cut_exactly(plane) -> None:
    """What was appended later takes no part."""
    plane.run("a", 0, None, plane.placement())
    marks = plane.ledger.marks()
    plane.tell("a", "stopped", 1)
    for upto, hours in ((marks, 3), (plane.ledger.marks(), 1)):
        with reading(plane.ledger, upto) as read:
            read.want_living(plane.at(0), plane.at(3))
            spans = [(plane.at(hour), plane.at(hour + 1)) for hour in range(3)]
            assert len(list(read.times(spans, until_us=plane.at(3)))) == hours


def test_a_heartbeat_ends_what_is_open(plane) -> None:
    """Of its own source only."""
    plane.run("a", 0, None, plane.placement(), source="cp")
    plane.run("b", 0, None, plane.placement("n2"), source="other")
    plane.beat(Fraction(3, 2), source="cp")
    found = derived(plane, 4)
    assert sum(amount for (workload, *_), amount in found.items() if workload == "a") == HOUR_US * 3 // 2
    assert sum(amount for (workload, *_), amount in found.items() if workload == "b") == HOUR_US * 4


def test_only_whom_new_events_touch_is_asked_for(plane) -> None:
    """From the hour of the earliest new event on."""
    plane.run("a", 0, None, plane.placement())
    plane.run("b", 0, None, plane.placement("n2"))
    seen = plane.ledger.marks()
    plane.tell("b", "stopped", Fraction(5, 2))
    with reading(plane.ledger, plane.ledger.marks()) as read:
        read.want_unseen(seen)
        assert read.wanted() == {"b"}
        assert read.first_hour() == plane.at(2)
        assert len(read.events_after("b", seen)) == 1
        read.drop_from(plane.at(2))
        assert read.wanted() == set()
        assert isinstance(read.first_hour(), Missing)


def test_who_cannot_have_time_is_left_out(plane) -> None:
    """A workload that ended before, and of which nothing is told in the span."""
    plane.run("old", 0, 1, plane.placement())
    plane.run("long", 0, None, plane.placement("n2"))
    plane.run("new", 6, 7, plane.placement("n3"))
    plane.run("later", 20, 21, plane.placement("n4"))
    with reading(plane.ledger, plane.ledger.marks()) as read:
        read.want_living(plane.at(5), plane.at(8))
        assert read.wanted() == {"long", "new"}


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_reader_without_the_right_to_write_can_derive(plane) -> None:
    """The relations are temporary tables: nothing of the file changes."""
    from gpuledger.ledger.store import Ledger

    plane.run("a", 0, 2, plane.placement())
    plane.ledger.close()
    before = plane.place.read_bytes()
    with Ledger.open(plane.place, mode="read") as ledger, reading(ledger, ledger.marks()) as read:
        read.want_living(plane.at(0), plane.at(3))
        assert len(list(read.times([(plane.at(0), plane.at(1))], until_us=plane.at(1)))) == 1
        assert [event.state for event in read.events("a")] == ["provisioning", "running", "stopped"]
    assert plane.place.read_bytes() == before
    plane.ledger = Ledger.open(plane.place, mode="append")
