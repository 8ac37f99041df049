"""The SQLite engine: opening a file safely, its transactions, its errors, and the few words only SQLite speaks.

In: a path and a mode. Out: a SQLAlchemy connection, or an error of :mod:`gpuledger.errors`. Everything that
would differ on another engine stands here or in ``migrations/``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.errors import Corrupt, GpuledgerError, Misconfigured, Refused, Unavailable
from gpuledger.ledger.places import is_there
from gpuledger.ledger.schema import SCHEMA_VERSION

APPLICATION_ID = 1196444743
"""The letters GPLG: what the header of every ledger carries, so that no other application's file is touched."""

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for another."""

MARK = "?"
"""The placeholder of a driver-level parameter."""

POSITION = "instr"
"""The function that gives the 1-based position of a text in another; ``strpos`` on PostgreSQL."""

OPEN_RECORDS = "usage_record INDEXED BY usage_record_open"
"""Records of contexts that were open, through the small index of no others; plain ``usage_record`` on PostgreSQL."""

JOINED = "group_concat({}, ',')"
"""The aggregate that joins values with commas; ``string_agg`` of a text on PostgreSQL."""

_OLDEST = (3, 37, 0)  # STRICT tables
_MAGIC = b"SQLite format 3\0"
_DAMAGE_HINT = "gpuledger verify --ledger {path}   (then restore from a backup)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a file says it is: the header's application id and schema version, and whether it holds any table."""

    application_id: int
    version: int
    empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An open file.

    Args:
        connection: the connection, outside of any transaction.
        outdated: its tables are still to be made or brought up to date.
        stamp: what the file looked like before a reading that takes no lock; None where locks are taken.
    """

    connection: sa.Connection
    outdated: bool
    stamp: tuple[int, int, int] | None


def open_connection(path: Path, *, mode: str, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Opened:
    """Open the ledger at ``path``.

    Args:
        path: the file.
        mode: ``append`` creates the file and its parents where absent; ``read`` creates and changes nothing.
        busy_timeout_ms: how long to wait for another writer.

    Raises:
        Unavailable: ``no-ledger``, ``ledger-permission``, ``ledger-newer``, ``ledger-older``, ``ledger-busy``,
            ``ledger-full``, ``ledger-io``, ``sqlite-too-old``.
        Misconfigured: ``not-a-ledger`` when the file belongs to another application.
        Corrupt: ``ledger-damaged`` when it is no database, or one whose pages cannot be read.
    """
    if sqlite3.sqlite_version_info < _OLDEST:
        raise Unavailable(
            "sqlite-too-old",
            f"this Python's SQLite is {sqlite3.sqlite_version}; the ledger needs 3.37 or newer",
            hint="use a Python built against a newer SQLite",
        )
    with mapped(path):
        if mode == "append":
            _create(path)
        _judge(path, _signature(path, mode), mode)
        if mode == "append" and _holds(path, "-wal"):
            # The log may hold a newer version than the header; a writing connection would already write it out.
            with closing(_connect(path, "mode=ro", busy_timeout_ms)) as connection:
                _judge(path, _signature_of(connection), mode)
        options, before = "mode=rw", None
        if mode == "read":
            options = "mode=ro"
            if not is_there(_beside(path, "-wal")):
                # Without -wal nobody writes. A plain read-only connection would create -wal and -shm (owned by
                # the reader, in the agent's way) or fail where it may not; immutable=1 does neither.
                options, before = "mode=ro&immutable=1", stamp(path)
        connection = _connect(path, options, busy_timeout_ms)
        try:
            signature = _signature_of(connection)
            _judge(path, signature, mode)
        except BaseException:
            connection.close()
            raise
    return Opened(connection=connection, outdated=signature.version < SCHEMA_VERSION, stamp=before)


def stamp(path: Path) -> tuple[int, int, int]:
    """What changes when a file is written: inode, size, time of change."""
    status = path.stat()
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _create(path: Path) -> None:
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


def _signature(path: Path, mode: str) -> Signature:
    """Read the header without SQLite, which would already write to some files while looking.

    Who is to append asks for the right to write here: SQLite would say so only at the first append, and leave
    an empty log behind.
    """
    with path.open("r+b" if mode == "append" else "rb") as file:
        header = file.read(100)
    if header and (len(header) < 100 or not header.startswith(_MAGIC)):
        raise _damaged(path, "it is not an SQLite database")
    return Signature(
        application_id=int.from_bytes(header[68:72], "big"),
        version=int.from_bytes(header[60:64], "big"),
        empty=not any(header[40:44]),  # schema cookie: 0 until the first table
    )


def _signature_of(connection: sa.Connection) -> Signature:
    tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
    return Signature(
        application_id=_pragma(connection, "application_id"),
        version=_pragma(connection, "user_version"),
        empty=not tables,
    )


def _holds(path: Path, suffix: str) -> bool:
    try:
        return _beside(path, suffix).stat().st_size > 0
    except FileNotFoundError:
        return False


def _judge(path: Path, signature: Signature, mode: str) -> None:
    """Raise when the file is not ours to use."""
    if mode == "read" and _holds(path, "-journal"):
        raise Unavailable(
            "ledger-busy",
            f"{path} is being created, or its creation was interrupted",
            hint="try again; if it stays so, start the agent once: it finishes the work",
        )
    if signature.application_id == 0 and signature.empty:
        if mode == "read" and not _holds(path, "-wal"):
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
            hint="gpuledger agent --once   (whoever writes it next brings it up to date)",
        )


def _connect(path: Path, options: str, busy_timeout_ms: int) -> sa.Connection:
    address = f"file:{quote(str(path.absolute()))}?{options}"

    def create() -> sqlite3.Connection:
        # isolation_level None: BEGIN IMMEDIATE and COMMIT are said by this module, never by the driver.
        return sqlite3.connect(address, uri=True, isolation_level=None, timeout=busy_timeout_ms / 1000)

    connection = sa.create_engine("sqlite://", creator=create, poolclass=sa.NullPool).connect()
    try:
        for setting in ("foreign_keys = ON", "secure_delete = ON", "trusted_schema = OFF",
                        "recursive_triggers = ON", "synchronous = FULL", "cache_size = -16384"):  # fmt: skip
            connection.exec_driver_sql(f"PRAGMA {setting}")
        connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")  # the first look at the file
    except BaseException:
        connection.close()
        raise
    return connection


def use_wal(connection: sa.Connection, path: Path) -> None:
    """Switch the file to a write-ahead log, which stays: readers and one writer do not wait for each other.

    Raises:
        Unavailable: ``ledger-io`` where the file system cannot hold one (some network file systems).
    """
    if connection.exec_driver_sql("PRAGMA journal_mode = WAL").scalar_one() != "wal":
        raise Unavailable(
            "ledger-io",
            f"{path}: this file system cannot hold a write-ahead log",
            hint="keep the ledger on a local disk: --ledger PATH",
        )


def _pragma(connection: sa.Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())


def bare_cursor(connection: sa.Connection) -> DBAPICursor:
    """The driver's own cursor: SQLAlchemy's results cost three times what SQLite does for a few rows."""
    return connection.connection.cursor()


@contextmanager
def transaction(connection: sa.Connection, *, write: bool) -> Iterator[None]:
    """One transaction: with ``write`` the only one at a time, else a snapshot for several reads."""
    cursor = bare_cursor(connection)
    cursor.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield
        cursor.execute("COMMIT")
    except BaseException:
        if not connection.invalidated and in_transaction(connection):
            cursor.execute("ROLLBACK")
        raise


def in_transaction(connection: sa.Connection) -> bool:
    """Whether the file's transaction is open; SQLite ends it by itself on some errors."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver.in_transaction


