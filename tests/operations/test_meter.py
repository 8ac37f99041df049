"""A metering pass: closed hours become records once, late evidence becomes corrections, and nothing is lost."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from control_plane import ControlPlane
from gpuledger.ledger.store import Ledger
from gpuledger.model.outcomes import MeterReport
from gpuledger.model.rows import Pass, UsageCorrection, UsageRecord
from gpuledger.operations.meter import meter
from gpuledger.operations.usage import usage
from gpuledger.operations.verify import verify

EVERY_STORE = True


def run(box, minute: float, ledger: Ledger | None = None) -> MeterReport:
    return meter(ledger or box.ledger, now_us=box.at(minute), writer="box.meter")


def recorded(box, meter_name: str = "gpu.context") -> dict[tuple[int, str], int]:
    """(hour, service) to records + corrections."""
    texts = box.ledger.texts(None)
    found: dict[tuple[int, str], int] = {}
    rows: list[Any] = [*box.ledger.scan(UsageRecord), *box.ledger.scan(UsageCorrection)]
    for row in rows:
        if row.meter == meter_name:
            text = texts.get(row.subject)
            name = row.subject if text is None else text.service or text.unit.removesuffix(".service")
            key = ((row.hour_us - box.at(0)) // 3_600_000_000, name)
            found[key] = found.get(key, 0) + (row.quantity if isinstance(row, UsageRecord) else row.delta)
    return {key: quantity for key, quantity in found.items() if quantity}


def test_closed_hours_become_records(box) -> None:
    """By hour and subject; what has no name keeps its cause."""
    box.tell_a_morning()
    report = run(box, 125)
    assert (report.covered_from_us, report.covered_until_us, report.open_from_us) == (
        box.at(0), box.at(120), box.at(120),
    )  # fmt: skip
    assert recorded(box) == {
        (0, "chat"): 2_400_000,
        (1, "chat"): 1_200_000,
        (0, "unattributed:between-samples"): 600,
        (1, "tts"): 1_800_000,
    }
    assert recorded(box, "gpu.memory") == {(1, "tts"): 180_000}


def test_a_second_pass_adds_nothing(box) -> None:
    """Not a record, not a correction, not even a row of its own."""
    box.tell_a_morning()
    run(box, 125)
    before = box.ledger.marks()
    report = run(box, 126)
    assert (report.records, report.corrections, report.covered_from_us) == ((), (), report.covered_until_us)
    assert box.ledger.marks() == before


def test_two_passes_of_two_processes_book_each_difference_once(box) -> None:
    """Each read before the other wrote: the keys of records tell what is there already."""
    box.tell_a_morning()
    with Ledger.open(box.place, mode="append") as other:
        first, second = run(box, 125), run(box, 125, other)
    assert first.records
    assert not second.records
    assert not box.ledger.count(UsageCorrection)


@pytest.mark.parametrize(("minute", "hours"), [(64.9, 0), (65, 1), (124.9, 1), (125, 2)])
def test_an_hour_closes_five_minutes_after_it_is_over(box, minute: float, hours: int) -> None:
    """Evidence of its last minutes has a chance to arrive."""
    box.tell_a_morning()
    run(box, minute)
    assert len({hour for hour, _ in recorded(box)}) == hours


def test_an_hour_that_closes_later_is_recorded_from_evidence_seen_before(box) -> None:
    """The pass that saw the evidence could not book it yet; no new row comes after it."""
    box.tell_a_morning()
    run(box, 70)
    run(box, 500)
    assert recorded(box)[1, "tts"] == 1_800_000
    assert verify(box.ledger, now_us=box.at(501)).ok


def test_evidence_dated_after_a_pass_is_not_lost(box) -> None:
    """A pass for an earlier time (--now, or a clock set back) has seen rows of hours that close long after it."""
    box.append(box.device(0), box.naming(0, 600), box.named(7, 1, "chat", seen=10), box.settled(7, 10, 60_000, read=11))
    box.append(box.named(8, 490, "chat", seen=500), box.settled(8, 500, 60_000, read=501))
    run(box, 65)
    run(box, 700)
    assert recorded(box) == {(0, "chat"): 60_000, (8, "chat"): 60_000}


def test_late_evidence_is_a_correction_and_the_record_stands(box) -> None:
    """A driver row read after its hour was closed: a signed delta with its reason, never a changed record."""
    box.tell_a_morning()
    run(box, 125)
    records = list(box.ledger.scan(UsageRecord))
    box.append(box.named(7, 15, "chat", seen=22), box.settled(7, 85, 60_000, read=130), minute=130)
    report = run(box, 131)
    assert [(row.delta, row.reason, row.correction_number) for row in report.corrections] == [
        (60_000, "late-evidence", 1)
    ]
    assert list(box.ledger.scan(UsageRecord)) == records
    assert run(box, 132).corrections == ()


def test_a_late_name_moves_the_amount(box) -> None:
    """A pid map that arrives after the hour was closed: minus there, plus here, and the total stays."""
    box.tell_a_morning()
    run(box, 125)
    before = recorded(box)
    box.append(box.claimed(8, "backup", 40.02), minute=300, role="import")
    report = run(box, 310)
    assert sorted((row.delta, row.reason) for row in report.corrections) == [
        (-600, "late-name"), (600, "late-name"),
    ]  # fmt: skip
    after = recorded(box)
    assert (0, "unattributed:between-samples") not in after
    assert after[0, "backup"] == 600
    assert sum(after.values()) == sum(before.values())
    assert verify(box.ledger, now_us=box.at(311)).ok


def test_a_settlement_of_what_was_observed_changes_nothing(box) -> None:
    """The hour was known without waiting for the driver: its later row says the same ms."""
    box.tell_a_morning()
    run(box, 125)
    box.append(box.seen(9, 120, 150, start=90, gone=150), box.settled(9, 90, 3_600_000, read=150), minute=150)
    report = run(box, 200)
    assert report.corrections == ()
    assert recorded(box)[1, "tts"] + recorded(box)[2, "tts"] == 3_600_000


def test_hours_without_use_are_covered_too(box) -> None:
    """That nothing was used is an answer of the pass, and is not derived again for ever."""
    box.append(box.device(0), box.naming(0, 600), box.named(7, 1, "chat", seen=10), box.settled(7, 10, 60_000, read=11))
    run(box, 665)
    assert [(row.covered_from_us, row.covered_until_us) for row in box.ledger.scan(Pass)] == [(box.at(0), box.at(660))]
    assert run(box, 725).hours_derived <= 2


def test_an_empty_ledger_has_nothing_to_close(box) -> None:
    """No record; and a row that comes later for an earlier hour is still recorded."""
    assert run(box, 125).records == ()
    box.append(box.device(0), box.naming(0, 60), box.named(7, 1, "chat", seen=10), box.settled(7, 10, 60_000, read=11))
    run(box, 130)
    assert recorded(box) == {(0, "chat"): 60_000}


def test_usage_says_the_same_before_and_after_a_pass(box) -> None:
    """Provisional and recorded hours are the same arithmetic."""
    box.tell_a_morning()

    def asked() -> list[tuple[Any, int]]:
        report = usage(
            box.ledger, meter="gpu.context", by=("service", "hour"), since_us=box.at(0), until_us=box.at(130),
            now_us=box.at(130),
        )  # fmt: skip
        return [(row.key, row.quantity) for row in report.rows]

    before = asked()
    run(box, 126)
    assert asked() == before


def test_a_pass_tells_how_many_hours_it_derived_of_each_kind(box, tmp_path) -> None:
    """Of processes, and of reserved time apart: the hours that closed, and late ones; nothing where nothing is new."""
    plane = ControlPlane(tmp_path / "plane.db")
    plane.run("a", 0, None, plane.placement())
    found = [plane.meter(hour) for hour in (4, 4, 6)]
    plane.tell("a", "stopped", Fraction(9, 2))
    found.append(plane.meter(6))
    assert [each.reserved_hours_derived for each in found] == [3, 0, 2, 1]
    plane.ledger.close()
    box.tell_a_morning()
    report = run(box, 126)
    assert (report.hours_derived > 0, report.reserved_hours_derived) == (True, 0)
