"""``verify``: an honest ledger passes, and what was changed afterwards is found and told from a difference."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gpuledger.ledger.store import Ledger
from gpuledger.model.checks import Verdict, VerifyReport
from gpuledger.model.rows import UsageCorrection
from gpuledger.operations.meter import meter
from gpuledger.operations.verify import verify


def tamper(place: Path, table: str, statement: str) -> None:
    """What anybody with write permission and sqlite3 can do."""
    connection = sqlite3.connect(place)
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", (table,)
    ).fetchall()
    for (name,) in names:
        connection.execute(f'DROP TRIGGER "{name}"')
    connection.execute(statement)
    connection.commit()
    connection.close()


def checked(box, *, kept_root: str = "") -> VerifyReport:
    with Ledger.open(box.place, mode="read") as ledger:
        return verify(ledger, now_us=box.at(200), kept_root=kept_root)


def verdicts(report: VerifyReport) -> dict[str, Verdict]:
    return {check.name: check.verdict for check in report.checks}


@pytest.fixture
def sealed(box):
    """The morning, metered and sealed."""
    box.tell_a_morning()
    meter(box.ledger, now_us=box.at(126), writer="box.meter")
    box.ledger.seal(box.at(127), writer="box.agent")
    return box


def test_an_honest_ledger_passes_every_check(sealed) -> None:
    """With its counts and the root to keep elsewhere."""
    report = checked(sealed)
    assert set(verdicts(report).values()) == {Verdict.OK}
    assert (report.ok, report.root, dict(report.counts)["driver"]) == (True, sealed.ledger.latest_root(), 2)


def test_an_empty_ledger_passes(box) -> None:
    """Nothing to find; no root yet."""
    report = checked(box)
    assert (report.ok, report.root) == (True, "")


def test_evidence_that_waits_for_the_next_pass_is_no_difference(sealed) -> None:
    """Records are derived from what the last pass had seen."""
    sealed.append(sealed.settled(44, 30, 9_000, read=130), minute=130)
    assert checked(sealed).ok


def test_corrections_are_part_of_what_must_add_up(sealed) -> None:
    """Derived = recorded + corrections, after a late name too."""
    sealed.append(sealed.claimed(8, "backup", 40.01), minute=130, role="import")
    meter(sealed.ledger, now_us=sealed.at(190), writer="box.meter")
    assert sealed.ledger.count(UsageCorrection) == 2
    assert checked(sealed).ok


def test_a_changed_record_is_damage(sealed) -> None:
    """The trigger dropped, one figure changed: the chain says so, and nothing is derived from damaged rows."""
    tamper(sealed.place, "usage_record", "UPDATE usage_record SET quantity = quantity + 1 WHERE quantity = 600")
    report = checked(sealed)
    assert report.damaged
    assert verdicts(report)["records-derived-again"] is Verdict.SKIPPED
    (found,) = [check for check in report.checks if check.verdict is Verdict.DAMAGED and "box.meter" in str(check)]
    assert found.findings
    assert found.hint


def test_a_deleted_row_of_evidence_is_damage(sealed) -> None:
    """A link of the chain covers rows that are no longer there."""
    tamper(sealed.place, "driver_record", "DELETE FROM driver_record WHERE pid = 8")
    assert checked(sealed).damaged


def test_a_root_that_was_kept_elsewhere_must_be_among_the_seals(sealed) -> None:
    """A ledger rewritten as a whole has chains that fit, and another root."""
    assert checked(sealed, kept_root=sealed.ledger.latest_root()).ok
    assert checked(sealed, kept_root="0" * 63 + "1").damaged


def test_a_record_that_evidence_does_not_bear_out_is_found(box) -> None:
    """Appended through the ledger, so that chains fit: only deriving it again can tell."""
    box.tell_a_morning()
    box.append(*_invented(box), minute=126, role="meter")
    report = checked(box)
    assert (report.ok, report.damaged) == (False, False)
    assert verdicts(report)["records-derived-again"] is Verdict.FOUND


def _invented(box):
    from gpuledger.model.rows import Pass, UsageRecord

    words = {"host": "box", "device": box.gpu, "context": "settled", "recorded_at_us": box.at(126)}
    yield UsageRecord(
        meter="gpu.context", hour_us=box.at(0), subject="nobody", quantity=5_000, evidence_count=1, evidence_hash="e",
        **words,
    )  # fmt: skip
    yield Pass(
        at_us=box.at(126), covered_from_us=box.at(0), covered_until_us=box.at(60), records_added=1, corrections_added=0,
        evidence_marks='{"box.agent": 1000}',
    )  # fmt: skip


def test_progress_is_told_by_day(sealed) -> None:
    """So that a long verify shows how far it is."""
    told: list[tuple[int, int]] = []
    verify(sealed.ledger, now_us=sealed.at(200), progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 1)]
