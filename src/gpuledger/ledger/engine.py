"""The seam between the ledger and what keeps it: the few things that SQLite and PostgreSQL do each in its own way.

Everything else is SQL that both read, written once, with ``?`` and ``:name`` for what is bound. In: a connection, or a
place. Out: the module that speaks for its engine, :mod:`.sqlite` or :mod:`.postgres`, of the shape :class:`Engine`.
The second is imported when a ledger on PostgreSQL is opened, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.errors import Unavailable
from gpuledger.ledger.places import Place, Server

MARK = "?"
"""The placeholder of a driver-level parameter."""

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An open store.

    Args:
        connection: the connection, outside of any transaction.
        place: where it lies.
        outdated: its tables are still to be made or brought up to date by whoever opened it.
        stamp: what the file looked like before a reading that takes no lock; None where locks are taken.
    """

    connection: sa.Connection
    place: Place
    outdated: bool = False
    stamp: tuple[int, int, int] | None = None


class Engine(Protocol):
    """What differs between two stores. Implemented by modules.

    Attributes:
        POSITION: the function that gives the 1-based position of a text in another.
        JOINED: the aggregate that joins values with commas, to be formatted with their expression.
        OPEN_RECORDS: records of contexts that were open, through the small index of no others.
        IS_HINTED: whether scans say which index to take: a planner without statistics does not know.
    """

    POSITION: str
    JOINED: str
    OPEN_RECORDS: str
    IS_HINTED: bool

    @property
    def open_connection(self) -> Callable[..., Opened]:
        """``(place, *, mode, busy_timeout_ms)``: opens to ``read`` or ``append``; says what cannot be used, and why."""
        ...

    def prepare(self, opened: Opened) -> None:
        """Make the store ready for appending: bring it up to date where it does that by itself."""
        ...

    def errors_of(self, opened: Opened) -> AbstractContextManager[None]:
        """Turns what the engine raises into the errors people meet; anything else is a bug."""
        ...

    def bare_cursor(self, connection: sa.Connection) -> DBAPICursor:
        """A cursor of the driver that reads ``?`` and ``:name``."""
        ...

    def transaction(
        self, connection: sa.Connection, *, write: bool, alone: Sequence[str] = (), beside: Sequence[str] = ()
    ) -> AbstractContextManager[None]:
        """One transaction: without ``write`` a snapshot for several reads.

        With it, whoever names one of ``alone``, here or in ``beside``, waits until it has ended; ``beside`` waits for
        ``alone`` only.
        """
        ...

    def lock(self, cursor: DBAPICursor, name: str) -> None:
        """Be alone under a name until the transaction ends."""
        ...

    def is_race(self, error: BaseException) -> bool:
        """Whether a transaction failed only because another went through meanwhile: it can be tried again."""
        ...

    def part(self, connection: sa.Connection) -> AbstractContextManager[None]:
        """A part of a transaction that may fail without ending the whole."""
        ...

    def stream(
        self, connection: sa.Connection, statement: sa.Select[Any] | str, bound: Mapping[str, Any], size: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a statement, so many at a time, never all of them in memory."""
        ...

    def insert(self, cursor: DBAPICursor, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, few or many."""
        ...

    def together(self, cursor: DBAPICursor, *, is_last: bool = False) -> AbstractContextManager[object]:
        """Inside, statements travel as one, as far as nobody waits for an answer.

        With ``is_last`` nothing comes after them in their transaction: they go with its end.
        """
        ...

    def make_relations(self, connection: sa.Connection, relations: Mapping[str, str]) -> None:
        """Empty relations of this connection alone, name to columns; before a snapshot begins."""
        ...

    def weigh(self, cursor: DBAPICursor, relations: Sequence[str]) -> None:
        """Let the planner know how full relations of this connection are."""
        ...

    def others_wrote(self, connection: sa.Connection) -> int:
        """Another number whenever another connection has committed."""
        ...

    def own_changes(self, connection: sa.Connection) -> int:
        """Another number whenever this connection has written."""
        ...

    def refuse_to_drop(self, connection: sa.Connection) -> None:
        """Raise where this role may not take rows out: whoever owns the tables may."""
        ...

    def unguarded(self, connection: sa.Connection, tables: Sequence[str]) -> AbstractContextManager[None]:
        """Inside a transaction that writes: these tables let rows go; at its end nobody can have seen them so."""
        ...

    def lay_under(self, connection: sa.Connection, tables: Mapping[str, sa.Table]) -> dict[str, str]:
        """Let every read of this connection see archived rows under those of the ledger; returns where to put them."""
        ...

    def index_laid(self, connection: sa.Connection, tables: Mapping[str, sa.Table]) -> None:
        """Index them once they are there."""
        ...

    def rewrite_kept(self, connection: sa.Connection, table: sa.Table) -> None:
        """In the transaction that deleted rows of a table: see to it that no copy of them stays in its pages."""
        ...

    def erase_traces(self, opened: Opened) -> str:
        """After that transaction: what was deleted is nowhere any more. Returns where it may still be, or nothing."""
        ...

    def damaged_pages(self, connection: sa.Connection) -> Iterator[str]:
        """What the store's own check of its pages and indexes finds."""
        ...

    def schema_findings(self, connection: sa.Connection) -> Iterator[tuple[str, str]]:
        """What of tables, keys, indexes and triggers is not as this program made it: (name, sentence)."""
        ...


_MODULES = {"sqlite": "gpuledger.ledger.sqlite", "postgresql": "gpuledger.ledger.postgres"}
_LOADED: dict[str, Engine] = {}


def _engine(name: str) -> Engine:
    if name not in _LOADED:
        _LOADED[name] = cast("Engine", import_module(_MODULES[name]))
    return _LOADED[name]


def engine_of(connection: sa.Connection) -> Engine:
    """The engine behind a connection."""
    return _LOADED.get(connection.dialect.name) or _engine(connection.dialect.name)


def engine_for(place: Place) -> Engine:
    """The engine of a place.

    Raises:
        Unavailable: ``missing-extra`` where its driver is not installed.
    """
    if not isinstance(place, Server):
        return _engine("sqlite")
    try:
        return _engine("postgresql")
    except ImportError as error:
        if "psycopg" not in f"{error.name} {error}" and "libpq" not in str(error):
            raise
        raise Unavailable(
            "missing-extra",
            "a ledger on PostgreSQL needs psycopg, which is not installed",
            hint="pip install 'gpuledger[postgres]'",
        ) from error


def bare_cursor(connection: sa.Connection) -> DBAPICursor:
    """The driver's own cursor: SQLAlchemy's results cost three times what SQLite does for a few rows."""
    return engine_of(connection).bare_cursor(connection)


def answers(cursor: DBAPICursor) -> Iterator[tuple[Any, ...]]:
    """What a cursor was asked for, read when somebody looks: what is asked until then travels with it."""
    yield from cast("list[tuple[Any, ...]]", cursor.fetchall())


def together(connection: sa.Connection) -> AbstractContextManager[object]:
    """Inside, statements travel as one, as far as nobody waits for an answer."""
    return engine_of(connection).together(bare_cursor(connection))


def rows_of(
    cursor: DBAPICursor, statement: str, bound: Mapping[str, Any] | Sequence[Any] = (), size: int = 2000
) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a bare statement, so many at a time, never all of them in memory."""
    if (streamed := getattr(cursor, "streamed", None)) is not None:
        yield from streamed(statement, bound, size)
        return
    cursor.execute(statement, bound)
    while rows := cursor.fetchmany(size):
        yield cast("list[tuple[Any, ...]]", rows)


def others_wrote(connection: sa.Connection) -> int:
    """Another number whenever another connection has committed."""
    return engine_of(connection).others_wrote(connection)


def own_changes(connection: sa.Connection) -> int:
    """Another number whenever this connection has written."""
    return engine_of(connection).own_changes(connection)


if TYPE_CHECKING:
    from gpuledger.ledger import postgres, sqlite

    _SQLITE: Engine = sqlite
    _POSTGRES: Engine = postgres
