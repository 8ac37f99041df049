"""Cursors of psycopg that read SQL as it is written for both engines, whole numbers for sums, and how rows travel.

In: statements with ``?`` and ``:name``. Out: the same with PostgreSQL's own ``$1``, and rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from itertools import count
from typing import Any, cast

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus
from sqlalchemy.engine.interfaces import DBAPICursor

_NUMBERS = count(1)
_FEW = 50  # rows from which COPY is faster than executemany (measured: a third of the time for 1,000)


class Cursor(psycopg.RawCursor[tuple[Any, ...]]):
    """Reads the marks that SQLite reads: ``?`` for a sequence, ``:name`` for a mapping."""

    def execute(self, query: Any, params: Any = None, **more: Any) -> Cursor:
        """As the driver's, with these marks."""
        text, names = translated(str(query))
        return super().execute(text, params if names is None else [params[name] for name in names], **more)

    def executemany(self, query: Any, params_seq: Any, *, returning: bool = False) -> None:
        """As the driver's, with these marks."""
        super().executemany(translated(str(query))[0], params_seq, returning=returning)

    def streamed(self, query: str, params: Any, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a statement as they are asked for, from a cursor on the server."""
        with closing(StreamingCursor(self.connection, cursor_name(), withhold=is_idle(self.connection))) as cursor:
            cursor.execute(query, params)
            yield from fetched(cursor, size)


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
        statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 names are the schema's own, values are bound
        if len(rows) == 1:
            cursor.execute(statement, rows[0])
        else:
            cursor.executemany(statement, rows)
        return
    with cast("Cursor", cursor).copy(f"COPY {table} ({names}) FROM STDIN") as stream_in:  # as above
        for row in rows:
            stream_in.write_row(row)


@contextmanager
def together(cursor: DBAPICursor, rows: int) -> Iterator[None]:
    """A pipeline; not where there are so many rows that they go by COPY, which none allows."""
    if rows >= _FEW or not psycopg.Pipeline.is_supported():
        yield
        return
    driver = cast("Cursor", cursor).connection
    try:
        with driver.pipeline():
            yield
    finally:
        if driver.pgconn.pipeline_status != PipelineStatus.OFF:
            driver.close()  # cut in the middle it would stay in the pipeline for good, and look open
