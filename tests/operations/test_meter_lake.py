"""``meter --lake``: what is derived, once, and where it differs from what was exported."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.errors import Corrupt, NotFound
from gpuledger.ledger.lake import Lake
from gpuledger.operations.meter_lake import is_current, meter_lake
from lakes import derived, exported, recorded, told


def test_derived_is_recorded_and_a_second_run_writes_nothing(tmp_path: Path) -> None:
    """The same records with the same evidence; unplaced time is told and not counted."""
    plane = told(tmp_path / "a.db")
    plane.meter(150)
    exported(plane, tmp_path / "lake", 150)
    report = meter_lake(tmp_path / "lake", check=True)
    assert (report.records, report.unplaced_s, report.differences) == (len(recorded(plane)), 1800, 0)
    assert report.files == ("derived_record/2026-07.parquet", "derived_record/2026-08.parquet")
    assert derived(tmp_path / "lake") == recorded(plane)
    assert meter_lake(tmp_path / "lake").files == ()
    exported(plane, tmp_path / "lake", 150.01)
    assert is_current(Lake.open(tmp_path / "lake").manifest)
    plane.ledger.close()


def test_new_events_make_it_old(tmp_path: Path) -> None:
    """And a check shows that final records were not what the events say."""
    plane = told(tmp_path / "a.db")
    plane.meter(150)
    exported(plane, tmp_path / "lake", 150)
    meter_lake(tmp_path / "lake")
    plane.tell("late", "stopped", 24 * 6 + 1)
    exported(plane, tmp_path / "lake", 150)
    assert not is_current(Lake.open(tmp_path / "lake").manifest)
    report = meter_lake(tmp_path / "lake", check=True)
    assert (report.differences, len(report.listed)) == (4, 4)
    plane.ledger.close()


def test_an_earlier_moment_is_derived_up_to_it(tmp_path: Path) -> None:
    """``--now`` cuts; after the export nothing is known."""
    plane = told(tmp_path / "a.db")
    exported(plane, tmp_path / "lake", 150)
    assert meter_lake(tmp_path / "lake", now_us=plane.at(10)).until_us == plane.at(9)
    assert len(derived(tmp_path / "lake")) == 3
    assert meter_lake(tmp_path / "lake", now_us=plane.at(999)).until_us == plane.at(149)
    plane.ledger.close()


def test_a_damaged_lake_is_not_metered(tmp_path: Path) -> None:
    """The file is named, and what stood is left alone; no lake is none."""
    plane = told(tmp_path / "a.db")
    exported(plane, tmp_path / "lake", 150)
    plane.ledger.close()
    meter_lake(tmp_path / "lake")
    (tmp_path / "lake" / "workload_event" / "2026-07.parquet").write_bytes(b"PAR1")
    with pytest.raises(Corrupt, match=r"workload_event/2026-07\.parquet"):
        meter_lake(tmp_path / "lake")  # though by the manifest's word nothing has changed
    (tmp_path / "lake" / "workload_event" / "2026-07.parquet").unlink()
    with pytest.raises(Corrupt, match="it is missing"):
        meter_lake(tmp_path / "lake")
    with pytest.raises(NotFound):
        meter_lake(tmp_path / "none")
    assert not (tmp_path / "none").exists()
