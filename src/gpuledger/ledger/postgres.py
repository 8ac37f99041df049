"""The PostgreSQL engine: opening a database, its transactions and locks, and the few words only PostgreSQL speaks.

In: a server's database and a mode. Out: a SQLAlchemy connection, or an error of :mod:`gpuledger.errors`. Of the shape
of :class:`gpuledger.ledger.engine.Engine`; imported only for a ledger on PostgreSQL. Roles, grants and the check of the
tables stand in :mod:`.postgres_tables`.

Writers do not wait for each other: each locks its own chain, for as long as it writes a link. Who judges by what
stands in the ledger locks what it judges about (advisory locks, which end with the transaction). See decision 0013.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from typing import Any, cast
from weakref import WeakKeyDictionary

import psycopg
import sqlalchemy as sa
from psycopg import conninfo
from psycopg.pq import TransactionStatus
from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.errors import GpuledgerError, Misconfigured, Unavailable
from gpuledger.ledger import postgres_archive, postgres_cursor, postgres_tables
from gpuledger.ledger.engine import BUSY_TIMEOUT_MS, Opened
from gpuledger.ledger.migrations.making import in_postgres
from gpuledger.ledger.places import Place, Server
from gpuledger.ledger.postgres_cursor import Cursor, WholeLoader, cursor_name, fetched, is_idle
from gpuledger.ledger.postgres_errors import OF_ONE_CONNECTION, RACES, bad_url, error_for, unreachable
from gpuledger.ledger.postgres_pipeline import pipeline_of
from gpuledger.ledger.schema import SCHEMA_VERSION, VERSION_TABLES

damaged_pages, schema_findings = postgres_tables.damaged_pages, postgres_tables.schema_findings
insert, together = postgres_cursor.insert, postgres_cursor.together
refuse_to_drop, unguarded, lay_under, index_laid = postgres_archive.FOR_ENGINE

POSITION, OPEN_RECORDS, IS_HINTED = "strpos", "usage_record", False
JOINED = "string_agg(CAST({} AS text), ',')"

MIGRATE_HINT = "as the owner of the tables: gpuledger migrate --ledger postgresql://OWNER@HOST/DATABASE"

_WRITES = "BEGIN ISOLATION LEVEL READ COMMITTED"
_READS = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LOCK = "SELECT pg_advisory_xact_lock"
_CONNECT_S = 10
_OLDEST = 130000  # MATERIALIZED (12); the oldest that is still maintained in 2025 is 13
_SETTINGS = """
SET jit = off;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"""
"""A plan that is compiled costs more than it saves; what was acknowledged is there after a crash of the server."""

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what it says of a cut is in the error, in our words

_NUMBERS = count(1)
_HELD: WeakKeyDictionary[sa.Connection, psycopg.Connection[tuple[Any, ...]]] = WeakKeyDictionary()
"""What each transaction runs on: once that is cut nothing of it may go on elsewhere."""


def open_connection(place: Place, *, mode: str, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Opened:
    """Open the ledger in a database.

    Args:
        place: the server and its database.
        mode: ``append`` or ``read``; neither creates anything.
        busy_timeout_ms: how long to wait for another writer.

    Raises:
        Misconfigured: ``bad-ledger-place``, ``not-utf8``.
        Unavailable: ``ledger-unreachable``, ``ledger-outdated``, ``ledger-newer``, ``ledger-permission``,
            ``ledger-busy``, ``postgres-too-old``.
    """
    opened = connect(place, busy_timeout_ms=busy_timeout_ms)
    try:
        with errors_of(opened):
            _judge(_server(place), stored_version(opened.connection))
            _ask_permission(opened, mode)
    except BaseException:
        opened.connection.close()
        raise
    return opened


def connect(place: Place, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Opened:
    """Connect to a database, whatever tables it has.

    Raises:
        Misconfigured, Unavailable: as :func:`open_connection`, but for what it says of tables.
    """
    server = _server(place)
    try:
        told = conninfo.conninfo_to_dict(server.url)
    except psycopg.Error as error:
        raise bad_url(server, error) from None
    words = {"connect_timeout": _CONNECT_S, "application_name": "gpuledger"} | told | {"client_encoding": "UTF8"}

    def create() -> psycopg.Connection[tuple[Any, ...]]:
        # Autocommit: BEGIN and COMMIT are said by this module, never by the driver.
        driver = psycopg.connect(**words, autocommit=True)  # type: ignore[arg-type]
        driver.adapters.register_loader("numeric", WholeLoader)
        driver.execute(f"SET lock_timeout = {busy_timeout_ms}; {_SETTINGS}")
        _keep_to_schema(driver)
        return driver

    engine = sa.create_engine("postgresql+psycopg://", creator=create, poolclass=sa.NullPool, use_native_hstore=False)
    try:
        connection = engine.connect()
        opened = Opened(connection=connection, place=server)
        with errors_of(opened):
            _refuse_strangers(server, driver_of(connection))
    except sa.exc.DBAPIError as error:
        raise _known(server, error.orig) or error from None
    except psycopg.Error as error:
        raise _known(server, error) or error from None
    return opened


def _keep_to_schema(driver: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Look into the schema of the ledger alone, so that no table of another one answers in its place."""
    (name,) = driver.execute("SELECT quote_ident(current_schema())").fetchone() or (None,)
    if name:
        driver.execute(f"SET search_path = {name}")


