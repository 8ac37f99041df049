"""What SQLite and the file system raise, as the errors people meet.

In: an exception and the ledger's path. Out: an error of :mod:`gpuledger.errors`, or nothing where the fault is this
program's own.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import TracebackType

import sqlalchemy as sa

from gpuledger.errors import Corrupt, GpuledgerError, Refused, Unavailable

_DAMAGE_HINT = "gpuledger verify --ledger {path}   (then restore from a backup)"


def no_ledger(path: Path) -> Unavailable:
    """The error for a ledger that is not there."""
    return Unavailable(
        "no-ledger",
        f"there is no ledger at {path}",
        hint="start one with: gpuledger agent   (or name another with --ledger)",
    )


def damaged(path: Path, why: str) -> Corrupt:
    """The error for a file that cannot be read as what it should be."""
    return Corrupt("ledger-damaged", f"{path} is damaged: {why}", hint=_DAMAGE_HINT.format(path=path))


class mapped:  # noqa: N801 read as a word of a with statement; a class, for each transaction passes two such
    """Turn what SQLite and the file system raise into the errors people meet; anything else is a bug."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and (known := _known(self._path, error)) is not None:
            raise known from error


def _known(path: Path, error: BaseException) -> GpuledgerError | None:
    if isinstance(error, sa.exc.DBAPIError):
        cause = error.orig
        return error_for(path, cause) if isinstance(cause, sqlite3.Error) else None
    if isinstance(error, sqlite3.Error):
        return error_for(path, error)
    if isinstance(error, UnicodeDecodeError):
        # The driver cannot even tell what is wrong when the words it would use are the damaged ones.
        return damaged(path, "text that is not UTF-8")
    if isinstance(error, FileNotFoundError):
        return no_ledger(path)
    if isinstance(error, PermissionError):
        return _permission(path)
    if isinstance(error, OSError):
        return Unavailable("ledger-io", f"{path}: {error.strerror}", hint="check the path and the disk")
    return None


def _permission(path: Path) -> Unavailable:
    return Unavailable(
        "ledger-permission",
        f"{path}, or the directory it lies in, may not be used by this user",
        hint="use another place with --ledger, or join the group that may read it",
    )


def error_for(path: Path, error: sqlite3.Error) -> GpuledgerError | None:
    """The error a caller can act on; None when the fault is this program's own."""
    # Python 3.11 gives the extended code; errors of the driver itself (undecodable text) carry none.
    extended = getattr(error, "sqlite_errorcode", None)
    text = str(error)
    if extended is None:
        return damaged(path, "text that is not UTF-8") if "decode to UTF-8" in text else None
    code = extended & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT):
        return damaged(path, text)
    if code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA):
        broken = ("no such table", "no such column", "malformed", "unsupported file format", "has no column")
        return damaged(path, text) if any(words in text for words in broken) else None
    if code == sqlite3.SQLITE_CONSTRAINT and extended == sqlite3.SQLITE_CONSTRAINT_TRIGGER:
        return Refused("append-only", text, hint="a late fact is appended as a correction: gpuledger meter")
    if code == sqlite3.SQLITE_FULL or extended in (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC):
        return Unavailable(
            "ledger-full",
            f"{path} could not be written: no room on the disk, or a limit on file size; nothing was added",
            hint=f"make room: df -h {path.parent}",
        )
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH):
        return _permission(path)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        return Unavailable(
            "ledger-busy", f"{path} is held by another writer", hint="try again; see who: fuser -v " + str(path)
        )
    if code == sqlite3.SQLITE_IOERR:
        return Unavailable("ledger-io", f"{path}: {text}", hint="check the disk: dmesg | tail")
    if code == sqlite3.SQLITE_NOMEM:
        return Unavailable("ledger-memory", f"{path}: not enough memory", hint="close something, or ask for less time")
    if code == sqlite3.SQLITE_TOOBIG:
        return Refused("row-too-big", "a row holds more text than SQLite keeps", hint="shorten the text")
    return None
