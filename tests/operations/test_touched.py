"""Which hours have evidence that no pass has seen."""

from __future__ import annotations

import json

from gpuledger.model.moments import HOUR_US
from gpuledger.model.rows import Pass
from gpuledger.operations.touched import seen_by, touched_hours


def a_pass(number: int, at_us: int, **marks: int) -> Pass:
    return Pass(
        writer="box.meter", number=number, at_us=at_us, covered_from_us=0, covered_until_us=HOUR_US,
        evidence_marks=json.dumps(marks), records_added=0, corrections_added=0,
    )  # fmt: skip


def hours(box, passes: list[Pass]) -> list[int]:
    touched = touched_hours(box.ledger, passes, box.ledger.marks())
    return sorted((hour_us - box.at(0)) // HOUR_US for hour_us in touched)


def test_the_highest_mark_of_each_writer_counts_whatever_time_a_pass_ran_for() -> None:
    """A pass for an earlier time may have seen more rows."""
    assert seen_by([a_pass(1, 900, agent=7), a_pass(2, 100, agent=9, imports=2)]) == {"agent": 9, "imports": 2}
    assert seen_by([]) == {}


def test_new_rows_touch_their_hours_and_seen_rows_none(box) -> None:
    """Work does not grow with history."""
    box.append(box.settled(7, 90, 60_000, read=95), minute=95)
    assert hours(box, []) == [1]
    assert hours(box, [a_pass(1, 0, **box.ledger.marks())]) == []


def test_a_long_process_touches_what_no_look_had_proven(box) -> None:
    """Its looks gave the hours before; its row gives the end."""
    box.append(box.seen(7, 60, 575, start=60), minute=575)
    seen = a_pass(1, 0, **box.ledger.marks())
    box.append(box.settled(7, 60, 520 * 60_000, read=581), minute=581)
    assert hours(box, [seen]) == [9]


def test_a_long_process_that_nobody_saw_touches_all_its_hours(box) -> None:
    """Nothing had told of it before."""
    box.append(box.settled(7, 90, 180 * 60_000, read=280), minute=280)
    assert hours(box, []) == [1, 2, 3, 4]


def test_a_new_name_touches_what_it_can_name(box) -> None:
    """Rows of its pid that were not over when the process began; a claim without a start can name any."""
    box.append(box.settled(7, 30, 1000, read=31), box.settled(7, 150, 1000, read=151), minute=151)
    seen = a_pass(1, 0, **box.ledger.marks())
    box.append(box.named(7, 140, "tts", seen=151), minute=152)
    assert hours(box, [seen]) == [2]
    seen = a_pass(2, 0, **box.ledger.marks())
    box.append(box.claimed(7, "tts", 31), minute=153)
    assert hours(box, [seen]) == [0, 2]
