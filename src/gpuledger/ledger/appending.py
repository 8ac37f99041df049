"""Appending: rows in, numbered rows out, one transaction and one link of the writer's chain.

A row whose natural key is already there is known, and adds nothing; known with other figures it is a
conflict: the first stays and the difference is reported.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import ClassVar, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.ledger import archived
from gpuledger.ledger.chain import GENESIS, Cell, link_hash
from gpuledger.ledger.codec import CODECS, Codec
from gpuledger.ledger.engine import MARK, Engine, answers, bare_cursor, engine_of
from gpuledger.ledger.fresh_rows import Sorted, problems_of, sort_out, take_all
from gpuledger.ledger.texts import TextBook
from gpuledger.model.problem import Problem
from gpuledger.model.quickly import quickly_made
from gpuledger.model.row_kinds import ROWS
from gpuledger.model.rows import Row

_LAST_LINK = f"SELECT last_number, hash FROM link WHERE writer = {MARK} ORDER BY last_number DESC LIMIT 1"  # noqa: S608 a constant
_LINK = "INSERT INTO link (writer, first_number, last_number, committed_at_us, previous_hash, hash) VALUES "
_LINK += f"({', '.join([MARK] * 6)})"


def last_of_each(table: str, number: str) -> str:
    """A query: by writer the last number that a table holds of its chain, in a column of this name.

    From name to next name by the key: a busy agent's chain has a link a second.
    """
    return f"""WITH RECURSIVE name (writer) AS (
    SELECT MIN(writer) FROM {table}
    UNION ALL
    SELECT (SELECT MIN(r.writer) FROM {table} AS r WHERE r.writer > name.writer) FROM name WHERE name.writer IS NOT NULL
)
SELECT writer, (SELECT MAX({number}) FROM {table} AS r WHERE r.writer = name.writer) FROM name
WHERE writer IS NOT NULL"""  # noqa: S608 the schema's own names


_LAST_NUMBERS = last_of_each("link", "last_number")
JUDGING = "judging"
"""The lock of those who judge by what stands in the ledger: alone without scopes, beside each other with them."""

LEAVING = "leaving"
"""The lock of who lets archived rows leave, alone; whoever appends without judging is beside the others there."""

_TRIES = 20
"""How often an append begins anew that another writer's rows have overtaken."""


@quickly_made
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
        with engine_of(connection).transaction(connection, write=True, alone=alone, beside=(LEAVING,)):
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
    alone = scopes or alone
    with _Undisturbed(), engine_of(connection).transaction(connection, write=True, alone=alone, beside=beside):
        rows = make()
        if rows is None:
            return None
        appended, written_texts = _append_with_texts(connection, texts, _by_kind(rows), writer, at_us, are_new, ready)
    texts.written(written_texts)
    return appended


class _Undisturbed:
    """No collection of Python's garbage inside: others wait for this transaction, and in it hardly any is made.

    One through all that a long-lived process remembers takes as long as ten transactions.
    """

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._was_enabled:
            gc.enable()


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
    with engine.together(cursor, is_last=True) if ready is None else nullcontext():
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
    sort = take_all if are_new else sort_out
    sorted_kinds = [sort(cursor, codec, batch, cells) for codec, batch, cells in batches]
    too_old = [problem for each in sorted_kinds for problem in _leave_out_archived(cursor, each)]
    new = [each for each in sorted_kinds if each.rows]
    ready = ready if ready is not None and ready.count else None
    wrote = bool(new) or ready is not None
    added, numbers = _write(engine, cursor, new, ready, writer, at_us) if wrote else ([], range(0))
    return Appended(
        numbers=numbers,
        added=tuple(chain.from_iterable(added)),
        known=sum(each.known for each in sorted_kinds),
        conflicts=(*problems_of(sorted_kinds, added), *too_old),
    )


def _leave_out_archived(cursor: DBAPICursor, fresh: Sorted) -> list[Problem]:
    kept, problems = archived.told_in_time(cursor, fresh.codec, fresh.cells)
    if problems:
        fresh.rows, fresh.cells = [fresh.rows[place] for place in kept], [fresh.cells[place] for place in kept]
    return problems


def last_link(connection: sa.Connection, writer: str) -> tuple[int, str]:
    """The last number and hash of a writer's chain; (0, GENESIS) before its first link."""
    return _last_link(bare_cursor(connection), writer)


def last_numbers(connection: sa.Connection) -> dict[str, int]:
    """The last number of every writer's chain, in one statement: all as of one moment."""
    return dict(ask_last_numbers(connection))


def ask_last_numbers(connection: sa.Connection) -> Iterator[tuple[str, int]]:
    """As :func:`last_numbers`, asked at once and read when somebody looks."""
    cursor = bare_cursor(connection)
    cursor.execute(_LAST_NUMBERS)
    return ((str(writer), int(number)) for writer, number in answers(cursor))


def _last_link(cursor: DBAPICursor, writer: str) -> tuple[int, str]:
    cursor.execute(_LAST_LINK, (writer,))
    row = cursor.fetchone()
    return (int(row[0]), str(row[1])) if row else (0, GENESIS)


def _by_kind(rows: Sequence[Row]) -> _Batches:
    groups: dict[type[Row], list[Row]] = {}
    for row in rows:
        groups.setdefault(type(row), []).append(row)
    if unknown := groups.keys() - CODECS.keys():
        raise TypeError(f"not rows of the ledger: {sorted(each.__name__ for each in unknown)}")
    return [(CODECS[kind], groups[kind], CODECS[kind].encode(groups[kind])) for kind in ROWS if kind in groups]


def _write(
    engine: Engine, cursor: DBAPICursor, new: list[Sorted], ready: Ready | None, writer: str, at_us: int
) -> tuple[list[list[Row]], range]:
    engine.lock(cursor, f"writer {writer}")  # as late as can be: others of the chain wait from here to the end
    last, previous_hash = _last_link(cursor, writer)
    first_number = number = last + 1
    added: list[list[Row]] = []
    chained: list[tuple[str, list[tuple[Cell, ...]] | Iterator[str]]] = []
    for each in _in_order(new, ready):
        if not isinstance(each, Sorted):
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


def _in_order(new: list[Sorted], ready: Ready | None) -> list[Sorted | Ready]:
    """What is to be written, in the order of chaining: what stands ready comes after the others of its kind."""
    if ready is None:
        return [*new]
    place = ROWS.index(ready.kind)
    before = [each for each in new if ROWS.index(each.codec.kind.row) <= place]
    return [*before, ready, *new[len(before) :]]
