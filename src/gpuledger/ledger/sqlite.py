"""The SQLite engine: opening a file safely, its transactions, its errors, and the few words only SQLite speaks.

In: a path and a mode. Out: a SQLAlchemy connection, or an error of :mod:`gpuledger.errors`. Everything that
would differ on another engine stands here or in ``migrations/``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, cast
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.errors import Unavailable
from gpuledger.ledger import sqlite_archive
from gpuledger.ledger.engine import BUSY_TIMEOUT_MS, Opened
from gpuledger.ledger.places import Place, beside, is_there
from gpuledger.ledger.schema import METADATA, SCHEMA_VERSION
from gpuledger.ledger.sqlite_errors import mapped
from gpuledger.ledger.sqlite_file import create, holds, judge, signature_in, signature_of, stamp

refuse_to_drop = sqlite_archive.refuse_to_drop
unguarded = sqlite_archive.unguarded
lay_under = sqlite_archive.lay_under
index_laid = sqlite_archive.index

POSITION = "instr"
JOINED = "group_concat({}, ',')"
OPEN_RECORDS = "usage_record INDEXED BY usage_record_open"
IS_HINTED = True

_OLDEST = (3, 37, 0)  # STRICT tables

_RELATIONS_CACHE = -32768
"""KiB, negative: holds the intervals of 150,000 events and the heads of their records, which are read in another order
than they were written; with SQLite's 2 MiB a month of jobs takes a fifteenth more CPU."""


