"""Usage of reserved time: recorded, due and open time, each second once, up to the moment asked."""

from __future__ import annotations

from fractions import Fraction

from control_plane import ControlPlane
from gpuledger.model.meters import GPU_RESERVED
from gpuledger.model.missing import Missing
from gpuledger.model.reserved import ReservedReport
from gpuledger.model.rows import DeviceEvent
from gpuledger.operations.usage_reserved import owned_times, usage_reserved

EVERY_STORE = True


def asked(plane: ControlPlane, since: float, until: float, *by: str, now: float = 100) -> ReservedReport:
    return usage_reserved(
        plane.ledger, meter=GPU_RESERVED, by=by, since_us=plane.at(since), until_us=plane.at(until),
        now_us=plane.at(now),
    )  # fmt: skip


def test_the_same_answer_before_and_after_the_pass(plane) -> None:
    """Only what is provisional changes."""
    plane.run("a", Fraction(1, 2), 5, plane.placement(share="1/3"))
    before = asked(plane, 0, 10, "user", "hour")
    plane.meter(10)
    after = asked(plane, 0, 10, "user", "hour")
    assert before.total == after.total == Fraction(9, 2) * 1200
    assert [row.key for row in before.rows] == [row.key for row in after.rows]
    assert (before.provisional, after.provisional) == (before.total, 0)


def test_an_open_workload_counts_up_to_now(plane) -> None:
    """The hour that goes on too."""
    plane.run("a", 0, None, plane.placement())
    plane.meter(2)
    report = asked(plane, 0, Fraction(13, 4), now=Fraction(13, 4))
    assert report.total == 13 * 900
    assert report.provisional == 9 * 900


def test_a_late_stop_is_shown_before_it_is_booked(plane) -> None:
    """As the next pass will book it, marked as provisional."""
    plane.run("a", 0, None, plane.placement())
    plane.meter(5)
    plane.tell("a", "stopped", 1)
    report = asked(plane, 0, 5, now=5)
    assert (report.total, report.provisional) == (3600, -3600 * 3)


def test_the_first_hour_needs_no_cut_where_nothing_lies_before(plane) -> None:
    """Its record says what the window asks, so nothing of it is provisional."""
    plane.run("a", Fraction(1, 2), 3, plane.placement())
    plane.meter(4)
    assert asked(plane, Fraction(1, 2), 4).provisional == 0
    assert asked(plane, Fraction(3, 4), 4).provisional == 900


def test_nothing_told_is_no_zero(plane) -> None:
    """A ledger without one transition has no answer; with one, a window without any has."""
    assert isinstance(asked(plane, 0, 1).total, Missing)
    plane.run("a", 0, 1, plane.placement())
    assert asked(plane, 5, 6).total == 0


def test_owned_devices_count_from_first_sight_until_they_are_lost(plane) -> None:
    """Slices are part of their device, and not owned beside it."""

    def device(event: str, hour: float, uuid: str = "GPU-a", parent: str = "") -> DeviceEvent:
        return DeviceEvent(
            host="n1", device=uuid, at_us=plane.at(hour), event=event, class_name="H100", product="x", memory_mib=1,
            parent=parent, method="nvml",
        )  # fmt: skip

    plane.ledger.append(
        [device("seen", 1), device("lost", 3), device("seen", 5), device("seen", 1, "MIG-b", "GPU-a")],
        writer="n1.agent", at_us=plane.at(5),
    )  # fmt: skip
    found = owned_times(plane.ledger, since_us=plane.at(0), until_us=plane.at(6))
    assert [(span.since_us, span.until_us) for span in found] == [
        (plane.at(1), plane.at(3)), (plane.at(5), plane.at(6)),
    ]  # fmt: skip
