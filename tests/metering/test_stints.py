"""Stints: what their looks say."""

from typing import Any

from gpuledger.metering.stints import Stint, look_span


def test_a_look_over_a_clock_set_back_has_no_length(make: Any) -> None:
    """Only its last moment is kept: no negative time, no time twice."""
    assert look_span(make.look(500, 100)) == (make.at(100), make.at(100))
    assert look_span(make.look(100, 500)) == (make.at(100), make.at(500))


def test_a_stint_knows_its_last_look_its_processes_and_who_missed_it(make: Any) -> None:
    """Taken over all looks, whatever their order."""
    looks = [make.look(300, 400, gone=410), make.look(0, 200, start_ticks=0, boot_id="")]
    stint = Stint("box", "GPU-0", 7, None, ((0, 1), (3, 4)), False, 2, "looks", [], looks)
    assert stint.last_look_us == make.at(400)
    assert stint.missed_us == make.at(410)
    assert stint.processes == {("b", 1)}
    assert stint.span == (0, 4)


def test_a_stint_that_nobody_missed_says_so(make: Any) -> None:
    """No look found it gone: None, not a time."""
    stint = Stint("box", "GPU-0", 7, None, ((0, 1),), False, 1, "looks", [], [make.look(0, 200)])
    assert stint.missed_us is None