def others_wrote(connection: sa.Connection) -> int:
    """Changes whenever another connection has committed."""
    cursor = bare_cursor(connection)
    cursor.execute("PRAGMA data_version")
    ((version,),) = cursor.fetchall()
    return int(version)


def own_changes(connection: sa.Connection) -> int:
    """Grows with every row that this connection writes."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver.total_changes


def erase_traces(connection: sa.Connection, path: Path) -> None:
    """Move every page out of the write-ahead log and empty it, so that deleted text is nowhere any more.

    Raises:
        Unavailable: ``log-in-use`` when somebody reads from the log for longer than is waited for.
    """
    is_busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
    if is_busy:
        raise Unavailable(
            "log-in-use",
            f"the texts are deleted from {path}, and still stand in its write-ahead log, which somebody reads",
            hint=f"run the command again once they are done; see who: fuser -v {path}-wal",
        )


def damaged_pages(connection: sa.Connection) -> list[str]:
    """What SQLite's own check of pages, indexes and column types finds; empty when all is well."""
    lines = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check(20)")]
    return [] if lines == ["ok"] else [line for text in lines for line in text.splitlines()]


def stored_objects(connection: sa.Connection) -> dict[tuple[str, str], tuple[str, str]]:
    """Tables, indexes and triggers as they stand: (type, name) to (table, SQL)."""
    rows = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master")
    return {(str(row[0]), str(row[1])): (str(row[2]), str(row[3] or "")) for row in rows}


def no_ledger(path: Path) -> Unavailable:
    """The error for a ledger that is not there."""
    return Unavailable(
        "no-ledger",
        f"there is no ledger at {path}",
        hint="start one with: gpuledger agent   (or name another with --ledger)",
    )


def _damaged(path: Path, why: str) -> Corrupt:
    return Corrupt("ledger-damaged", f"{path} is damaged: {why}", hint=_DAMAGE_HINT.format(path=path))


@contextmanager
def mapped(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system raise into the errors people meet; anything else is a bug."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        cause = error.orig
        known = error_for(path, cause) if isinstance(cause, sqlite3.Error) else None
        if known is None:
            raise
        raise known from error
    except sqlite3.Error as error:
        known = error_for(path, error)
        if known is None:
            raise
        raise known from error
    except UnicodeDecodeError as error:
        # The driver cannot even tell what is wrong when the words it would use are the damaged ones.
        raise _damaged(path, "text that is not UTF-8") from error
    except FileNotFoundError as error:
        raise no_ledger(path) from error
    except PermissionError as error:
        raise _permission(path) from error
    except OSError as error:
        raise Unavailable("ledger-io", f"{path}: {error.strerror}", hint="check the path and the disk") from error


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
        return _damaged(path, "text that is not UTF-8") if "decode to UTF-8" in text else None
    code = extended & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT):
        return _damaged(path, text)
    if code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA):
        broken = ("no such table", "no such column", "malformed", "unsupported file format", "has no column")
        return _damaged(path, text) if any(words in text for words in broken) else None
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
