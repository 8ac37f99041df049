"""What reservations do not tell: each reason with its size, and none where all is told."""

from __future__ import annotations

from fractions import Fraction

from control_plane import ControlPlane
from gpuledger.model.moments import HOUR_US
from gpuledger.model.reserved import ReservedGap
from gpuledger.operations.blind import blind
from gpuledger.operations.blind_reserved import late_differences, reserved_gaps

EVERY_STORE = True


def gaps(plane: ControlPlane, since: float, until: float, now: float | None = None) -> list[tuple[str, str, int]]:
    found: list[ReservedGap] = reserved_gaps(
        plane.ledger, since_us=plane.at(since), until_us=plane.at(until), now_us=plane.at(now or until)
    )  # fmt: skip
    return [(str(gap.reason), gap.what, gap.seconds) for gap in found]


def test_what_is_told_leaves_no_gap(plane) -> None:
    """Nor does a ledger without any transition, or an empty window."""
    assert gaps(plane, 0, 5) == []
    plane.run("a", 0, 3, plane.placement())
    plane.beat(4)
    plane.meter(5)
    assert gaps(plane, 0, 5) == []
    assert gaps(plane, 2, 2, now=5) == []


def test_time_without_a_placement_is_cut_by_the_window(plane) -> None:
    """In whole seconds, a workload each."""
    plane.tell("a", "provisioning", 0)
    plane.tell("a", "running", 1)
    plane.tell("a", "stopped", 3)
    assert gaps(plane, 0, 5) == [("unplaced", "a", 7200)]
    assert gaps(plane, Fraction(3, 2), 2, now=5) == [("unplaced", "a", 1800)]


def test_a_beat_on_its_way_is_no_silence(plane) -> None:
    """Two may be missing; then the time since the last one is sized, whatever is open of that source."""
    plane.run("a", 0, None, plane.placement())
    plane.beat(1, interval_ms=60_000)
    assert gaps(plane, 0, 1 + Fraction(1, 40)) == []
    assert gaps(plane, 0, 2) == [("controller-silent", "cp", 3600)]


def test_what_a_history_leaves_open_is_unknown_beyond_it(plane) -> None:
    """Nobody tells until when it ran: no zero. The hour in which it was imported is left to it, as to its window."""
    words = {"source": "dump", "declared": True}
    plane.run("a", 0, None, plane.placement(), **words)
    plane.run("b", 0, 2, plane.placement("n2"), **words)
    assert gaps(plane, 0, 3) == [("controller-silent", "dump", 3 * 3600)]
    plane.beat(Fraction(5, 2), source="dump", interval_ms=0)
    assert gaps(plane, 0, 3) == []
    assert gaps(plane, 0, 4) == [("controller-silent", "dump", 5400)]
    assert gaps(plane, 10, 12) == [("controller-silent", "dump", 7200)]
    assert gaps(plane, 0, 2, now=12) == []
    plane.tell("a", "stopped", 11, **words)
    assert gaps(plane, 0, 12) == []


def test_a_history_told_by_a_controller_that_beats_is_silent_as_it_is(plane) -> None:
    """What it promised counts, and not the hour."""
    plane.run("a", 0, None, plane.placement(), declared=True)
    plane.beat(1, interval_ms=3_600_000)
    assert gaps(plane, 0, Fraction(5, 2)) == []
    assert gaps(plane, 0, 4) == [("controller-silent", "cp", 3 * 3600)]


def test_one_source_may_share_a_device(plane) -> None:
    """Two workloads of one source hold parts of it; two sources at once are a finding, for as long as they are."""
    plane.run("a", 0, 2, plane.placement(devices=("GPU-a",), share="1/2"))
    plane.run("b", 0, 2, plane.placement(devices=("GPU-a",), share="1/2"))
    assert gaps(plane, 0, 3) == []
    plane.run("c", Fraction(3, 2), 3, plane.placement(devices=("GPU-a",)), source="slurm")
    assert gaps(plane, 0, 3) == [("double-source", "GPU-a", 1800)]
    plane.run("d", 2, 3, plane.placement(devices=("GPU-b",)), source="slurm")
    plane.run("e", 0, 2, plane.placement(devices=("GPU-b",)))
    assert ("double-source", "GPU-b", 0) not in gaps(plane, 0, 3)


def test_late_evidence_is_listed_as_long_as_nobody_books_it(plane) -> None:
    """Also when later passes have seen the event; not in windows that it does not touch."""
    plane.run("a", 0, 3, plane.placement())
    plane.meter(4)
    plane.tell("a", "stopped", 1)
    for hour in (60, 61, 90):
        plane.meter(hour)
        assert gaps(plane, 0, hour) == [("late-evidence", "a", -7200)]
    assert gaps(plane, 5, 90) == []
    assert len(late_differences(plane.ledger, since_us=plane.at(2), until_us=plane.at(9), now_us=plane.at(90))) == 1


def test_a_late_move_is_more_than_the_zero_that_it_comes_to(plane) -> None:
    """What goes from one placement to another is said by its size on each."""
    plane.run("a", 0, 3, plane.placement())
    plane.meter(4)
    plane.tell("a", "running", Fraction(3, 2), plane.placement("n2"))
    plane.meter(60)
    (gap,) = reserved_gaps(plane.ledger, since_us=plane.at(0), until_us=plane.at(60), now_us=plane.at(60))
    assert (str(gap.reason), gap.seconds) == ("late-evidence", 0)
    assert gap.detail == (
        "gpu.reserved, 2 final hours: 1 h 30 min less on one placement or owner, 1 h 30 min more on another"
    )


def test_what_ends_a_silence_is_late_for_the_hours_of_the_silence(plane) -> None:
    """A controller was away for days: its stop lies in hours that are not final when it comes, and adds time to those
    that are. They stay listed when all of it is final."""
    plane.run("a", 0, None, plane.placement())
    plane.beat(1)
    for hour in (10, 30, 50):
        plane.meter(hour)
    plane.tell("a", "stopped", 45)
    plane.beat(60)
    plane.meter(60)
    for hour in (60, 99, 120):
        late = late_differences(plane.ledger, since_us=plane.at(0), until_us=plane.at(hour), now_us=plane.at(hour))
        assert [(one.hour_us - plane.at(0)) // HOUR_US for one in late] == list(range(1, 9)), hour
        plane.meter(hour)


def test_blind_has_them_too(plane) -> None:
    """Beside what agents did not see; a ledger of transitions alone is an answer."""
    plane.tell("a", "provisioning", 0)
    plane.tell("a", "running", 1)
    report = blind(plane.ledger, since_us=plane.at(0), until_us=plane.at(2), now_us=plane.at(2))
    assert [gap.what for gap in report.reserved] == ["a"]
    assert report.is_told
