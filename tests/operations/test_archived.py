"""What a reading verb needs of the archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.ledger.store import Ledger
from gpuledger.model.moments import DAY_US, HOUR_US
from gpuledger.model.rows import DriverRecord, UsageRecord
from gpuledger.operations.archive import archive
from gpuledger.operations.archived import archived_between, holding, missing, needed_for, note_of
from old_evidence import JUNE_US, MAY_US, NOW_US, OldBox


@pytest.fixture
def box(tmp_path: Path) -> OldBox:
    made = OldBox(tmp_path / "l.db", days=35, jobs=6)
    made.fill()
    return made


def gone(ledger: Ledger, folder: Path) -> None:
    archive(ledger, before_us=JUNE_US, folder=folder, done=True, now_us=NOW_US, writer="box.archive")


def test_what_is_needed_of_it(box: OldBox, tmp_path: Path) -> None:
    """The row itself where it left; what a record rests on; of a line what its window touches; else nothing."""
    ledger = box.ledger
    row, record = next(iter(ledger.scan(DriverRecord))), next(iter(ledger.scan(UsageRecord)))
    late = list(ledger.scan(UsageRecord))[-1]
    assert not needed_for(ledger, row.ref, MAY_US, JUNE_US)
    gone(ledger, tmp_path / "archive")
    assert [each.rows_of for each in holding(ledger, row.ref)] == ["driver"]
    assert needed_for(ledger, row.ref, NOW_US, NOW_US)
    assert {each.rows_of for each in needed_for(ledger, record.ref, NOW_US, NOW_US)} >= {"driver", "sighting"}
    assert not needed_for(ledger, late.ref, MAY_US, JUNE_US)
    assert needed_for(ledger, "total", MAY_US, NOW_US)
    assert not needed_for(ledger, "total", JUNE_US, NOW_US)
    assert not holding(ledger, "driver:box.agent/999999")
    assert not holding(ledger, "service:ollama")
    assert not archived_between(ledger, JUNE_US + HOUR_US, NOW_US)


def test_what_is_said_without_it(box: OldBox, tmp_path: Path) -> None:
    """Months, how many rows, where they went, and what to type."""
    gone(box.ledger, tmp_path / "archive")
    left = archived_between(box.ledger, MAY_US, MAY_US + DAY_US)
    note = note_of(left, "total")
    assert "2026-05" in note.title
    assert "--archive" in note.title
    assert note.refs == tuple(row.ref for row in left)
    error = missing(left, "who held what", "gpuledger smi --at T")
    assert error.code == "archive-missing"
    assert str(tmp_path) in error.message
    assert error.hint.startswith("gpuledger smi --at T --archive FOLDER")
