"""The files of an archive: rows of one kind and month, as Parquet, written so that nothing half-written counts.

In: rows with all columns of their table, in the order of writer and number. Out: a file, its hash, and the hash of its
rows; and back. A run writes into a folder of its own, ``archive-0001``, under a name of work in progress; it gets its
own name once all of it is on the disk.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpuledger.errors import Corrupt, Misconfigured, Unavailable
from gpuledger.ledger import parquet
from gpuledger.ledger.chain import GENESIS, Cell, LinkHash
from gpuledger.ledger.kinds import KINDS, Kind
from gpuledger.model.archive import Archive

MANIFEST = "manifest.json"
"""Beside the files of a run: what each holds, for people and for other tools."""

_RUN = re.compile(r"archive-[0-9]{4,}(\.partial)?")
_KIND_BY_NAME = {kind.row.kind: kind for kind in KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One file that was written.

    Args:
        name: inside the archive's folder.
        row_count: rows.
        size: bytes of their canonical text.
        rows_hash: SHA-256, hex, over it.
        writers: writer to [lowest number, highest number, rows].
        file_hash: SHA-256, hex, of the file's bytes; empty where none was written.
        file_size: its bytes.
    """

    name: str
    row_count: int
    size: int
    rows_hash: str
    writers: dict[str, list[int]]
    file_hash: str = ""
    file_size: int = 0


class RowsHash:
    """The hash of many rows of one kind, as a link would hash them, and from which chains they are."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._sha = LinkHash(GENESIS, writer=kind, first_number=0, last_number=0, committed_at_us=0)
        self.row_count = 0
        self.size = 0
        self.writers: dict[str, list[int]] = {}

    def add(self, rows: Sequence[tuple[Cell, ...]]) -> None:
        """Rows in the order of writer and number, each with all columns of its table."""
        self._sha.add(self._kind, rows)
        self.row_count += len(rows)
        for row in rows:
            self.size += sum(len(cell) if isinstance(cell, str) else 8 for cell in row)
            span = self.writers.setdefault(str(row[0]), [int(row[1] or 0), 0, 0])
            span[1] = int(row[1] or 0)
            span[2] += 1

    def written(self, name: str = "") -> Written:
        """What was added, without a file."""
        return Written(
            name=name, row_count=self.row_count, size=self.size, rows_hash=self._sha.hexdigest(), writers=self.writers
        )


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Errors of the disk, as people meet them."""
    try:
        yield
    except OSError as error:
        raise _unwritable(folder, error.strerror or str(error)) from error
    except Unavailable as error:
        if error.code not in ("lake-full", "lake-io"):
            raise
        raise _unwritable(folder, error.message) from error


def _unwritable(folder: Path, why: str) -> Unavailable:
    return Unavailable(
        "archive-unwritable",
        f"{folder} could not be written ({why}); nothing left the ledger",
        hint=f"make room, or name another folder with --to: df -h {folder.parent}",
    )


