"""Laying an archive under a ledger: all of it, or nothing and why."""

from __future__ import annotations

import shutil
from pathlib import Path

from gpuledger.ledger.laying import lay_under, months_of
from gpuledger.ledger.store import Ledger
from gpuledger.model.rows import DriverRecord, Row, Sighting
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.archive import archive
from old_evidence import JUNE_US, NOW_US, OldBox

KINDS: tuple[type[Row], ...] = (DriverRecord, Sighting, WorkloadEvent)


def test_every_read_is_as_before(tmp_path: Path) -> None:
    """Rows and their order are those from before it left, also where the folder has moved; else nothing is laid."""
    box = OldBox(tmp_path / "l.db", days=35, jobs=6)
    box.fill()
    before = {kind: list(box.ledger.scan(kind)) for kind in KINDS}
    folder = tmp_path / "archive"
    archive(box.ledger, before_us=JUNE_US, folder=folder, done=True, now_us=NOW_US, writer="box.archive")
    box.ledger.close()
    with Ledger.open(box.place, mode="read") as ledger:
        laid = lay_under(ledger, folder=None)
        assert laid.is_whole
        assert months_of(laid.archives) == "2026-05"
        assert {kind: list(ledger.scan(kind)) for kind in KINDS} == before
        assert all(row.ref == again.ref for row, again in zip(before[Sighting], ledger.scan(Sighting), strict=True))
        assert lay_under(ledger, folder=None).is_whole
    moved = tmp_path / "moved"
    shutil.move(folder, moved)
    with Ledger.open(box.place, mode="read") as ledger:
        laid = lay_under(ledger, folder=None)
        assert not laid.is_whole
        assert laid.missing == laid.archives
        assert ledger.count(Sighting) < len(before[Sighting])
        assert lay_under(ledger, folder=moved).is_whole
    next(moved.rglob("*.driver.parquet")).write_bytes(b"PAR1")
    with Ledger.open(box.place, mode="read") as ledger:
        laid = lay_under(ledger, folder=moved)
        assert not laid.is_whole
        assert [path.endswith("2026-05.driver.parquet") for path, _ in laid.damaged] == [True]


def test_nothing_left_is_nothing_to_lay(tmp_path: Path) -> None:
    """A ledger without archives needs no folder."""
    with Ledger.open(tmp_path / "l.db", mode="append") as ledger:
        assert not lay_under(ledger, folder=None).archives
    assert months_of(()) == ""
