"""Dropping: all of it in one transaction, with the guards standing before and after."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gpuledger.errors import Unavailable
from gpuledger.ledger.dropping import drop
from gpuledger.ledger.leaving import Leaving
from gpuledger.ledger.store import Ledger
from gpuledger.model.archive import Archive
from gpuledger.model.rows import DriverRecord, Sighting
from old_evidence import JUNE_US, MAY_US, NOW_US, OldBox


def chosen(ledger: Ledger, *, count: int | None = None) -> Archive:
    """A row of the archive for the sightings of May that leave; ``count`` claims another number."""
    leaving = Leaving(ledger, JUNE_US, [("2026-05", MAY_US, JUNE_US)], ())
    rows = sum(len(part) for part in leaving.rows(Sighting, "2026-05", 100))
    return Archive(
        archived_at_us=NOW_US, before_us=JUNE_US, month="2026-05", rows_of="sighting",
        row_count=rows if count is None else count, first_us=0, last_us=0, writers="{}", rows_hash="h", file_name="f",
        file_hash="h", folder="",
    )  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    box = OldBox(tmp_path / "l.db", days=35, jobs=3)
    box.fill()
    return box.ledger


def test_the_rows_go_and_the_guards_stand(ledger: Ledger) -> None:
    """What was chosen is gone, its row is there, and nothing else can be deleted."""
    row, before = chosen(ledger), ledger.count(Sighting)
    added = drop(ledger, [row], marks=ledger.marks(), writer="box.archive", at_us=NOW_US)
    assert [each.ref for each in added] == ["archive:box.archive/1"]
    assert ledger.count(Sighting) == before - row.row_count
    with sqlite3.connect(str(ledger.place)) as raw, pytest.raises(sqlite3.IntegrityError, match="never change"):
        raw.execute("DELETE FROM sighting")
    raw.close()


def test_evidence_that_came_meanwhile_stops_it(ledger: Ledger) -> None:
    """A row of the time that leaves, appended after the choice: nothing goes."""
    row, marks, before = chosen(ledger), ledger.marks(), ledger.count(Sighting)
    late = next(iter(ledger.scan(DriverRecord)))
    told = DriverRecord(
        host=late.host, device=late.device, pid=9, started_at_us=late.started_at_us, context_ms=1, peak_memory_mib=1,
        gpu_percent=1, memory_percent=1, read_at_us=NOW_US, method="nvml",
    )  # fmt: skip
    ledger.append([told], writer="box.agent", at_us=NOW_US)
    with pytest.raises(Unavailable) as refused:
        drop(ledger, [row], marks=marks, writer="box.archive", at_us=NOW_US)
    assert refused.value.code == "archive-overtaken"
    assert (ledger.count(Sighting), ledger.count(Archive)) == (before, 0)


def test_rows_that_left_already_stop_it(ledger: Ledger) -> None:
    """Two who archive at once: the second finds other numbers, and nothing of it goes."""
    row = chosen(ledger, count=1)
    before = ledger.count(Sighting)
    with pytest.raises(Unavailable) as refused:
        drop(ledger, [row], marks=ledger.marks(), writer="box.archive", at_us=NOW_US)
    assert refused.value.code == "archive-overtaken"
    assert ledger.count(Sighting) == before