def _known(server: Server, error: BaseException | None) -> GpuledgerError | None:
    return error_for(server, error) if isinstance(error, psycopg.Error) else None


def _refuse_strangers(server: Server, driver: psycopg.Connection[tuple[Any, ...]]) -> None:
    if driver.info.server_version < _OLDEST:
        raise Unavailable(
            "postgres-too-old",
            f"{server} is PostgreSQL {driver.info.server_version // 10000}; the ledger needs 13 or newer",
            hint="keep the ledger on a newer server",
        )
    if driver.info.parameter_status("server_encoding") != "UTF8":
        raise Misconfigured(
            "not-utf8",
            f"{server} does not keep its texts as UTF-8, so some could not be stored",
            hint="CREATE DATABASE gpuledger ENCODING 'UTF8' TEMPLATE template0",
        )


def stored_version(connection: sa.Connection) -> int:
    """The version of the tables; 0 where there are none."""
    cursor = bare_cursor(connection)
    table = VERSION_TABLES["postgresql"]
    cursor.execute("SELECT to_regclass(?) IS NULL", (table,))
    ((is_absent,),) = cursor.fetchall()
    if is_absent:
        return 0
    cursor.execute(f"SELECT max(version_num) FROM {table}")  # noqa: S608 a constant
    ((version,),) = cursor.fetchall()
    return int(version or 0)


def _judge(server: Server, version: int) -> None:
    if version < SCHEMA_VERSION:
        older = f"tables of version {version}, this program needs {SCHEMA_VERSION}"
        said = older if version else "no tables of a ledger"
        raise Unavailable("ledger-outdated", f"{server} has {said}", hint=MIGRATE_HINT)
    refuse_newer(server, version)


def refuse_newer(server: Server, version: int) -> None:
    """Raise where the tables are those of a later program."""
    if version > SCHEMA_VERSION:
        raise Unavailable(
            "ledger-newer",
            f"{server} was made by a newer gpuledger (tables of version {version}, "
            f"this program knows {SCHEMA_VERSION}); it was left as it is",
            hint="pip install --upgrade gpuledger",
        )


def _ask_permission(opened: Opened, mode: str) -> None:
    """Ask for the right to write now: else the server would say so only at the first append."""
    wanted = "INSERT" if mode == "append" else "SELECT"
    cursor = bare_cursor(opened.connection)
    cursor.execute("SELECT has_table_privilege('link', ?)", (wanted,))
    ((may,),) = cursor.fetchall()
    if not may:
        raise Unavailable(
            "ledger-permission",
            f"{opened.place} may not be {'written' if mode == 'append' else 'read'} by this role",
            hint="as the owner of the tables: gpuledger migrate --application ROLE",
        )


