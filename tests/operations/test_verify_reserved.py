"""Verifying reserved time: a record that the events do not give is found, whoever wrote it."""

from __future__ import annotations

from dataclasses import replace

from control_plane import MIDNIGHT_US, ControlPlane
from gpuledger.ledger.reserved import Reading
from gpuledger.model.moments import HOUR_US
from gpuledger.model.rows import UsageCorrection, UsageRecord
from gpuledger.operations.verify import verify
from gpuledger.operations.verify_reserved import differences

EVERY_STORE = True


def test_a_record_out_of_nowhere_is_found(new_place) -> None:
    """Properly chained, and not what the events say; the others are."""
    plane = ControlPlane(new_place("plane.db"))
    plane.run("a", 0, 3, plane.placement())
    plane.meter(4)
    assert list(differences(plane.ledger, now_us=plane.at(5))) == []
    (record, *_) = plane.ledger.scan(UsageRecord)
    forged = UsageRecord(
        meter=record.meter, hour_us=record.hour_us, host="n9", device=record.device, subject=record.subject,
        context="reserved", quantity=7, evidence_count=1, evidence_hash="00", recorded_at_us=0,
    )  # fmt: skip
    plane.ledger.append([forged], writer="box.meter", at_us=plane.at(5))
    (said,) = differences(plane.ledger, now_us=plane.at(5))
    assert "n9" in said
    assert "-7" in said
    plane.ledger.close()


def test_a_first_heartbeat_hides_no_difference(new_place) -> None:
    """What came after a pass is late in final hours, and else only where a pass ran by a clock that is ahead."""
    plane = ControlPlane(new_place("plane.db"))
    plane.run("a", 0, None, plane.placement())
    plane.meter(3)
    (record, *_) = plane.ledger.scan(UsageRecord)
    stray = UsageCorrection(
        meter=record.meter, hour_us=record.hour_us, host=record.host, device=record.device, subject=record.subject,
        correction_number=1, delta=-600, reason="late-evidence", evidence_count=1, evidence_hash="00", recorded_at_us=0,
    )  # fmt: skip
    plane.ledger.append([stray], writer="box.meter", at_us=plane.at(3))
    plane.beat(4)
    (said,) = differences(plane.ledger, now_us=plane.at(4))
    assert "+600" in said
    plane.ledger.close()


def test_what_waits_for_the_next_pass_is_no_difference(new_place) -> None:
    """Nor is what came late for a final hour: that is listed by blind."""
    plane = ControlPlane(new_place("plane.db"))
    plane.run("a", 0, 3, plane.placement())
    plane.meter(4)
    plane.tell("a", "stopped", 1)
    assert list(differences(plane.ledger, now_us=plane.at(5))) == []
    plane.run("b", 54, 55, plane.placement("n2"))
    plane.meter(60)
    assert list(differences(plane.ledger, now_us=plane.at(61))) == []
    steps: list[tuple[int, int]] = []
    list(differences(plane.ledger, now_us=plane.at(61), progress=lambda done, of: steps.append((done, of))))
    assert steps == [(1, 1)]
    plane.ledger.close()


def test_decades_in_which_nothing_happened_are_passed_over(new_place, monkeypatch) -> None:
    """A trace of 1970 in a ledger of today: derived once, and no day of processes is looked at."""
    plane = ControlPlane(new_place("plane.db"))
    first = -MIDNIGHT_US // HOUR_US
    plane.run("old", first, first + 30, plane.placement(), declared=True)
    plane.meter(4)
    calls: list[int] = []
    derive = Reading.derive
    monkeypatch.setattr(Reading, "derive", lambda *words, **more: (calls.append(1), derive(*words, **more)))
    report = verify(plane.ledger, now_us=plane.at(5), progress=lambda done, of: calls.append(of))
    assert not any(check.findings for check in report.checks)
    assert len(calls) == 1
    (record, *_) = plane.ledger.scan(UsageRecord)
    forged = replace(record, hour_us=plane.at(-9999), host="n9")
    plane.ledger.append([forged], writer="box.meter", at_us=plane.at(5))
    (said,) = differences(plane.ledger, now_us=plane.at(5))
    assert "n9" in said
    plane.ledger.close()