class Run:
    """One run's folder while it is written; as a context manager it takes away what was not finished.

    Args:
        folder: the archive's folder; made where it is not there.

    Raises:
        Misconfigured: ``archive-folder`` where something else lies in it.
        Unavailable: ``archive-unwritable``, ``missing-extra``.
    """

    def __init__(self, folder: Path) -> None:
        parquet.arrow()
        self._folder = folder
        with _writing(folder):
            if folder.exists() and not folder.is_dir():
                raise Misconfigured("archive-folder", f"{folder} is no folder", hint="name a folder: --to DIR")
            folder.mkdir(parents=True, exist_ok=True)
            strangers = sorted(each.name for each in folder.iterdir() if not _RUN.fullmatch(each.name))
            if strangers:
                raise Misconfigured(
                    "archive-folder",
                    f"{folder} holds something else ({', '.join(strangers[:3])}); an archive has a folder of its own",
                    hint="name an empty folder, or that of an earlier archive: --to DIR",
                )
            self.name = self._take()
        self._partial = folder / f"{self.name}.partial"
        self._files: list[dict[str, Any]] = []

    def _take(self) -> str:
        """The first number that nobody has, also nobody who writes at this moment."""
        number = 1
        while True:
            name = f"archive-{number:04}"
            if not (self._folder / name).exists():
                try:
                    (self._folder / f"{name}.partial").mkdir()
                except FileExistsError:
                    pass
                else:
                    return name
            number += 1

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._partial, ignore_errors=True)

    def write(self, kind: Kind, month: str, batches: Iterable[list[tuple[Any, ...]]]) -> Written:
        """Write one file, and read it back: what stands in it is what was given.

        Raises:
            Unavailable: ``archive-unwritable``.
            Corrupt: ``archive-damaged`` where what was read back is something else.
        """
        name = f"{month}.{kind.row.kind}.parquet"
        path = self._partial / name
        told = RowsHash(kind.row.kind)

        def counted() -> Iterator[list[tuple[Any, ...]]]:
            for batch in batches:
                told.add(batch)
                yield batch

        with _writing(self._folder):
            stands = parquet.write(path, kind.table.name, counted())
        again = RowsHash(kind.row.kind)
        for batch in _read(path, kind):
            again.add(batch)
        if again.written() != told.written():
            raise Corrupt(
                "archive-damaged", f"{path} does not hold what was written; nothing left the ledger",
                hint="check the disk, or name another folder: --to DIR",
            )  # fmt: skip
        done = told.written(f"{self.name}/{name}")
        self._files.append(
            {"file": name, "month": month, "kind": kind.row.kind, "table": kind.table.name, "rows": done.row_count,
             "rows_hash": done.rows_hash, "sha256": stands.sha256, "bytes": stands.size, "writers": done.writers}
        )  # fmt: skip
        return replace(done, file_hash=stands.sha256, file_size=stands.size)

    def finish(self, about: dict[str, Any]) -> None:
        """Write the manifest, and give the folder its name: from here on all of it is on the disk.

        Raises:
            Unavailable: ``archive-unwritable``.
        """
        with _writing(self._folder):
            told = {**about, "files": self._files}
            parquet.put_text(self._partial / MANIFEST, json.dumps(told, indent=1, sort_keys=True) + "\n")
            self._partial.rename(self._folder / self.name)
            parquet.flush_folder(self._folder)

    def undo(self) -> None:
        """Take the finished folder away: its rows did not leave."""
        shutil.rmtree(self._folder / self.name, ignore_errors=True)


def left_over(folder: Path, ledger: str, known: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Folders of runs of a ledger that came to no end, and what left them.

    Args:
        folder: the archive's.
        ledger: its name, as manifests have it.
        known: the folders of runs that it names.
    """
    for path in sorted(folder.glob("archive-*")):
        if path.name in known or not _RUN.fullmatch(path.name):
            continue
        if path.suffix == ".partial":
            yield path, "a run that was killed while it wrote left it"
            continue
        try:
            manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(manifest, dict) and manifest.get("ledger") == ledger:
            yield path, "a run that was cut before its rows left wrote it"


def _read(path: Path, kind: Kind) -> Iterator[list[tuple[Any, ...]]]:
    try:
        yield from parquet.read(path, kind.table.name)
    except Corrupt as error:
        raise damaged(path, error.message) from error


def find(archive: Archive, folder: Path | None) -> Path | None:
    """The file of an archived month and kind: in the folder given, else where it was written. None: not there."""
    path = (Path(archive.folder) if folder is None else folder) / archive.file_name
    return path if path.is_file() else None


def damage(archive: Archive, path: Path) -> str:
    """How a file differs from the one that was written; empty where it does not."""
    try:
        digest = parquet.digest_of(path)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return "" if digest == archive.file_hash else "its bytes are not those that were written"


def rows_of(archive: Archive, path: Path) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a file, as their table had them.

    Raises:
        Corrupt: ``archive-damaged`` where they are not those that left the ledger; told at the end.
    """
    parquet.arrow()
    if why := damage(archive, path):
        raise damaged(path, why)
    kind = _KIND_BY_NAME[archive.rows_of]
    told = RowsHash(archive.rows_of)
    for batch in _read(path, kind):
        told.add(batch)
        yield batch
    if told.written().rows_hash != archive.rows_hash:
        raise damaged(path, "its rows are not those that left the ledger")


def damaged(path: Path, why: str) -> Corrupt:
    """The error for a file that is not the one that was written."""
    return Corrupt("archive-damaged", f"{path}: {why}", hint="take the file from a backup of the archive's folder")
