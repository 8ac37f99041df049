"""Files of an archive: whole or not there, and known again by their hashes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuledger.errors import Corrupt, Misconfigured, Unavailable
from gpuledger.ledger import archive_files, parquet
from gpuledger.ledger.archive_files import RowsHash, Run
from gpuledger.ledger.kinds import KIND_OF
from gpuledger.model.archive import Archive
from gpuledger.model.workload_rows import Hold

KIND = KIND_OF[Hold]
ROWS: list[tuple[Any, ...]] = [("a.cp", 3, "w", 1, "taken", 5, "p", None), ("b.cp", 9, "w", 2, "released", 6, "p", 7)]


def archive_of(folder: Path, written: archive_files.Written) -> Archive:
    return Archive(
        archived_at_us=1, before_us=1, month="2026-05", rows_of="hold", row_count=written.row_count, first_us=0,
        last_us=0, writers="{}", rows_hash=written.rows_hash, file_name=written.name, file_hash=written.file_hash,
        folder=str(folder),
    )  # fmt: skip


def write(folder: Path) -> archive_files.Written:
    with Run(folder) as run:
        written = run.write(KIND, "2026-05", [ROWS[:1], ROWS[1:]])
        run.finish({"before": "2026-06"})
    return written


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    """The same rows, their writers with lowest and highest number, and one hash however they were cut."""
    written = write(tmp_path / "archive")
    again = RowsHash("hold")
    again.add(ROWS)
    assert written.rows_hash == again.written().rows_hash
    assert written.writers == {"a.cp": [3, 3, 1], "b.cp": [9, 9, 1]}
    archive = archive_of(tmp_path / "archive", written)
    path = archive_files.find(archive, None)
    assert path is not None
    assert path.name == "2026-05.hold.parquet"
    assert [row for batch in archive_files.rows_of(archive, path) for row in batch] == ROWS
    assert (path.parent / archive_files.MANIFEST).is_file()
    assert archive_files.find(archive, tmp_path) is None


def test_runs_have_numbers_of_their_own(tmp_path: Path) -> None:
    """A run never writes over another, also not over one that was killed."""
    (tmp_path / "archive-0001.partial").mkdir()
    assert [write(tmp_path).name for _ in range(2)] == [f"archive-000{n}/2026-05.hold.parquet" for n in (2, 3)]


def test_an_unfinished_run_leaves_nothing(tmp_path: Path) -> None:
    """An error while writing: the folder is as it was."""

    def cut() -> Iterator[list[tuple[Any, ...]]]:
        yield ROWS
        raise ValueError("cut")

    with Run(tmp_path) as run, pytest.raises(ValueError, match="cut"):
        run.write(KIND, "2026-05", cut())
    assert not list(tmp_path.iterdir())


def test_another_file_is_damage(tmp_path: Path) -> None:
    """Other bytes under the name, and other rows under the right bytes."""
    written = write(tmp_path)
    archive = archive_of(tmp_path, written)
    path = archive_files.find(archive, None)
    assert path is not None
    parquet.write(path, "hold", [ROWS[:1]])
    assert archive_files.damage(archive, path)
    with pytest.raises(Corrupt) as damaged:
        list(archive_files.rows_of(archive, path))
    assert damaged.value.code == "archive-damaged"
    assert str(path) in damaged.value.message


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    """It is said what lies there."""
    (tmp_path / "photo.jpg").write_text("sea")
    with pytest.raises(Misconfigured) as refused:
        Run(tmp_path)
    assert "photo.jpg" in refused.value.message


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the writer of files meets becomes an error that says that nothing left."""

    def full(*_: object, **__: object) -> None:
        raise Unavailable("lake-full", "no room on the disk")

    monkeypatch.setattr(parquet, "write", full)
    with Run(tmp_path) as run, pytest.raises(Unavailable) as refused:
        run.write(KIND, "2026-05", [ROWS])
    assert refused.value.code == "archive-unwritable"
    assert "nothing left" in refused.value.message
