"""Clocks that are off and devices that no host sees: each found, sized, and nothing where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from control_plane import ControlPlane
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.blind_controllers import clock_skews, passed_through
from gpuledger.operations.blind_reserved import reserved_gaps
from gpuledger.operations.transition import heartbeat

EVERY_STORE = True


@pytest.fixture
def plane(new_place) -> Iterator[ControlPlane]:
    made = ControlPlane(new_place("plane.db"))
    yield made
    made.ledger.close()


def skews(plane: ControlPlane, since: float, until: float) -> list[tuple[str, int, str]]:
    found = clock_skews(plane.ledger, since_us=plane.at(since), until_us=plane.at(until))
    return [(gap.what, gap.seconds, gap.detail) for gap in found]


def beat(plane: ControlPlane, hour: float, offset_s: int) -> None:
    at_us = plane.at(hour)
    heartbeat(
        plane.ledger, "cp", writer="box.transition", at_us=at_us, interval_us=60_000_000,
        clock_us=at_us + offset_s * 1_000_000,
    )  # fmt: skip


def tell_ahead(plane: ControlPlane, workload: str, hour: float, ahead_s: int, source: str = "cp") -> None:
    """An event that the ledger hears of before it has happened."""
    event = plane.tell(f"{workload}-model", "provisioning", hour, plane.placement(), source=source)
    early = replace(
        event, writer="", number=0, workload=workload, recorded_at_us=event.at_us - ahead_s * 1_000_000
    )  # fmt: skip
    plane.ledger.append([early], writer="box.transition", at_us=event.at_us)


def test_a_reported_skew_counts_what_was_told_under_it(plane) -> None:
    """From the report on to the next one; each of its times may be off by as much."""
    plane.run("a", 0, 1, plane.placement())
    beat(plane, 2, 7)
    plane.run("b", 3, 4, plane.placement())
    beat(plane, 5, 1)
    plane.run("c", 6, 7, plane.placement())
    assert skews(plane, 0, 8) == [("cp", 21, "3 events told by a clock 7 s ahead")]
    assert skews(plane, Fraction(7, 2), 8) == [("cp", 7, "1 event told by a clock 7 s ahead")]
    assert skews(plane, 5, 8) == []


def test_a_clock_within_the_tolerance_is_none(plane) -> None:
    """Nor is a controller that never says, and tells in time."""
    beat(plane, 0, -2)
    plane.run("a", 1, 2, plane.placement())
    plane.run("b", 1, 2, plane.placement(), source="other")
    assert skews(plane, 0, 3) == []


def test_an_event_told_before_it_happened_proves_a_clock_ahead(plane) -> None:
    """Of a live controller; 2 s are tolerated, and what an importer declares of the past proves nothing."""
    tell_ahead(plane, "a", 1, 5, source="fast")
    tell_ahead(plane, "b", 2, 9, source="fast")
    tell_ahead(plane, "c", 2, 2, source="good")
    assert skews(plane, 0, 3) == [("fast", 14, "told 2 events before they had happened, 7 s on average")]
    assert skews(plane, Fraction(3, 2), 3) == [("fast", 9, "told 1 event before they had happened, 9 s on average")]
    assert all(row.is_declared == 0 for row in plane.ledger.scan(WorkloadEvent))


def test_a_device_without_a_uuid_is_metered_and_told(plane) -> None:
    """Its reserved time, once however many share it, cut by the window; one with a UUID is no such device."""
    host = ("lab-3/0000:65:00.0",)
    plane.run("a", 0, 2, plane.placement("lab-3", devices=host, share="1/2"))
    plane.run("b", 1, 3, plane.placement("lab-3", devices=host, share="1/2"))
    plane.run("c", 0, 3, plane.placement("lab-3", devices=("GPU-1",)))
    found = list(passed_through(plane.ledger, since_us=plane.at(Fraction(1, 2)), until_us=plane.at(5)))
    assert [(gap.what, gap.seconds, str(gap.reason)) for gap in found] == [(host[0], 9000, "passthrough")]
    plane.meter(4)
    assert plane.held()[0, "a", "lab-3"] == 3600
    assert not list(passed_through(plane.ledger, since_us=plane.at(3), until_us=plane.at(5)))


def test_both_stand_in_the_list_of_what_is_not_told(plane) -> None:
    """Beside the other reasons, where usage and blind print them."""
    tell_ahead(plane, "a", 1, 5)
    plane.run("v", 0, 2, plane.placement("lab-3", devices=("lab-3/0000:65:00.0",)))
    gaps = reserved_gaps(plane.ledger, since_us=plane.at(0), until_us=plane.at(3), now_us=plane.at(3))
    assert {str(gap.reason) for gap in gaps} >= {"clock-skew", "passthrough"}
