"""Cursors of psycopg that read SQL as it is written for both engines, whole numbers for sums, and how rows travel.

In: statements with ``?`` and ``:name``. Out: the same with PostgreSQL's own ``$1``, and rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import lru_cache
from itertools import count
from typing import Any, cast

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.ledger.postgres_pipeline import Asked, Driver, pipeline_of

_NUMBERS = count(1)
_NEVER_ASKED = Asked("", ())
_FEW = 50  # rows from which COPY is faster than executemany (measured: a third of the time for 1,000)


class Cursor:
    """Reads the marks that SQLite reads: ``?`` for a sequence, ``:name`` for a mapping; asked as a driver's cursor is.

    Args:
        driver: a connection in autocommit.
    """

    def __init__(self, driver: Driver) -> None:
        self.connection = driver
        self._pipeline = pipeline_of(driver)
        self._asked = _NEVER_ASKED
        self._place = 0

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def execute(self, query: str, bound: Sequence[Any] | Mapping[str, Any] = ()) -> Cursor:
        """Ask a statement; within :func:`together` it goes when somebody looks at an answer."""
        self.close()
        text, names = translated(query)
        values = bound if names is None else [cast("Mapping[str, Any]", bound)[name] for name in names]
        self._place = 0
        self._asked = self._pipeline.ask(self.connection, text, cast("Sequence[Any]", values))
        return self

    def executemany(self, query: str, many: Iterable[Sequence[Any]]) -> None:
        """A statement many times; few of them travel as one. There is nothing to look at afterwards."""
        self.close()
        text, _ = translated(query)
        rows = list(many)
        if len(rows) >= _FEW:
            self._pipeline.flush(self.connection)
            psycopg.RawCursor(self.connection).executemany(text, rows)
            return
        with self._pipeline.together(self.connection):
            for row in rows:
                self._pipeline.ask(self.connection, text, row)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        rows = self._rows()
        place, self._place = self._place, len(rows)
        return rows[place:] if place else rows

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows, so many at most."""
        place = self._place
        found = self._rows()[place : place + size]
        self._place = place + len(found)
        return found

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        return next(iter(self.fetchmany(1)), None)

    @property
    def rowcount(self) -> int:
        """How many rows the statement gave or changed."""
        self._rows()
        return self._asked.count

    def copy(self, query: str) -> AbstractContextManager[psycopg.Copy]:
        """A stream of rows, out or in."""
        self.close()
        self._pipeline.flush(self.connection)
        return psycopg.Cursor(self.connection).copy(query.encode())

    def streamed(self, query: str, bound: Any, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a statement as they are asked for, from a cursor on the server."""
        self.close()
        self._pipeline.flush(self.connection)
        with closing(StreamingCursor(self.connection, cursor_name(), withhold=is_idle(self.connection))) as cursor:
            cursor.execute(query, bound)
            yield from fetched(cursor, size)

    def close(self) -> None:
        """Let go of what was read."""
        self._asked = _NEVER_ASKED

    def _rows(self) -> list[tuple[Any, ...]]:
        if not self._asked.is_answered:
            self._pipeline.flush(self.connection)
        assert self._asked.is_answered, "it was never asked, or what it travelled with failed"
        return self._asked.rows


def fetched(cursor: psycopg.ServerCursor[tuple[Any, ...]], size: int) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a cursor on the server; fewer than were asked for are the last."""
    is_full = True
    while is_full and (rows := cursor.fetchmany(size)):
        is_full = len(rows) == size
        yield rows


def cursor_name() -> str:
    """A name that no other cursor of this process has."""
    return f"gpuledger_{next(_NUMBERS)}"


def is_idle(driver: psycopg.Connection[Any]) -> bool:
    """Whether a connection is outside of any transaction: a cursor then has to hold what it found."""
    return driver.info.transaction_status is TransactionStatus.IDLE


class StreamingCursor(psycopg.RawServerCursor[tuple[Any, ...]]):
    """The same on the server's side: rows are fetched as they are asked for."""

    def execute(self, query: Any, params: Any = None, **more: Any) -> StreamingCursor:
        """As the driver's, with these marks."""
        text, names = translated(str(query))
        return super().execute(text, params if names is None else [params[name] for name in names], **more)


_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|::|\?|:([a-z_][a-z0-9_]*)", re.IGNORECASE)


@lru_cache(maxsize=1000)
def translated(query: str) -> tuple[str, tuple[str, ...] | None]:
    """A statement with PostgreSQL's own ``$1`` for each mark, and the names in their order; None without names."""
    names: dict[str, int] = {}
    places = count(1)

    def mark(found: re.Match[str]) -> str:
        if found[0] == "?":
            return f"${next(places)}"
        if found[1]:
            return f"${names.setdefault(found[1], len(names) + 1)}"
        return found[0]

    text = _TOKEN.sub(mark, query)
    return text, tuple(names) or None


class WholeLoader(psycopg.adapt.Loader):
    """A sum of bigints comes as numeric; the ledger holds whole numbers only."""

    def load(self, digits: Any) -> int:
        """The number; anything with a fraction is a bug."""
        return int(bytes(digits))


def insert(cursor: DBAPICursor, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows: many of them as a stream, by COPY."""
    names = ", ".join(columns)
    if len(rows) < _FEW:
        marks = ", ".join("?" * len(columns))
        cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)  # noqa: S608 names are the schema's own, values are bound
        return
    with cast("Cursor", cursor).copy(f"COPY {table} ({names}) FROM STDIN") as stream_in:  # as above
        for row in rows:
            stream_in.write_row(row)


def together(cursor: DBAPICursor, *, is_last: bool = False) -> AbstractContextManager[None]:
    """Inside, statements travel together; so many rows that they go by COPY go by themselves."""
    mine = cast("Cursor", cursor)
    return pipeline_of(mine.connection).together(mine.connection, is_last=is_last)
