"""Look-ups beside the rule: along time, by workload, and of what is recorded."""

from __future__ import annotations

from control_plane import ControlPlane
from gpuledger.ledger.reserved import reading
from gpuledger.model.missing import Missing

EVERY_STORE = True


def test_events_along_time_and_records_of_hours(new_place) -> None:
    """When something is told next, when so many were told, and what stands of an hour."""
    plane = ControlPlane(new_place("plane.db"))
    plane.run("a", 1, 3, plane.placement())
    plane.meter(5)
    with reading(plane.ledger, plane.ledger.marks()) as read:
        assert read.next_event(plane.at(2)) == plane.at(3)
        assert isinstance(read.next_event(plane.at(4)), Missing)
        assert read.event_after(plane.at(0), 2) == plane.at(3)
        assert isinstance(read.event_after(plane.at(0), 3), Missing)
        assert read.sources() == {"cp": False}
        (subject,) = {event.subject for event in read.events("a")}
        assert read.workloads_of(subject) == ["a"]
        assert [row[5] for row in read.recorded(plane.at(1), plane.at(2))] == [3600]
        assert read.has_records(plane.at(2), plane.at(3))
        assert not read.has_records(plane.at(3), plane.at(9))
    plane.ledger.close()
