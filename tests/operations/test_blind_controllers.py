"""Clocks that are off and devices that no host sees: each found, sized, and nothing where there is none."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from control_plane import ControlPlane
from gpuledger.model.rows import Watch
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.blind_controllers import clock_skews, clock_steps, passed_through, unseen_in_guests
from gpuledger.operations.blind_reserved import reserved_gaps
from gpuledger.operations.transition import heartbeat

EVERY_STORE = True


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


def step(plane: ControlPlane, since: float, until: float, host: str = "box") -> None:
    """An agent's rows of a clock that was set: one for each device, and one of each source."""
    rows = [
        Watch(
            host=host, device=device, source="driver", method="poll", interval_ms=1000, since_us=plane.at(since),
            until_us=plane.at(until), status="clock-step", detail="the clock was set forward 360 s", readings=0,
        )
        for device in ("GPU-0", "GPU-1")
    ]  # fmt: skip
    plane.ledger.append(rows, writer=f"{host}.agent", at_us=plane.at(until))


def test_a_clock_that_was_set_under_running_workloads_is_told(plane) -> None:
    """Of the machine on which they are told of: each interval may be wrong by the step. Nothing else is in doubt."""
    plane.run("over", 0, 4, plane.placement())
    plane.run("open", 1, None, plane.placement("n2"))
    plane.run("before", 0, 1, plane.placement("n3"))
    plane.run("history", 0, 4, plane.placement("n4"), declared=True)
    step(plane, 2, Fraction(21, 10))
    step(plane, 2, Fraction(21, 10), host="elsewhere")
    found = list(clock_steps(plane.ledger, since_us=plane.at(0), until_us=plane.at(5)))
    assert [(gap.what, gap.seconds, gap.detail) for gap in found] == [
        ("box", 720, "the clock was set forward 360 s, under 2 running workloads told on it")
    ]
    assert (found[0].since_us, found[0].until_us) == (plane.at(2), plane.at(Fraction(21, 10)))
    assert not list(clock_steps(plane.ledger, since_us=plane.at(3), until_us=plane.at(5)))
    assert found[0] in reserved_gaps(plane.ledger, since_us=plane.at(0), until_us=plane.at(5), now_us=plane.at(5))


def test_several_steps_are_one_line(plane) -> None:
    """With the sum of what each may have cost."""
    plane.run("over", 0, 4, plane.placement())
    plane.run("later", 3, 5, plane.placement("n2"))
    step(plane, 2, Fraction(21, 10))
    step(plane, Fraction(7, 2), Fraction(36, 10))
    (gap,) = clock_steps(plane.ledger, since_us=plane.at(0), until_us=plane.at(5))
    assert (gap.seconds, gap.detail) == (
        360 * 3,
        "the clock was set forward 360 s, under 2 running workloads told on it",
    )


def test_a_device_without_a_uuid_counts_as_long_as_it_is_metered(plane) -> None:
    """To the last beat of a silent controller, and no further."""
    plane.run("a", 0, None, plane.placement("lab-3", devices=("lab-3/0000:65:00.0",)))
    plane.beat(2)
    (gap,) = passed_through(plane.ledger, since_us=plane.at(0), until_us=plane.at(5))
    assert (gap.seconds, gap.until_us) == (7200, plane.at(2))


def test_a_device_without_a_uuid_is_metered_and_told(plane) -> None:
    """Its reserved time, once however many share it, cut by the window; one with a UUID is no such device."""
    host = ("lab-3/0000:65:00.0",)
    plane.run("a", 0, 2, plane.placement("lab-3", devices=host, share="1/2"))
    plane.run("b", 1, 3, plane.placement("lab-3", devices=host, share="1/2"))
    plane.run("c", 0, 3, plane.placement("lab-3", devices=("GPU-1",)))
    found = list(passed_through(plane.ledger, since_us=plane.at(Fraction(1, 2)), until_us=plane.at(5)))
    assert [(gap.what, gap.seconds, str(gap.reason)) for gap in found] == [(host[0], 9000, "passthrough")]
    unseen = unseen_in_guests(plane.ledger, since_us=plane.at(Fraction(1, 2)), until_us=plane.at(5))
    assert [(each.host, each.device, each.reason) for each in unseen] == [("lab-3", host[0], "passthrough")]
    assert [(each.since_us, each.until_us) for each in unseen] == [(plane.at(Fraction(1, 2)), plane.at(3))]
    plane.meter(4)
    assert plane.held()[0, "a", "lab-3"] == 3600
    assert not list(passed_through(plane.ledger, since_us=plane.at(3), until_us=plane.at(5)))


def test_both_stand_in_the_list_of_what_is_not_told(plane) -> None:
    """Beside the other reasons, where usage and blind print them."""
    tell_ahead(plane, "a", 1, 5)
    plane.run("v", 0, 2, plane.placement("lab-3", devices=("lab-3/0000:65:00.0",)))
    gaps = reserved_gaps(plane.ledger, since_us=plane.at(0), until_us=plane.at(3), now_us=plane.at(3))
    assert {str(gap.reason) for gap in gaps} >= {"clock-skew", "passthrough"}
