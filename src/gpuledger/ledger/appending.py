"""Appending: rows in, numbered rows out, one transaction and one link of the writer's chain.

A row whose natural key is already there is known, and adds nothing; known with other figures it is a
conflict: the first stays and the difference is reported.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.ledger import archived
from gpuledger.ledger.chain import GENESIS, Cell, link_hash
from gpuledger.ledger.codec import CODECS, Codec
from gpuledger.ledger.engine import MARK, Engine, bare_cursor, engine_of
from gpuledger.ledger.texts import TextBook
from gpuledger.model.problem import Problem
from gpuledger.model.row_kinds import ROWS
from gpuledger.model.rows import Row

_LAST_LINK = f"SELECT last_number, hash FROM link WHERE writer = {MARK} ORDER BY last_number DESC LIMIT 1"  # noqa: S608 a constant
_LINK = "INSERT INTO link (writer, first_number, last_number, committed_at_us, previous_hash, hash) VALUES "
_LINK += f"({', '.join([MARK] * 6)})"
_LAST_NUMBERS = """WITH RECURSIVE name (writer) AS (
    SELECT MIN(writer) FROM link
    UNION ALL
    SELECT (SELECT MIN(l.writer) FROM link AS l WHERE l.writer > name.writer) FROM name WHERE name.writer IS NOT NULL
)
SELECT writer, (SELECT MAX(last_number) FROM link AS l WHERE l.writer = name.writer) FROM name
WHERE writer IS NOT NULL"""  # from name to next name by the index: a busy agent's chain has a link a second
JUDGING = "judging"
"""The lock of those who judge by what stands in the ledger: alone without scopes, beside each other with them."""

_TRIES = 20
"""How often an append begins anew that another writer's rows have overtaken."""

_LOOKED_UP_AT_ONCE = 200  # more costs SQLite a longer statement and saves nothing (measured 100 to 4,000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What one append did.

    Args:
        added: the rows that are new, with writer and number, in the order of the chain.
        known: number of rows that were there already, or stood twice in the batch.
        conflicts: rows of a known key whose figures differ from the first, which stayed; rows of archived time.
        numbers: of all that is new, what stood ready included; empty where nothing is.
    """

    added: tuple[Row, ...] = ()
    known: int = 0
    conflicts: tuple[Problem, ...] = ()
    numbers: range = range(0)


class Ready(Protocol):
    """New rows of one kind that stand ready in a relation of the connection: too many for a value each."""

    kind: ClassVar[type[Row]]

    @property
    def count(self) -> int:
        """How many."""

    def write(self, cursor: DBAPICursor, writer: str, first: int) -> None:
        """Insert them, numbered from ``first``."""

    def encoded(self, cursor: DBAPICursor, writer: str, first: int) -> Iterator[str]:
        """Them as a link's JSON has them, joined by commas, some at a time."""


_Batches = list[tuple[Codec, list[Row], list[tuple[Cell, ...]]]]
"""Rows by kind in the order of the chain, with their columns."""


@dataclass(slots=True)
class _Sorted:
    """The new rows of one kind, and what came of the others."""

    codec: Codec
    rows: list[Row]
    cells: list[tuple[Cell, ...]]
    known: int = 0
    are_ours: bool = False
    """Whether nobody else has seen these rows yet."""
    conflicts: list[tuple[str | Row, list[str]]] = field(default_factory=list)
    """The first, or its reference, and the differences."""


def append_rows(
    connection: sa.Connection, texts: TextBook, rows: Sequence[Row], *, writer: str, at_us: int
) -> Appended:
    """Append what is new of ``rows`` as one transaction; with nothing new, nothing is written.

    Raises:
        TypeError: a value that is neither integer, text nor an allowed absence (a bug of the source).
        sqlite3.Error: for the caller to map; nothing of the batch is then in the ledger.
    """
    if not writer:
        raise ValueError("a writer needs a name, HOST.ROLE")
    batches = _by_kind(rows)
    if not batches:
        return Appended()

    def write(alone: Sequence[str]) -> Appended:
        with engine_of(connection).transaction(connection, write=True, alone=alone):
            appended, written_texts = _append_with_texts(connection, texts, batches, writer, at_us)
        texts.written(written_texts)
        return appended

    return again_after_a_race(connection, write)


