"""An SQLite file before it is opened as a ledger: what it is, and whether this program may use it.

In: a path. Out: its header, or an error of :mod:`gpuledger.errors`. Nothing here writes to a file that is there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from gpuledger.errors import Misconfigured, Unavailable
from gpuledger.ledger.places import beside, is_there
from gpuledger.ledger.schema import SCHEMA_VERSION
from gpuledger.ledger.sqlite_errors import damaged, mapped, no_ledger

APPLICATION_ID = 1196444743
"""The letters GPLG: what the header of every ledger carries, so that no other application's file is touched."""

_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a file says it is: the header's application id and schema version, and whether it holds any table."""

    application_id: int
    version: int
    empty: bool


def stamp(path: Path) -> tuple[int, int, int]:
    """What changes when a file is written: inode, size, time of change."""
    status = path.stat()
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def create(path: Path) -> None:
    """Make an empty file and its parents where there is none: mode 0640, whatever the umask."""
    if is_there(path):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o640)
    except FileExistsError:
        return  # another process was faster; both open the same file
    try:
        os.fchmod(descriptor, 0o640)  # whatever the umask: a group may read, others may not
    finally:
        os.close(descriptor)


def signature_in(path: Path, mode: str) -> Signature:
    """Read the header without SQLite, which would already write to some files while looking.

    Who is to append asks for the right to write here: SQLite would say so only at the first append, and leave
    an empty log behind.
    """
    with path.open("r+b" if mode == "append" else "rb") as file:
        header = file.read(100)
    if header and (len(header) < 100 or not header.startswith(_MAGIC)):
        raise damaged(path, "it is not an SQLite database")
    return Signature(
        application_id=int.from_bytes(header[68:72], "big"),
        version=int.from_bytes(header[60:64], "big"),
        empty=not any(header[40:44]),  # schema cookie: 0 until the first table
    )


def signature_of(connection: sa.Connection) -> Signature:
    """Ask SQLite for the same, where its log may hold something newer than the file."""
    tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
    return Signature(
        application_id=_pragma(connection, "application_id"),
        version=_pragma(connection, "user_version"),
        empty=not tables,
    )


def stored_version(path: Path) -> int:
    """The version of the tables of a file; 0 where there are none.

    Raises:
        Corrupt: ``ledger-damaged``.
    """
    with mapped(path):
        return signature_in(path, "read").version


def holds(path: Path, suffix: str) -> bool:
    """Whether a file of this suffix beside it holds anything."""
    try:
        return beside(path, suffix).stat().st_size > 0
    except FileNotFoundError:
        return False


def judge(path: Path, signature: Signature, mode: str) -> None:
    """Raise when the file is not ours to use.

    Raises:
        Unavailable: ``no-ledger``, ``ledger-busy``, ``ledger-newer``, ``ledger-older``.
        Misconfigured: ``not-a-ledger``.
    """
    if mode == "read" and holds(path, "-journal"):
        raise Unavailable(
            "ledger-busy",
            f"{path} is being created, or its creation was interrupted",
            hint="try again; if it stays so, start the agent once: it finishes the work",
        )
    if signature.application_id == 0 and signature.empty:
        if mode == "read" and not holds(path, "-wal"):
            raise no_ledger(path)
        return
    if signature.application_id != APPLICATION_ID:
        raise Misconfigured(
            "not-a-ledger",
            f"{path} is an SQLite file of another application; it was left as it is",
            hint="name another file with --ledger",
        )
    if signature.version > SCHEMA_VERSION:
        raise Unavailable(
            "ledger-newer",
            f"{path} was written by a newer gpuledger (tables of version {signature.version}, "
            f"this program knows {SCHEMA_VERSION}); it was left as it is",
            hint="pip install --upgrade gpuledger",
        )
    if mode == "read" and signature.version < SCHEMA_VERSION:
        raise Unavailable(
            "ledger-older",
            f"{path} has tables of version {signature.version}, this program reads {SCHEMA_VERSION}",
            hint=f"gpuledger migrate --ledger {path}   (or whoever writes it next brings it up to date)",
        )


def _pragma(connection: sa.Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