def prepare(opened: Opened) -> None:
    """Nothing: the owner of the tables brings them up to date, by ``gpuledger migrate``."""
    del opened


def _server(place: Place) -> Server:
    assert isinstance(place, Server), "the other engine's place"
    return place


def driver_of(connection: sa.Connection) -> psycopg.Connection[tuple[Any, ...]]:
    """The driver's own connection; a new one where the last was cut, but never in the middle of a transaction."""
    if (held := _HELD.get(connection)) is not None:
        return held
    return cast("psycopg.Connection[tuple[Any, ...]]", connection.connection.driver_connection)


def bare_cursor(connection: sa.Connection) -> DBAPICursor:
    """A cursor of psycopg that reads SQLite's marks."""
    return cast("DBAPICursor", Cursor(driver_of(connection)))


@contextmanager
def errors_of(opened: Opened) -> Iterator[None]:
    """Errors as people meet them. A connection that was cut is let go: the next call opens another."""
    try:
        yield
    except (sa.exc.DBAPIError, psycopg.Error) as error:
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
        _let_go_if_cut(opened.connection)
        if getattr(cause, "sqlstate", "") == "22003":  # as the other engine says it
            raise OverflowError(str(cause)) from error
        known = _known(_server(opened.place), cause)
        if known is None:
            raise
        raise known from error
    except sa.exc.PendingRollbackError as error:
        _let_go_if_cut(opened.connection)
        raise unreachable(_server(opened.place), "the connection was cut") from error


def _let_go_if_cut(connection: sa.Connection) -> None:
    if connection.closed or connection in _HELD:
        return
    if not connection.invalidated and driver_of(connection).closed:
        connection.invalidate()
    if connection.invalidated:
        connection.rollback()


def _key(name: str) -> int:
    """The advisory lock of a name: the first 8 bytes of its SHA-256."""
    return int.from_bytes(hashlib.sha256(f"gpuledger {name}".encode()).digest()[:8], "big", signed=True)


@contextmanager
def transaction(
    connection: sa.Connection, *, write: bool, alone: Sequence[str] = (), beside: Sequence[str] = ()
) -> Iterator[None]:
    """One transaction: with ``write`` one that sees what others have committed by each statement, else a snapshot.

    Locks are taken in one order, first those that are shared, then by their numbers: nobody waits for somebody who
    waits for him.
    """
    begin: list[tuple[str, tuple[int, ...]]] = [(_WRITES if write else _READS, ())]
    begin += [(f"{_LOCK}_shared($1::bigint)", (key,)) for key in sorted({_key(name) for name in beside})]
    begin += [(f"{_LOCK}($1::bigint)", (key,)) for key in sorted({_key(name) for name in alone})]
    driver = _begun(connection, begin)
    _HELD[connection] = driver
    try:
        yield
        ended = pipeline_of(driver).ask(driver, "COMMIT")  # with what still waits to go
        assert ended.said == b"COMMIT", "a statement of the transaction had failed, and nobody heard"
    except BaseException:
        _end(driver)
        raise
    finally:
        del _HELD[connection]
        _let_go_if_cut(connection)  # an error that was told inside could not: else closing the ledger fails too


def _begun(
    connection: sa.Connection, begin: Sequence[tuple[str, tuple[int, ...]]]
) -> psycopg.Connection[tuple[Any, ...]]:
    """The driver's connection in a transaction; a new one where the last was cut while nothing was asked of it.

    Not where an archive lay under it: the next would answer as if what left had never been there.
    """
    driver = driver_of(connection)
    try:
        _say(driver, begin)
    except psycopg.OperationalError:
        if not driver.closed or postgres_archive.HOLDS in connection.info:
            _end(driver)
            raise
        _let_go_if_cut(connection)
        driver = driver_of(connection)
        _say(driver, begin)
    return driver


def _say(driver: psycopg.Connection[tuple[Any, ...]], begin: Sequence[tuple[str, tuple[int, ...]]]) -> None:
    pipeline = pipeline_of(driver)
    with pipeline.together(driver):  # one round trip
        for text, bound in begin:
            pipeline.ask(driver, text, bound)