T = TypeVar("T")


def again_after_a_race(connection: sa.Connection, write: Callable[[Sequence[str]], T]) -> T:
    """Run a transaction; and again where another writer added one of its rows at the same moment: then it is known.

    Args:
        connection: of the ledger.
        write: the transaction, given a lock to hold besides its own: those that were overtaken go one after the other.
    """
    engine, tries = engine_of(connection), _TRIES
    alone: tuple[str, ...] = ()
    while True:
        try:
            return write(alone)
        except Exception as error:
            tries -= 1
            if not tries or not engine.is_race(error):
                raise
            alone = ("overtaken",)


def append_made(
    connection: sa.Connection,
    texts: TextBook,
    make: Callable[[], Sequence[Row] | None],
    *,
    writer: str,
    at_us: int,
    are_new: bool = False,
    ready: Ready | None = None,
    scopes: Sequence[str] = (),
    alone: Sequence[str] = (JUDGING,),
) -> Appended | None:
    """As :func:`append_rows`, with rows that ``make`` gives once nobody else can write, or judge about the same.

    What it reads stays so until its rows are written. It may give None, which comes back, or raise: then nothing is
    written. With ``are_new`` it has looked already, and none of its rows is known: one that is fails by its guard. So
    does a row of ``ready`` that is known.
    """
    if not writer:
        raise ValueError("a writer needs a name, HOST.ROLE")
    beside = [JUDGING] if scopes else []
    with engine_of(connection).transaction(connection, write=True, alone=scopes or alone, beside=beside):
        rows = make()
        if rows is None:
            return None
        appended, written_texts = _append_with_texts(connection, texts, _by_kind(rows), writer, at_us, are_new, ready)
    texts.written(written_texts)
    return appended


def _append_with_texts(
    connection: sa.Connection,
    texts: TextBook,
    batches: _Batches,
    writer: str,
    at_us: int,
    are_new: bool = False,
    ready: Ready | None = None,
) -> tuple[Appended, list[str]]:
    engine, cursor = engine_of(connection), bare_cursor(connection)
    rows = sum(len(batch) for _, batch, _ in batches)
    with engine.together(cursor, rows) if ready is None else nullcontext():
        appended = _append(engine, cursor, batches, writer, at_us, are_new, ready)
        return appended, texts.write(appended.added)


def append_in_transaction(connection: sa.Connection, rows: Sequence[Row], *, writer: str, at_us: int) -> Sequence[Row]:
    """Append rows that name no text, in the transaction that the caller holds."""
    return _append(engine_of(connection), bare_cursor(connection), _by_kind(rows), writer, at_us).added


def _append(
    engine: Engine,
    cursor: DBAPICursor,
    batches: _Batches,
    writer: str,
    at_us: int,
    are_new: bool = False,
    ready: Ready | None = None,
) -> Appended:
    sort_out = _take_all if are_new else _sort_out
    sorted_kinds = [sort_out(cursor, codec, batch, cells) for codec, batch, cells in batches]
    too_old = [problem for each in sorted_kinds for problem in _leave_out_archived(cursor, each)]
    new = [each for each in sorted_kinds if each.rows]
    ready = ready if ready is not None and ready.count else None
    wrote = bool(new) or ready is not None
    added, numbers = _write(engine, cursor, new, ready, writer, at_us) if wrote else ([], range(0))
    return Appended(
        numbers=numbers,
        added=tuple(row for rows_of_kind in added for row in rows_of_kind),
        known=sum(each.known for each in sorted_kinds),
        conflicts=(*_problems(sorted_kinds, added), *too_old),
    )


def _leave_out_archived(cursor: DBAPICursor, fresh: _Sorted) -> list[Problem]:
    kept, problems = archived.told_in_time(cursor, fresh.codec, fresh.cells)
    if problems:
        fresh.rows, fresh.cells = [fresh.rows[place] for place in kept], [fresh.cells[place] for place in kept]
    return problems


