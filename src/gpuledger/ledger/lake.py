"""A lake on the disk: opened, looked over, locked while somebody writes to it.

In: a folder. Out: its manifest, and files that are what the manifest says, or an error that names the file. The files
themselves are read and written by :mod:`.parquet`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from gpuledger.errors import Corrupt, Misconfigured, NotFound, Unavailable
from gpuledger.ledger import parquet
from gpuledger.ledger.parquet import Written
from gpuledger.model.lake import MANIFEST, LakeFile, Manifest, NotThisFormat, read_manifest

_LOCK = ".gpuledger-lake.lock"


class Lake:
    """A lake, open to read. Made by :meth:`open`.

    Attributes:
        folder: where it lies.
        manifest: what it is.
    """

    def __init__(self, folder: Path, manifest: Manifest, *, is_writer: bool = False) -> None:
        self.folder = folder
        self.manifest = manifest
        self._is_writer = is_writer
        self._sound: set[str] = set()

    @classmethod
    def open(cls, folder: Path, *, is_writer: bool = False) -> Lake:
        """Open the lake in a folder; ``is_writer`` for who holds it by :func:`writing`.

        Raises:
            NotFound: ``no-lake``.
            Misconfigured: ``lake-version``.
            Corrupt: ``lake-damaged`` where the manifest cannot be understood.
        """
        lake = cls.open_if_there(folder, is_writer=is_writer)
        if lake is None:
            raise NotFound("no-lake", f"{folder} is not a lake: it has no {MANIFEST}", hint=_make(folder))
        return lake

    @classmethod
    def open_if_there(cls, folder: Path, *, is_writer: bool = False) -> Lake | None:
        """As :meth:`open`; None where the folder has no manifest, or is none."""
        path = folder / MANIFEST
        if folder.is_file():
            return None
        try:
            with parquet.mapped(path):
                text = path.read_bytes()
        except Corrupt:
            return None
        try:
            return cls(folder, read_manifest(text.decode("utf-8")), is_writer=is_writer)
        except NotThisFormat as error:
            raise Misconfigured(
                "lake-version",
                f"{path} is of another format: {error}",
                hint="export into an empty folder with this version",
            ) from error
        except ValueError as error:
            raise Corrupt("lake-damaged", f"{path} is damaged: {error}", hint=_make(folder)) from error

    def paths(self, *tables: str) -> list[Path]:
        """The files of some tables, each looked over."""
        return [self.sound(file) for file in self.manifest.of(*tables)]

    def sound(self, file: LakeFile) -> Path:
        """A file that is what the manifest says.

        It is hashed where its size or its time of change is not the one it was written with; else it is taken at its
        word. :meth:`look_over` hashes all of them.

        Raises:
            Corrupt: ``lake-damaged``.
        """
        path = self.folder / file.name
        if file.name not in self._sound:
            with parquet.mapped(path):
                if not path.exists():
                    self._refuse_while_written()
                    raise self._damaged(path, "it is missing")
                stands = path.stat()
                changed = (stands.st_size, stands.st_mtime_ns) != (file.size, file.changed_ns)
                if changed and (stands.st_size != file.size or parquet.digest_of(path) != file.sha256):
                    self._refuse_while_written()
                    raise self._damaged(path, "it is not the file that was exported")
            self._sound.add(file.name)
        return path

    def _damaged(self, path: Path, why: str) -> Corrupt:
        """The error of a file that the next export writes anew, for it sees the same."""
        return Corrupt("lake-damaged", f"{path} is damaged: {why}", hint=_make(self.folder))

    def _refuse_while_written(self) -> None:
        """A file that a running export has replaced is not damaged: its manifest is about to come.

        Raises:
            Unavailable: ``lake-busy``.
        """
        if self._is_writer:
            return
        with suppress(OSError), (self.folder / _LOCK).open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Unavailable(
                    "lake-busy", f"{self.folder} is being written", hint="run the command again"
                ) from error

    def stands(self, file: LakeFile) -> bool:
        """Whether a file is what the manifest says."""
        try:
            self.sound(file)
        except Corrupt:
            return False
        return True

    def look_over(self) -> None:
        """Hash every file, and look for others.

        Raises:
            Corrupt: ``lake-damaged``, with the first file that is not what was exported, or that nobody exported.
        """
        for file in self.manifest.files:
            path = self.folder / file.name
            with parquet.mapped(path):
                if path.stat().st_size != file.size or parquet.digest_of(path) != file.sha256:
                    raise parquet.damaged(path, "it is not the file that was exported")
        for name in self.strangers():
            raise Corrupt(
                "lake-damaged",
                f"{self.folder / name} is no file of this lake, and other tools would count it",
                hint=f"{_make(self.folder)}   (it was killed before it said so), or delete that file",
            )

    def strangers(self) -> list[str]:
        """Parquet files in its folder that the manifest does not name: of a killed export, or from elsewhere."""
        known = {file.name for file in self.manifest.files}
        with parquet.mapped(self.folder):
            found = [path.relative_to(self.folder) for path in self.folder.rglob("*.parquet")]
        named = [path.as_posix() for path in found if not any(part.startswith(".") for part in path.parts)]
        return sorted(name for name in named if name not in known)


def _make(folder: Path) -> str:
    return f"gpuledger export parquet --to {folder}"


def file_of(name: str, table: str, month: str, numbers: dict[str, tuple[int, int]], written: Written) -> LakeFile:
    """What the manifest says of a file just written."""
    return LakeFile(
        name=name, table=table, month=month, rows=written.rows, size=written.size, sha256=written.sha256,
        changed_ns=written.changed_ns, numbers=numbers,
    )  # fmt: skip


def put_manifest(folder: Path, manifest: Manifest, files: Iterable[LakeFile]) -> Manifest:
    """Write the manifest with these files, last of all: what it names is whole."""
    whole = replace(manifest, files=tuple(sorted(files, key=lambda file: file.name)))
    parquet.put_text(folder / MANIFEST, whole.to_json())
    return whole


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """The only writer of a lake. What a killed one left half written is removed.

    Raises:
        Misconfigured: ``not-a-lake`` where the folder holds something else.
        Unavailable: ``lake-busy``, ``lake-io``, ``lake-full``.
    """
    path = folder / _LOCK
    if folder.exists() and not folder.is_dir():
        raise Misconfigured("not-a-lake", f"{folder} is no folder", hint="name an empty or a new folder")
    with parquet.mapped(path):
        folder.mkdir(parents=True, exist_ok=True)
        foreign = [each.name for each in folder.iterdir() if not each.name.startswith(".")]
        if foreign and not (folder / MANIFEST).exists() and not path.exists():
            raise Misconfigured(
                "not-a-lake", f"{folder} holds {min(foreign)} and no lake", hint="name an empty or a new folder"
            )
        number = os.open(path, os.O_CREAT | os.O_RDWR, 0o640)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Unavailable(
                "lake-busy", f"somebody else writes to {folder}", hint=f"wait for it: fuser -v {path}"
            ) from error
        with parquet.mapped(path):
            for left in folder.rglob(f".*{parquet.TEMPORARY}"):
                left.unlink(missing_ok=True)
            for aside in folder.glob(f"{parquet.ASIDE}*"):
                shutil.rmtree(aside, ignore_errors=True)
        yield
    finally:
        os.close(number)
