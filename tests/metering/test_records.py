"""Records and corrections: what is written down follows the evidence, by new rows only."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from gpuledger.metering.records import closed_until, compare, evidence_hash
from gpuledger.model.moments import HOUR_US, MINUTE_US
from gpuledger.model.quantities import Quantity

HOUR = 500_000 * HOUR_US
NEXT = HOUR + HOUR_US


def quantity(subject: str, amount: int, **words: Any) -> Quantity:
    row = Quantity(
        meter="gpu.context", hour_us=HOUR, host="box", device="GPU-0", subject=subject, context="settled",
        quantity=amount, evidence=frozenset({"driver:box.agent/1"}),
    )  # fmt: skip
    return replace(row, **words)


def test_an_hour_is_closed_five_minutes_after_its_end() -> None:
    """Not a microsecond before."""
    assert closed_until(NEXT + 5 * MINUTE_US) == NEXT
    assert closed_until(NEXT + 5 * MINUTE_US - 1) == HOUR


def test_the_hash_is_over_sorted_references_one_a_line() -> None:
    """As the record's documentation says, so that anybody can check it."""
    assert evidence_hash(["b:1/2", "a:1/1"]) == hashlib.sha256(b"a:1/1\nb:1/2").hexdigest()[:16]


def test_hours_never_covered_are_inserted() -> None:
    """One record for each key, context tags apart, parts of several windows added up."""
    derived = [
        quantity("a", 5),
        quantity("a", 7, evidence=frozenset({"driver:box.agent/2"})),
        quantity("a", 1, context="gone"),
    ]
    records, corrections = compare(derived, [], [], covered_hours=set(), recorded_at_us=9)
    assert [(r.context, r.quantity, r.evidence_count, r.recorded_at_us) for r in records] == [
        ("gone", 1, 1, 9), ("settled", 12, 2, 9),
    ]  # fmt: skip
    assert corrections == []


def test_a_second_comparison_changes_nothing() -> None:
    """Whether the hour is told as covered or holds rows already."""
    records, _ = compare([quantity("a", 5)], [], [], covered_hours=set(), recorded_at_us=9)
    for covered in (set(), {HOUR}):
        assert compare([quantity("a", 5)], records, [], covered_hours=covered, recorded_at_us=10) == ([], [])


def test_settlement_after_the_hour_changes_nothing() -> None:
    """The context tag takes no part: observed then, settled now, the same amount."""
    open_now = quantity("a", 5, context="7@1")
    records, _ = compare([open_now], [], [], covered_hours=set(), recorded_at_us=9)
    assert compare([quantity("a", 5)], records, [], covered_hours={HOUR}, recorded_at_us=10) == ([], [])


def test_late_evidence_is_a_correction_and_later_evidence_the_next() -> None:
    """Signed differences against records and all corrections before, numbered within their key."""
    records, _ = compare([quantity("a", 5)], [], [], covered_hours=set(), recorded_at_us=9)
    _, first = compare([quantity("a", 9)], records, [], covered_hours={HOUR}, recorded_at_us=10)
    _, second = compare([quantity("a", 2)], records, first, covered_hours={HOUR}, recorded_at_us=11)
    assert [(c.correction_number, c.delta, c.reason) for c in first + second] == [
        (1, 4, "late-evidence"), (2, -7, "late-evidence"),
    ]  # fmt: skip
    assert compare([quantity("a", 2)], records, first + second, covered_hours={HOUR}, recorded_at_us=12) == ([], [])


def test_a_covered_hour_without_rows_is_corrected_too() -> None:
    """It was final as nothing; what comes late is a correction, not a record."""
    records, corrections = compare([quantity("a", 5)], [], [], covered_hours={HOUR}, recorded_at_us=9)
    assert (records, [c.delta for c in corrections]) == ([], [5])
    uncovered, _ = compare([quantity("a", 5, hour_us=NEXT)], [], [], covered_hours={HOUR}, recorded_at_us=9)
    assert [r.hour_us for r in uncovered] == [NEXT]


def test_covered_hours_may_be_a_question() -> None:
    """A function answers as well as a set."""
    _, corrections = compare([quantity("a", 5)], [], [], covered_hours=lambda hour_us: hour_us < NEXT, recorded_at_us=9)
    assert len(corrections) == 1


def test_a_key_no_longer_derived_is_taken_back() -> None:
    """With the evidence that now stands behind the hour."""
    records, _ = compare([quantity("a", 5)], [], [], covered_hours=set(), recorded_at_us=9)
    _, (taken,) = compare([], records, [], covered_hours={HOUR}, recorded_at_us=10)
    assert (taken.delta, taken.evidence_count, taken.reason) == (-5, 0, "late-evidence")


@pytest.mark.parametrize(
    ("now", "reasons"),
    [
        ([("b", 6)], {"a": "late-name", "b": "late-name"}),
        ([("b", 4), ("c", 2)], {"a": "late-name", "b": "late-name", "c": "late-name"}),
        ([("a", 6), ("b", 2)], {"b": "late-evidence"}),
        ([("b", 9)], {"a": "late-evidence", "b": "late-evidence"}),
    ],
    ids=["renamed", "split by name", "more evidence", "both at once"],
)
def test_an_amount_that_changed_its_name_says_so(now: list[tuple[str, int]], reasons: dict[str, str]) -> None:
    """Opposite amounts within one device and hour are a name that came late."""
    records, _ = compare([quantity("a", 6)], [], [], covered_hours=set(), recorded_at_us=9)
    derived = [quantity(subject, amount, evidence=frozenset({"driver:x/7"})) for subject, amount in now]
    _, corrections = compare(derived, records, [], covered_hours={HOUR}, recorded_at_us=10)
    assert {c.subject: c.reason for c in corrections} == reasons
    assert {c.evidence_hash for c in corrections} == {evidence_hash(["driver:x/7"])}


def test_devices_do_not_borrow_each_others_amounts() -> None:
    """The same amount on two devices is not one that changed its name."""
    records, _ = compare([quantity("a", 6)], [], [], covered_hours=set(), recorded_at_us=9)
    _, corrections = compare([quantity("a", 6, device="GPU-1")], records, [], covered_hours={HOUR}, recorded_at_us=10)
    assert [(c.device, c.delta, c.reason) for c in corrections] == [
        ("GPU-0", -6, "late-evidence"), ("GPU-1", 6, "late-evidence"),
    ]  # fmt: skip


def test_a_clock_step_in_the_hour_is_the_reason(make: Any) -> None:
    """Told by a watch row of the device or the host; another hour's step is not."""
    records, _ = compare([quantity("a", 6)], [], [], covered_hours=set(), recorded_at_us=9)
    step = make.watch(1000, 1000, source="driver", status="clock-step")
    for watch, reason in (
        (step, "clock-step"),
        (replace(step, source="process", device=""), "clock-step"),
        (replace(step, host="other"), "late-evidence"),
        (make.watch(3_700_000, 3_700_000, source="driver", status="clock-step"), "late-evidence"),
    ):
        _, (correction,) = compare(
            [quantity("a", 4)], records, [], covered_hours={HOUR}, recorded_at_us=10, watches=[watch]
        )
        assert correction.reason == reason