def last_link(connection: sa.Connection, writer: str) -> tuple[int, str]:
    """The last number and hash of a writer's chain; (0, GENESIS) before its first link."""
    return _last_link(bare_cursor(connection), writer)


def last_numbers(connection: sa.Connection) -> dict[str, int]:
    """The last number of every writer's chain, in one statement: all as of one moment."""
    cursor = bare_cursor(connection)
    cursor.execute(_LAST_NUMBERS)
    return {str(writer): int(number) for writer, number in cursor.fetchall()}


def _last_link(cursor: DBAPICursor, writer: str) -> tuple[int, str]:
    cursor.execute(_LAST_LINK, (writer,))
    row = cursor.fetchone()
    return (int(row[0]), str(row[1])) if row else (0, GENESIS)


def _by_kind(rows: Sequence[Row]) -> _Batches:
    groups: dict[type[Row], list[Row]] = {}
    for row in rows:
        groups.setdefault(type(row), []).append(row)
    if unknown := groups.keys() - set(ROWS):
        raise TypeError(f"not rows of the ledger: {sorted(each.__name__ for each in unknown)}")
    return [(CODECS[kind], groups[kind], CODECS[kind].encode(groups[kind])) for kind in ROWS if kind in groups]


def _getter(positions: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Picks these positions, always as a tuple."""
    if len(positions) == 1:
        only = positions[0]
        return lambda cells: (cells[only],)
    return operator.itemgetter(*positions) if positions else lambda _: ()


def _take_all(cursor: DBAPICursor, codec: Codec, rows: list[Row], cells: list[tuple[Cell, ...]]) -> _Sorted:
    """All rows of one kind as new ones, made for this very call."""
    del cursor
    return _Sorted(codec, rows, cells, are_ours=True)


def _sort_out(cursor: DBAPICursor, codec: Codec, rows: list[Row], cells: list[tuple[Cell, ...]]) -> _Sorted:
    """Which rows of one kind are new, known, or in conflict."""
    kind = codec.kind
    if not kind.key:
        return _Sorted(codec, rows, cells)
    columns = codec.columns[2:]
    key_of = _getter([columns.index(name) for name in kind.key])
    figures_of = _getter([columns.index(name) for name in kind.figures])
    keys = [key_of(each) for each in cells]
    distinct = list(dict.fromkeys(keys))
    stored = _look_up(cursor, codec, distinct)
    if not stored and len(distinct) == len(keys):
        return _Sorted(codec, rows, cells)
    result = _Sorted(codec, [], [])
    first: dict[tuple[Any, ...], tuple[Row, tuple[Any, ...]]] = {}
    for row, cell, key in zip(rows, cells, keys, strict=True):
        known: tuple[str | Row, tuple[Any, ...]] | None = stored.get(key) or first.get(key)
        figures = figures_of(cell)
        if known is None:
            first[key] = (row, figures)
            result.rows.append(row)
            result.cells.append(cell)
            continue
        result.known += 1
        if known[1] != figures:
            differing = [
                f"{name} {_shown(old)}, now {_shown(now)}"
                for name, old, now in zip(kind.figures, known[1], figures, strict=True)
                if old != now
            ]
            result.conflicts.append((known[0], differing))
    return result


def _shown(cell: Cell) -> str:
    text = "not recorded" if cell is None else str(cell)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _look_up(
    cursor: DBAPICursor, codec: Codec, keys: list[tuple[Any, ...]]
) -> dict[tuple[Any, ...], tuple[str, tuple[Any, ...]]]:
    """Which keys are stored: key to (reference, figures).

    A join from a list of values: SQLite takes the unique index for it, but scans the table for
    ``(a, b) IN (VALUES ...)`` (3.40.1, measured).
    """
    kind = codec.kind
    table, width = kind.table.name, len(kind.key)
    names = [f"k{position}" for position in range(width)]
    matches = " AND ".join(f"t.{column} = wanted.{name}" for column, name in zip(kind.key, names, strict=True))
    columns = ", ".join(f"t.{column}" for column in ("writer", "number", *kind.key, *kind.figures))
    one = f"({', '.join([MARK] * width)})"
    select = f"SELECT {columns} FROM wanted CROSS JOIN {table} AS t WHERE {matches}"  # noqa: S608 the schema's own names
    found: dict[tuple[Any, ...], tuple[str, tuple[Any, ...]]] = {}
    for start in range(0, len(keys), _LOOKED_UP_AT_ONCE):
        part = keys[start : start + _LOOKED_UP_AT_ONCE]
        values = ", ".join([one] * len(part))
        statement = f"WITH wanted ({', '.join(names)}) AS (VALUES {values}) {select}"
        cursor.execute(statement, tuple(cell for key in part for cell in key))
        for writer, number, *rest in cursor.fetchall():
            found[tuple(rest[:width])] = (f"{kind.row.kind}:{writer}/{number}", tuple(rest[width:]))
    return found


def _write(
    engine: Engine, cursor: DBAPICursor, new: list[_Sorted], ready: Ready | None, writer: str, at_us: int
) -> tuple[list[list[Row]], range]:
    engine.lock(cursor, f"writer {writer}")  # as late as can be: others of the chain wait from here to the end
    last, previous_hash = _last_link(cursor, writer)
    first_number = number = last + 1
    added: list[list[Row]] = []
    chained: list[tuple[str, list[tuple[Cell, ...]] | Iterator[str]]] = []
    for each in _in_order(new, ready):
        if not isinstance(each, _Sorted):
            each.write(cursor, writer, number)
            chained.append((each.kind.kind, each.encoded(cursor, writer, number)))
            number += each.count
            continue
        codec = each.codec
        numbered = [(writer, at, *cells) for at, cells in enumerate(each.cells, start=number)]
        engine.insert(cursor, codec.kind.table.name, codec.columns, numbered)
        number_rows = codec.number_in_place if each.are_ours else codec.number
        added.append(number_rows(each.rows, writer, number))
        chained.append((codec.kind.row.kind, numbered))
        number += len(numbered)
    digest = link_hash(
        previous_hash,
        chained,
        writer=writer,
        first_number=first_number,
        last_number=number - 1,
        committed_at_us=at_us,
    )
    cursor.execute(_LINK, (writer, first_number, number - 1, at_us, previous_hash, digest))
    return added, range(first_number, number)


@cache
def _inserting(codec: Codec) -> str:
    marks = ", ".join([MARK] * len(codec.columns))
    return f"INSERT INTO {codec.kind.table.name} ({', '.join(codec.columns)}) VALUES ({marks})"  # noqa: S608 names are the schema's own, values are bound


def _in_order(new: list[_Sorted], ready: Ready | None) -> list[_Sorted | Ready]:
    """What is to be written, in the order of chaining: what stands ready comes after the others of its kind."""
    if ready is None:
        return [*new]
    place = ROWS.index(ready.kind)
    before = [each for each in new if ROWS.index(each.codec.kind.row) <= place]
    return [*before, ready, *new[len(before) :]]


def _problems(sorted_kinds: list[_Sorted], added: list[list[Row]]) -> tuple[Problem, ...]:
    if not any(each.conflicts for each in sorted_kinds):
        return ()
    refs = {
        id(row): numbered.ref
        for each, numbered_rows in zip([each for each in sorted_kinds if each.rows], added, strict=True)
        for row, numbered in zip(each.rows, numbered_rows, strict=True)
    }
    problems = []
    for each in sorted_kinds:
        for first, differing in each.conflicts:
            where = first if isinstance(first, str) else refs.get(id(first), "archived time")
            problems.append(
                Problem(
                    code="conflict",
                    message=f"the same {each.codec.kind.row.kind} row was read with other figures "
                    f"({'; '.join(differing)}); the first stays",
                    where=where,
                )
            )
    return tuple(problems)