def _end(driver: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Roll back what has begun."""
    pipeline_of(driver).forget()
    if not driver.closed and driver.info.transaction_status is not TransactionStatus.IDLE:
        with suppress(psycopg.Error):
            driver.execute("ROLLBACK")


def lock(cursor: DBAPICursor, name: str) -> None:
    """Be alone under a name until the transaction ends."""
    cursor.execute(f"{_LOCK}(CAST(? AS bigint))", (_key(name),))


def is_race(error: BaseException) -> bool:
    """Whether a transaction failed only because another went through meanwhile."""
    cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
    return isinstance(cause, psycopg.Error) and cause.sqlstate in RACES


@contextmanager
def part(connection: sa.Connection) -> Iterator[None]:
    """A savepoint: else one statement that fails would end the whole snapshot."""
    driver = driver_of(connection)
    pipeline_of(driver).flush(driver)
    driver.execute("SAVEPOINT part")
    try:
        yield
        pipeline_of(driver).flush(driver)
    except BaseException:
        if not driver.closed:
            driver.execute("ROLLBACK TO SAVEPOINT part")
        raise
    driver.execute("RELEASE SAVEPOINT part")


def stream(
    connection: sa.Connection, statement: sa.Select[Any] | str, bound: Mapping[str, Any], size: int
) -> Iterator[list[tuple[Any, ...]]]:
    """Rows from a cursor on the server; outside of a transaction it holds what it found, on the server's side."""
    if isinstance(statement, str):
        yield from Cursor(driver_of(connection)).streamed(statement, bound or None, size)
        return
    driver = driver_of(connection)
    compiled = statement.compile(dialect=connection.dialect, compile_kwargs={"render_postcompile": True})
    with closing(psycopg.ServerCursor(driver, cursor_name(), withhold=is_idle(driver))) as cursor:
        cursor.execute(str(compiled), dict(compiled.params) | dict(bound))
        yield from fetched(cursor, size)


def make_relations(connection: sa.Connection, relations: Mapping[str, str]) -> None:
    """Temporary tables, before the snapshot: inside of one that only reads nothing can be created."""
    made: set[str] = connection.info.setdefault("relations", set())
    driver = driver_of(connection)
    for name in relations.keys() - made:
        columns = relations[name].replace("INTEGER PRIMARY KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY")
        driver.execute(in_postgres(f"CREATE TEMP TABLE {name} ({columns})"))  # names of this program
        made.add(name)
        OF_ONE_CONNECTION.add(name)
    # Nobody else vacuums temporary tables: the room of what was deleted from them is given back here.
    driver.execute(f"VACUUM {', '.join(relations)}")


def weigh(cursor: DBAPICursor, relations: Sequence[str]) -> None:
    """Count what stands in temporary tables: nothing else tells the planner."""
    cursor.execute(f"ANALYZE {', '.join(relations)}")


def others_wrote(connection: sa.Connection) -> int:
    """Another number each time: what costs nothing to know on SQLite is asked for anew here."""
    del connection
    return next(_NUMBERS)


def own_changes(connection: sa.Connection) -> int:
    """Nothing: see :func:`others_wrote`."""
    del connection
    return 0


def rewrite_kept(connection: sa.Connection, table: sa.Table) -> None:
    """Nothing: what was deleted stays in the table's pages until they are vacuumed."""
    del connection, table


def erase_traces(opened: Opened) -> str:
    """Vacuum the table of texts where this role may, and say what no statement can reach."""
    driver = driver_of(opened.connection)
    cursor = driver.execute(
        "SELECT pg_has_role(relowner, 'MEMBER') FROM pg_class WHERE oid = 'identity_text'::regclass"
    )
    (is_owner,) = cursor.fetchone() or (False,)
    if is_owner:
        driver.execute("VACUUM identity_text")
    pages = "" if is_owner else "the table's pages until they are vacuumed (as the owner: VACUUM identity_text), "
    return (
        f"deleted; bytes may stay in {pages}the server's write-ahead log, its replicas and backups until those are gone"
    )
