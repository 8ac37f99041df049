"""What fair share reads: sums with weights are the sums, who waits, what history leaves open."""

from __future__ import annotations

import pytest

from gpuledger.errors import Corrupt
from gpuledger.ledger.share_reads import (
    HourWeight,
    events_of,
    first_hour,
    identity_values,
    make_relations,
    may_wait,
    open_history,
    values_of,
    weighted_sums,
)
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.rows import UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import WorkloadEvent

EVERY_STORE = True

HOUR = 60
METER = "gpu.reserved"


def record(
    box, subject: str, hour: int, quantity: int, *, meter: str = METER, device: str = "placement:a"
) -> UsageRecord:
    return UsageRecord(
        meter=meter, hour_us=box.at(hour * HOUR), host="", device=device, subject=subject, context="reserved",
        quantity=quantity, evidence_count=1, evidence_hash="0" * 64, recorded_at_us=box.at(9 * HOUR),
    )  # fmt: skip


def event(box, workload: str, state: str, minute: float, sequence: int, **words) -> WorkloadEvent:
    row = {
        "workload": workload, "event_id": f"{state}{sequence}", "sequence": sequence, "state": state,
        "at_us": box.at(minute), "recorded_at_us": box.at(minute), "source": "lab",
        "subject": box.ledger.key_of(IdentityText(workload=workload)),
    }  # fmt: skip
    return WorkloadEvent(**row | words)


def test_quantities_are_added_up_with_what_their_hour_counts(box) -> None:
    """Corrections beside; other meters, and hours that do not count, are left out; a large weight does not overflow."""
    large = (1 << 31) - 1
    correction = UsageCorrection(
        meter=METER, hour_us=box.at(0), host="", device="placement:a", subject="s", correction_number=1, delta=-600,
        reason="late-evidence", evidence_count=1, evidence_hash="0" * 64, recorded_at_us=box.at(9 * HOUR),
    )  # fmt: skip
    box.append(
        record(box, "s", 0, 3600), record(box, "s", 1, 1800), record(box, "t", 1, 7, device="placement:b"),
        record(box, "s", 5, 99), record(box, "s", 1, 5, meter="cpu.reserved"), correction,
    )  # fmt: skip
    weights = [HourWeight(box.at(0), 0, large, 1, 2), HourWeight(box.at(HOUR), 7, 3, large, 0)]
    make_relations(box.ledger.connection)
    with box.ledger.snapshot():
        found = sorted(weighted_sums(box.ledger.connection, METER, weights))
        again = sorted(weighted_sums(box.ledger.connection, METER, weights[:1]))
        none = list(weighted_sums(box.ledger.connection, METER, []))
        first_us = first_hour(box.ledger.connection, METER)
    assert found == [
        ("s", "placement:a", 0, -600, -600 * large, -600, -1200),
        ("s", "placement:a", 0, 3600, 3600 * large, 3600, 7200),
        ("s", "placement:a", 7, 1800, 5400, 1800 * large, 0),
        ("t", "placement:b", 7, 7, 21, 7 * large, 0),
    ]
    assert (len(again), none, first_us) == (2, [], box.at(0))


def test_nothing_recorded_has_no_first_hour(box) -> None:
    """A reader without write permission can ask too."""
    box.append(box.device(0))
    box.ledger.close()
    with type(box.ledger).open(box.place, mode="read") as ledger:
        make_relations(ledger.connection)
        assert isinstance(first_hour(ledger.connection, METER), Missing)
        assert list(weighted_sums(ledger.connection, METER, [HourWeight(0, 0, 1, 0, 0)])) == []


def test_who_may_wait_is_whom_nothing_has_placed_or_ended_since(box) -> None:
    """As of a moment; a restart waits anew; what only runs is left to the rules of lifecycles."""
    box.append(
        event(box, "waits", "pending", 1, 1),
        event(box, "placed", "pending", 1, 1), event(box, "placed", "provisioning", 5, 2),
        event(box, "gone", "pending", 1, 1), event(box, "gone", "failed", 1, 2),
        event(box, "again", "stopped", 2, 1), event(box, "again", "pending", 2, 2),
        event(box, "later", "pending", 30, 1),
        event(box, "slurm", "pending", 1, 1), event(box, "slurm", "running", 3, 2),
    )  # fmt: skip
    connection = box.ledger.connection
    assert may_wait(connection, at_us=box.at(20)) == ["again", "slurm", "waits"]
    assert may_wait(connection, at_us=box.at(2)) == ["again", "placed", "slurm", "waits"]
    assert may_wait(connection, at_us=box.at(40)) == ["again", "later", "slurm", "waits"]
    told = events_of(connection, ["slurm", "placed", "unheard"], until_us=box.at(4))
    assert {name: [row.state for row in rows] for name, rows in told.items()} == {
        "slurm": ["pending", "running"], "placed": ["pending"], "unheard": [],
    }  # fmt: skip


def test_history_that_nothing_ends_is_counted_by_its_source(box) -> None:
    """A live control plane's is not: it runs until now."""
    box.append(
        event(box, "open", "running", 1, 1, is_declared=1, source="trace"),
        event(box, "moved", "running", 1, 1, is_declared=1, source="trace"),
        event(box, "moved", "running", 2, 2, is_declared=1, source="trace"),
        event(box, "ended", "running", 1, 1, is_declared=1, source="trace"),
        event(box, "ended", "stopped", 4, 2, is_declared=1, source="trace"),
        event(box, "live", "running", 1, 1),
    )
    assert open_history(box.ledger.connection, at_us=box.at(10)) == {"trace": 2}
    assert open_history(box.ledger.connection, at_us=box.at(3)) == {"trace": 3}


def test_identity_values_are_those_of_the_texts(box) -> None:
    """Without empty fields; forgotten ones are left out; damage is said."""
    box.append(event(box, "w", "pending", 1, 1))
    key = box.ledger.key_of(IdentityText(workload="w"))
    assert identity_values(box.ledger.connection, {key, "gone"}) == {key: {"workload": "w"}}
    many = {key, *(f"k{n}" for n in range(600))}
    assert identity_values(box.ledger.connection, many) == {key: {"workload": "w"}}
    box.ledger.forget([key])
    assert identity_values(box.ledger.connection, {key}) == {}


@pytest.mark.parametrize("text", ['{"user": "a"', '{"user": "a"}, {}', "", '{"user": "a"} '])
def test_a_damaged_text_is_said(text: str) -> None:
    """And never read as nobody, nor up to where it can be read."""
    with pytest.raises(Corrupt, match="the identity text key is damaged"):
        values_of("key", text)
    assert values_of("key", '{"user": "a"}') == {"user": "a"}
