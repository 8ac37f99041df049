"""``export parquet``: all of the ledger, only what is new the second time, and forgotten people leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.ledger import parquet
from gpuledger.ledger.lake import Lake
from gpuledger.model.moments import iso
from gpuledger.operations.export_parquet import export_parquet
from gpuledger.operations.meter_lake import meter_lake
from lakes import exported, told

EVERY_STORE = True


@pytest.fixture
def plane(new_place):
    """A ledger with a week of reserved time, metered."""
    made = told(new_place("a.db"))
    made.meter(150)
    yield made
    made.ledger.close()


def test_a_second_export_writes_what_is_new(plane, tmp_path: Path, engine: str) -> None:
    """Nothing; then the month that got a row, with the links and the pass beside it."""
    lake = tmp_path / "lake"
    first = exported(plane, lake, 150)
    assert first.manifest.whole
    assert {file.table for file in first.manifest.files} >= {"workload_event", "usage_record", "pass", "link"}
    inodes = {file.name: (lake / file.name).stat().st_ino for file in first.manifest.files}
    assert exported(plane, lake, 151).written == ()
    plane.tell("late", "stopped", 149, team="nlp")
    third = exported(plane, lake, 152)
    assert set(third.written) == {"workload_event/2026-08.parquet", "link/2026-08.parquet"}
    for file in third.manifest.files:
        if file.name not in third.written and file.table != "identity_text":
            assert (lake / file.name).stat().st_ino == inodes[file.name]
    Lake.open(lake).look_over()


def test_a_lake_of_another_ledger_is_left_as_it_is(plane, new_place, tmp_path: Path, engine: str) -> None:
    """Its chains have the same names and its months the same files: they would be mixed, and others removed."""
    lake = tmp_path / "lake"
    exported(plane, lake, 150)
    files = {path: path.read_bytes() for path in lake.rglob("*.parquet")}
    other = told(new_place("b.db"))
    other.tell("other", "provisioning", 1, other.placement("n2"))
    for hour in (100, 150):  # also where the other has no row yet that is not the same
        with pytest.raises(Misconfigured, match="is not a lake of") as refused:
            exported(other, lake, hour)
        assert refused.value.code == "other-ledger"
        other.meter(150)
    other.ledger.close()
    assert {path: path.read_bytes() for path in lake.rglob("*.parquet")} == files
    assert exported(plane, lake, 151).written == ()


def test_who_was_forgotten_leaves_with_the_next_export(plane, tmp_path: Path, engine: str) -> None:
    """The text goes, the amounts stand."""
    lake = tmp_path / "lake"
    exported(plane, lake, 150)
    keys = [key for key, text in plane.ledger.texts().items() if text.workload == "early"]
    plane.ledger.forget(keys)
    report = exported(plane, lake, 151)
    assert report.written == ("identity_text.parquet",)
    rows = [row for rows in parquet.read(lake / "identity_text.parquet", "identity_text") for row in rows]
    assert keys[0] not in {row[0] for row in rows}


def test_a_damaged_file_is_written_again(plane, tmp_path: Path, engine: str) -> None:
    """An export mends a lake."""
    lake = tmp_path / "lake"
    exported(plane, lake, 150)
    (lake / "usage_record" / "2026-07.parquet").write_bytes(b"x")
    assert exported(plane, lake, 151).written == ("usage_record/2026-07.parquet",)


def test_a_part_says_that_it_is_one(plane, tmp_path: Path, engine: str) -> None:
    """Months and tables by choice; what needs all of it refuses."""
    lake = tmp_path / "lake"
    report = export_parquet(plane.ledger, lake, now_us=plane.at(150), since_us=plane.at(24 * 6))
    assert not report.manifest.whole
    assert {file.month for file in report.manifest.files} == {"", "2026-08"}
    with pytest.raises(Misconfigured) as refused:
        meter_lake(lake)
    assert refused.value.code == "lake-incomplete"
    other = export_parquet(plane.ledger, tmp_path / "b", now_us=plane.at(150), tables=["pass"])
    assert {file.table for file in other.manifest.files} == {"pass", "identity_text"}
    with pytest.raises(Misconfigured) as unknown:
        export_parquet(plane.ledger, lake, now_us=plane.at(150), tables=["passes"])
    assert unknown.value.code == "unknown-table"


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_killed_at_any_moment_no_half_file_has_its_name(plane, tmp_path: Path, engine: str) -> None:
    """Every file under its final name is whole, and the next export makes the lake whole."""
    lake = tmp_path / "lake"
    source = (
        "import sys; from pathlib import Path; from gpuledger.ledger.store import Ledger; "
        "from gpuledger.operations.export_parquet import export_parquet; "
        "ledger = Ledger.open(sys.argv[1], mode='read'); print('ready', flush=True); "
        f"export_parquet(ledger, Path(sys.argv[2]), now_us={plane.at(150)})"
    )
    for delay_ms in (30, 60, 120, 200):
        with subprocess.Popen(
            [sys.executable, "-c", source, str(plane.place), str(lake)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(delay_ms / 1000)
            os.kill(process.pid, signal.SIGKILL)
        for path in lake.rglob("*.parquet"):
            if not path.name.startswith("."):
                table = path.parent.name if path.parent != lake else path.stem
                assert list(parquet.read(path, table)) is not None
    exported(plane, lake, 150)
    Lake.open(lake).look_over()
    assert not list(lake.rglob("*.part"))
    assert iso(Lake.open(lake).manifest.exported_at_us).startswith("2026-08-02")
