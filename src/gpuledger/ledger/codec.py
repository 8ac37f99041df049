"""Between rows and columns: frozen values in, tuples of integers and text out, and back, at speed.

Absent readings are NULL in the store. Only ``int``, ``str`` and NULL pass: a float or a truth value in a
row is a bug of the source that made it, and would be hashed differently from what SQLite keeps. A text is one that
every store keeps: with a NUL byte in it PostgreSQL keeps none, and SQLite's functions end before it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from itertools import chain, count, repeat
from typing import Any

import sqlalchemy as sa

from gpuledger.errors import Refused
from gpuledger.ledger.chain import Cell
from gpuledger.ledger.kinds import KINDS, Kind
from gpuledger.model.missing import Missing
from gpuledger.model.rows import DriverRecord, Row

NOT_RECORDED = Missing("not recorded")
"""What a NULL reads as: the reason of an absence is told when it is read, not kept."""


def _driver_natural_key(row: DriverRecord) -> str:
    return row.natural_key


def driver_ended_at_us(row: DriverRecord) -> int:
    """When a finished process ended, microseconds UTC, or was read when its start is not known."""
    started = row.started_at_us
    return row.read_at_us if isinstance(started, Missing) else started + row.context_ms * 1000


_DERIVED: dict[str, Callable[[Any], Cell]] = {
    "natural_key": _driver_natural_key,
    "ended_at_us": driver_ended_at_us,
}
"""Columns that are computed from a row's fields, by name."""


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Codec:
    """The two directions for one kind of row.

    Attributes:
        columns: all columns of the table, ``writer`` and ``number`` first, derived ones last.
        fields: the columns that are fields of the row, ``writer`` and ``number`` first.
        select: the statement that gives these columns of every row.
        types: the Python types that each column may hold.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.columns = tuple(column.name for column in kind.table.columns)
        self.fields = tuple(field.name for field in fields(kind.row))
        self.select = sa.select(*(kind.table.c[name] for name in self.fields))
        assert self.columns[: len(self.fields)] == self.fields, f"columns of {kind.table.name} differ from its row"
        whole = {column.name for column in kind.table.columns if isinstance(column.type, sa.BigInteger)}
        nullable = {column.name for column in kind.table.columns if column.nullable}
        self.types: dict[str, frozenset[type]] = {
            name: frozenset([int if name in whole else str, *([type(None)] if name in nullable else [])])
            for name in self.columns
        }
        self._nullable = tuple(position for position, name in enumerate(self.fields) if name in nullable)
        self._read: Callable[[Row], tuple[Any, ...]] = operator.attrgetter(*self.fields[2:])
        self._derive = [_DERIVED[name] for name in self.columns[len(self.fields) :]]
        self._plain = tuple(str if str in self.types[name] else int for name in self.columns[2:])
        texts = [place for place, name in enumerate(self.columns[2:]) if name not in whole]
        assert nullable <= whole, f"a text of {kind.table.name} may be absent: it would not be looked at"
        texts = texts if len(texts) > 1 else texts * 2  # of one place an itemgetter gives no tuple
        self._texts = [self.columns[2 + place] for place in texts]
        self._texts_of: Callable[[tuple[Any, ...]], tuple[str, ...]] = operator.itemgetter(*texts)
        self._setters = [getattr(kind.row, name).__set__ for name in self.fields]

    def encode(self, rows: Sequence[Row]) -> list[tuple[Cell, ...]]:
        """The columns of each row after ``writer`` and ``number``.

        Raises:
            TypeError: a value is neither int, str nor (where allowed) Missing.
            Refused: ``row-not-text`` for a text that no store keeps as it is.
        """
        cells = list(map(self._cells_of, rows))
        texts = list(map(self._texts_of, cells))
        whole = "".join(chain.from_iterable(texts))
        if "\0" in whole or not (whole.isascii() or _is_utf8(whole)):
            self._refuse_no_text(texts)
        return cells

    def _cells_of(self, row: Row) -> tuple[Cell, ...]:
        """The cells of a row: most have nothing but plain texts and numbers, each where it belongs."""
        cells = self._read(row)
        if self._derive:
            cells += tuple(derive(row) for derive in self._derive)
        if tuple(map(type, cells)) == self._plain:
            return cells
        names = zip(self.columns[2:], self._plain, cells, strict=True)
        return tuple(cell if type(cell) is plain else self._other(name, cell) for name, plain, cell in names)

    def _other(self, name: str, value: object) -> Cell:
        """A value that is no plain text or number where one should be: an absence, a StrEnum, or a bug."""
        allowed = self.types[name]
        if isinstance(value, Missing) and type(None) in allowed:
            return None
        if isinstance(value, str) and str in allowed:
            return str(value)  # a StrEnum becomes plain text
        raise TypeError(f"{self.kind.table.name}.{name} cannot hold {type(value).__name__}")

    def _refuse_no_text(self, rows: Sequence[tuple[str, ...]]) -> None:
        found = ((name, text) for row in rows for name, text in zip(self._texts, row, strict=True))
        name, odd = next((name, text) for name, text in found if "\0" in text or not _is_utf8(text))
        where = f"{self.kind.table.name}.{name}"
        what = "a NUL byte" if "\0" in odd else "half of a letter (a lone surrogate)"
        raise Refused(
            "row-not-text",
            f"a text holds {what}, which no ledger keeps: {where} is {odd!r:.60}; nothing was added",
            hint="leave it out of the text, where the text is made",
        )

    def number(self, rows: Sequence[Row], writer: str, first: int) -> list[Row]:
        """Copies of the rows with their writer and consecutive numbers from ``first``."""
        columns = zip(*map(self._read, rows), strict=True)
        return self._make(len(rows), [repeat(writer, len(rows)), range(first, first + len(rows)), *columns])

    def number_in_place(self, rows: list[Row], writer: str, first: int) -> list[Row]:
        """As :meth:`number`, the very rows: of those that nobody else has seen yet."""
        set_writer, set_number = self._setters[:2]
        any(map(set_writer, rows, repeat(writer)))  # a setter returns None: any() runs them all
        any(map(set_number, rows, count(first)))
        return rows

    def decode(self, batch: Sequence[Sequence[Any]]) -> list[Row]:
        """Rows of tuples in the order of :attr:`fields`; NULL becomes :data:`NOT_RECORDED`."""
        columns: list[Sequence[Any]] = list(zip(*batch, strict=True))
        for position in self._nullable if columns else ():
            column = columns[position]
            if None in column:
                columns[position] = [NOT_RECORDED if value is None else value for value in column]
        return self._make(len(batch), columns)

    def _make(self, count: int, columns: Sequence[Iterable[Any]]) -> list[Row]:
        # Column by column, each slot set past the frozen __init__: a third of its time, and two million rows
        # are read in one pass.
        made: list[Row] = [object.__new__(self.kind.row) for _ in range(count)]
        for set_slot, column in zip(self._setters, columns, strict=False):
            any(map(set_slot, made, column))
        return made


CODECS: dict[type[Row], Codec] = {kind.row: Codec(kind) for kind in KINDS}
"""The codec of a row class, in the order of chaining."""
