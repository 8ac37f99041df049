"""A lake on the disk: what opens, what is told to be damaged, and who may write."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from gpuledger.errors import Corrupt, Misconfigured, NotFound, Unavailable
from gpuledger.ledger.lake import Lake, writing
from gpuledger.model.lake import MANIFEST
from lakes import exported, told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An exported lake."""
    plane = told(tmp_path / "a.db")
    exported(plane, tmp_path / "lake", 30)
    plane.ledger.close()
    return tmp_path / "lake"


def test_a_lake_is_what_its_manifest_says(folder: Path) -> None:
    """All files, looked over in both ways."""
    lake = Lake.open(folder)
    lake.look_over()
    assert [path.name for path in lake.paths("workload_event")] == ["2026-07.parquet", "2026-08.parquet"]


@pytest.mark.parametrize("hurt", ["cut", "edited", "removed"])
def test_a_file_that_is_another_is_told_by_name(folder: Path, hurt: str) -> None:
    """Cut short, edited in place with its size kept, or gone."""
    path = folder / "workload_event" / "2026-07.parquet"
    whole = path.read_bytes()
    if hurt == "removed":
        path.unlink()
    else:
        path.write_bytes(whole[:-1] if hurt == "cut" else whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
        os.utime(path, ns=(1, 1))
    for ask in (lambda: Lake.open(folder).paths("workload_event"), lambda: Lake.open(folder).look_over()):
        with pytest.raises(Corrupt, match=r"2026-07\.parquet") as refused:
            ask()
        assert refused.value.code == "lake-damaged"
    said = "it is missing" if hurt == "removed" else "not the file that was exported"
    with pytest.raises(Corrupt, match=said) as refused:
        Lake.open(folder).paths("workload_event")
    assert refused.value.hint == f"gpuledger export parquet --to {folder}", "which sees the same, and writes it anew"


def test_a_file_is_no_folder_for_a_lake(tmp_path: Path) -> None:
    """Wrong usage, by name."""
    (tmp_path / "file").touch()
    with pytest.raises(Misconfigured, match="is no folder") as refused, writing(tmp_path / "file"):
        pass
    assert refused.value.code == "not-a-lake"
    with pytest.raises(NotFound, match="is not a lake"):
        Lake.open(tmp_path / "file")


def test_a_copy_with_other_times_is_sound(folder: Path) -> None:
    """It is hashed, and is what was exported."""
    for path in folder.rglob("*.parquet"):
        os.utime(path, ns=(7, 7))
    assert Lake.open(folder).paths("placement")


def test_an_edit_that_keeps_size_and_time_is_found_by_hashing(folder: Path) -> None:
    """Opening takes such a file at its word; looking over does not."""
    path = folder / "placement.parquet"
    stands = path.stat()
    whole = bytearray(path.read_bytes())
    whole[60] ^= 1
    path.write_bytes(bytes(whole))
    os.utime(path, ns=(stands.st_atime_ns, stands.st_mtime_ns))
    assert Lake.open(folder).paths("placement")
    with pytest.raises(Corrupt, match=r"placement\.parquet"):
        Lake.open(folder).look_over()


def test_a_file_that_nobody_exported_is_told(folder: Path) -> None:
    """Nothing here reads it; whoever reads all files of a table would count it."""
    lake = Lake.open(folder)
    file = next(file for file in lake.manifest.files if file.table == "workload_event")
    shutil.copy(folder / file.name, folder / "workload_event" / "2030-01.parquet")
    assert lake.strangers() == ["workload_event/2030-01.parquet"]
    with pytest.raises(Corrupt) as told:
        lake.look_over()
    assert "2030-01.parquet is no file of this lake" in told.value.message
    assert "export parquet" in told.value.hint


def test_no_lake_another_version_and_a_broken_manifest(folder: Path, tmp_path: Path) -> None:
    """Each with its own code."""
    with pytest.raises(NotFound) as none:
        Lake.open(tmp_path / "nowhere")
    text = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**text, "version": 2}))
    with pytest.raises(Misconfigured, match="version 2") as other:
        Lake.open(folder)
    (folder / MANIFEST).write_text('{"format": "gpuledger-lake"}')
    with pytest.raises(Corrupt) as broken:
        Lake.open(folder)
    assert [each.value.code for each in (none, other, broken)] == ["no-lake", "lake-version", "lake-damaged"]


def test_a_manifest_cannot_name_files_elsewhere(folder: Path) -> None:
    """Somebody else's lake is data, and no way to other folders."""
    text = (folder / MANIFEST).read_text().replace('"placement.parquet"', '"../placement.parquet"')
    (folder / MANIFEST).write_text(text)
    with pytest.raises(Corrupt, match="outside"):
        Lake.open(folder)


def test_one_writer_at_a_time_and_no_reader_calls_it_damage(folder: Path) -> None:
    """The second is refused; a file that a writer has just replaced is not damaged."""
    with writing(folder):
        with pytest.raises(Unavailable) as second, writing(folder):
            pass
        path = folder / "placement.parquet"
        path.write_bytes(b"new")
        with pytest.raises(Unavailable) as reader:
            Lake.open(folder).paths("placement")
    assert [second.value.code, reader.value.code] == ["lake-busy", "lake-busy"]


def test_what_a_killed_writer_left_is_removed(folder: Path) -> None:
    """Half files never have a final name, and the next writer sweeps them out."""
    left = [folder / ".x.parquet.00.part", folder / "workload_event" / ".y.parquet.11.part"]
    for path in left:
        path.write_bytes(b"half")
    (folder / ".gpuledger-duckdb-abc").mkdir()
    with writing(folder):
        assert not any(path.exists() for path in left)
        assert not (folder / ".gpuledger-duckdb-abc").exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """Nothing is written beside somebody's files."""
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(Misconfigured) as refused, writing(tmp_path):
        pass
    assert (refused.value.code, [path.name for path in tmp_path.iterdir()]) == ("not-a-lake", ["thesis.tex"])