def open_connection(place: Place, *, mode: str, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Opened:
    """Open the ledger in a file.

    Args:
        place: the file's path.
        mode: ``append`` creates the file and its parents where absent; ``read`` creates and changes nothing.
        busy_timeout_ms: how long to wait for another writer.

    Raises:
        Unavailable: ``no-ledger``, ``ledger-permission``, ``ledger-newer``, ``ledger-older``, ``ledger-busy``,
            ``ledger-full``, ``ledger-io``, ``sqlite-too-old``.
        Misconfigured: ``not-a-ledger`` when the file belongs to another application.
        Corrupt: ``ledger-damaged`` when it is no database, or one whose pages cannot be read.
    """
    path = _file(place)
    if sqlite3.sqlite_version_info < _OLDEST:
        raise Unavailable(
            "sqlite-too-old",
            f"this Python's SQLite is {sqlite3.sqlite_version}; the ledger needs 3.37 or newer",
            hint="use a Python built against a newer SQLite",
        )
    with mapped(path):
        if mode == "append":
            create(path)
        judge(path, signature_in(path, mode), mode)
        if mode == "append" and holds(path, "-wal"):
            # The log may hold a newer version than the header; a writing connection would already write it out.
            with closing(_connect(path, "mode=ro", busy_timeout_ms)) as connection:
                judge(path, signature_of(connection), mode)
        options, before = "mode=rw", None
        if mode == "read":
            options = "mode=ro"
            if not is_there(beside(path, "-wal")):
                # Without -wal nobody writes. A plain read-only connection would create -wal and -shm (owned by
                # the reader, in the agent's way) or fail where it may not; immutable=1 does neither.
                options, before = "mode=ro&immutable=1", stamp(path)
        connection = _connect(path, options, busy_timeout_ms)
        try:
            signature = signature_of(connection)
            judge(path, signature, mode)
        except BaseException:
            connection.close()
            raise
    return Opened(connection=connection, place=path, outdated=signature.version < SCHEMA_VERSION, stamp=before)


def prepare(opened: Opened) -> None:
    """Make the tables, or bring them up to date, all or nothing; the file then has a write-ahead log.

    Raises:
        Unavailable: ``ledger-io`` where the file system cannot hold one (some network file systems).
    """
    if opened.outdated:
        from gpuledger.ledger.migrate import migrate  # noqa: PLC0415 Alembic is only paid for when needed

        with transaction(opened.connection, write=True):
            migrate(opened.connection)
    # It stays: readers and one writer do not wait for each other.
    if opened.connection.exec_driver_sql("PRAGMA journal_mode = WAL").scalar_one() != "wal":
        raise Unavailable(
            "ledger-io",
            f"{opened.place}: this file system cannot hold a write-ahead log",
            hint="keep the ledger on a local disk: --ledger PATH",
        )


def _file(place: Place) -> Path:
    assert isinstance(place, Path), "the other engine's place"
    return place


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


def bare_cursor(connection: sa.Connection) -> DBAPICursor:
    """A cursor of sqlite3."""
    cursor: Any = _driver(connection).cursor()
    return cursor  # type: ignore[no-any-return]


def _driver(connection: sa.Connection) -> sqlite3.Connection:
    driver: Any = connection.connection.dbapi_connection
    return driver  # type: ignore[no-any-return]


class transaction:  # noqa: N801 read as a word of a with statement; a class: a generator's costs a tenth of a commit
    """One transaction: with ``write`` the only one at a time, whatever it names, else a snapshot for several reads."""

    __slots__ = ("_begin", "_connection", "_cursor")

    def __init__(
        self, connection: sa.Connection, *, write: bool, alone: Sequence[str] = (), beside: Sequence[str] = ()
    ) -> None:
        del alone, beside
        self._connection = connection
        self._begin = "BEGIN IMMEDIATE" if write else "BEGIN"

    def __enter__(self) -> None:
        self._cursor = _driver(self._connection).cursor()
        self._cursor.execute(self._begin)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self._cursor.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        if not self._connection.invalidated and in_transaction(self._connection):
            self._cursor.execute("ROLLBACK")


def in_transaction(connection: sa.Connection) -> bool:
    """Whether the file's transaction is open; SQLite ends it by itself on some errors."""
    return _driver(connection).in_transaction


def lock(cursor: DBAPICursor, name: str) -> None:
    """Nothing: a transaction that writes is the only one."""
    del cursor, name


def is_race(error: BaseException) -> bool:
    """Never: nobody else writes meanwhile."""
    del error
    return False


def part(connection: sa.Connection) -> AbstractContextManager[None]:
    """Nothing: a statement that fails ends no transaction of reads."""
    del connection
    return nullcontext()


def stream(
    connection: sa.Connection, statement: sa.Select[Any] | str, bound: Mapping[str, Any], size: int
) -> Iterator[list[tuple[Any, ...]]]:
    """Rows as they are found, on the driver's cursor. One that is let go after its ledger has nothing left to close."""
    with ExitStack() as ending:
        if isinstance(statement, str):
            cursor: DBAPICursor | None = bare_cursor(connection)
            assert cursor is not None
            ending.callback(_close, cursor, connection)
            cursor.execute(statement, bound)
        else:
            # The driver's own cursor: a SQLAlchemy row for each of two million would cost as much as SQLite itself.
            result = connection.execute(statement, bound)
            ending.callback(_close, result, connection)
            cursor = result.cursor
            assert cursor is not None
        while rows := cursor.fetchmany(size):
            yield cast("list[tuple[Any, ...]]", rows)


def _close(opened: DBAPICursor | sa.CursorResult[Any], connection: sa.Connection) -> None:
    if not connection.closed:
        opened.close()


def insert(cursor: DBAPICursor, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows, few or many."""
    cursor.executemany(_insert_into(table, tuple(columns)), rows)


@cache
def _insert_into(table: str, columns: tuple[str, ...]) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 names are the schema's own, values are bound


def together(cursor: DBAPICursor, *, is_last: bool = False) -> AbstractContextManager[object]:
    """Nothing: there is no round trip to save."""
    del cursor, is_last
    return nullcontext()


def make_relations(connection: sa.Connection, relations: Mapping[str, str]) -> None:
    """Temporary tables: they belong to the connection, and nothing of the file changes."""
    cursor = bare_cursor(connection)
    cursor.execute(f"PRAGMA temp.cache_size = {_RELATIONS_CACHE}")
    for name, columns in relations.items():
        cursor.execute(f"CREATE TEMP TABLE IF NOT EXISTS {name} ({columns})")


def weigh(cursor: DBAPICursor, relations: Sequence[str]) -> None:
    """Nothing: the order of joins is written in the statements."""
    del cursor, relations


def others_wrote(connection: sa.Connection) -> int:
    """Changes whenever another connection has committed."""
    cursor = bare_cursor(connection)
    cursor.execute("PRAGMA data_version")
    ((version,),) = cursor.fetchall()
    return int(version)


def own_changes(connection: sa.Connection) -> int:
    """Grows with every row that this connection writes."""
    return _driver(connection).total_changes


def rewrite_kept(connection: sa.Connection, table: sa.Table) -> None:
    """Write the rows that stay anew.

    Where a page was split or merged before, SQLite leaves copies of the rows it moved in the page's free room, which
    ``secure_delete`` does not reach (3.40.1, met by a test). Emptying the whole table gives back all of its pages, and
    those are overwritten with zeros.
    """
    kept = [tuple(row) for row in connection.execute(sa.select(*table.columns))]
    connection.execute(sa.delete(table))
    if kept:
        insert(bare_cursor(connection), table.name, [column.name for column in table.columns], kept)


def erase_traces(opened: Opened) -> str:
    """Move every page out of the write-ahead log and empty it, so that deleted text is nowhere any more.

    Raises:
        Unavailable: ``log-in-use`` when somebody reads from the log for longer than is waited for.
    """
    is_busy = opened.connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
    if is_busy:
        path = opened.place
        raise Unavailable(
            "log-in-use",
            f"the texts are deleted from {path}, and still stand in its write-ahead log, which somebody reads",
            hint=f"run the command again once they are done; see who: fuser -v {path}-wal",
        )
    return ""


def damaged_pages(connection: sa.Connection) -> Iterator[str]:
    """What SQLite's own check of pages, indexes and column types finds; nothing when all is well."""
    lines = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check(20)")]
    if lines != ["ok"]:
        yield from (line for text in lines for line in text.splitlines())
    yield from _cut_off(connection)


def _cut_off(connection: sa.Connection) -> Iterator[str]:
    """Pages that the file's own header counts and that are not there: of a page that nothing reads SQLite is silent."""
    names = {str(name): str(path) for _, name, path in connection.exec_driver_sql("PRAGMA database_list")}
    place = Path(names["main"])
    log = place.with_name(f"{place.name}-wal")
    if log.exists() and log.stat().st_size:
        return  # somebody may be bringing pages over from it, the first one before the last
    with place.open("rb") as file:
        header = file.read(32)
        size = os.fstat(file.fileno()).st_size
    bytes_a_page = int.from_bytes(header[16:18], "big")  # SQLite file format 2, section 1.3: 1 stands for 65536
    counted = int.from_bytes(header[28:32], "big") * (65536 if bytes_a_page == 1 else bytes_a_page)
    if size < counted:
        yield f"the file has {size} bytes, and its header counts {counted}: its end is missing"


def schema_findings(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    """Tables, indexes and triggers that are missing, changed or added, by their SQL: (name, sentence)."""
    from gpuledger.ledger.migrate import expected_objects  # noqa: PLC0415 Alembic is only paid for when needed

    expected = expected_objects()
    rows = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master")
    stored = {(str(row[0]), str(row[1])): (str(row[2]), str(row[3] or "")) for row in rows}
    for (kind, name), (_, sql) in sorted(expected.items()):
        if (kind, name) not in stored:
            yield name, f"the {kind} is missing"
        elif stored[kind, name][1] != sql:
            yield name, f"the {kind} is not the one that this program made"
    for (kind, name), (table, _) in sorted(stored.items()):
        if (kind, name) not in expected and table in METADATA.tables and kind in ("trigger", "index"):
            yield name, f"a {kind} on {table} that this program did not make"


class errors_of(mapped):  # noqa: N801 as mapped
    """Errors as people meet them, for what is done with an open file.

    Raises:
        Unavailable: ``ledger-busy`` beside all others, when the file was written while it was read without a lock: what
            was read may be half old and half new, and is never handed out as an answer.
    """

    __slots__ = ("_opened",)

    def __init__(self, opened: Opened) -> None:
        super().__init__(_file(opened.place))
        self._opened = opened

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened.stamp is not None and isinstance(error, sa.exc.DBAPIError | sqlite3.Error | None):
            with mapped(self._path):
                _refuse_torn_read(self._path, self._opened, error)
        super().__exit__(kind, error, trace)


def _refuse_torn_read(path: Path, opened: Opened, cause: BaseException | None) -> None:
    if opened.stamp is not None and stamp(path) != opened.stamp:
        raise Unavailable(
            "ledger-busy", f"{path} was written while it was read", hint="run the command again"
        ) from cause
