"""Between rows and columns: frozen values in, tuples of integers and text out, and back, at speed.

Absent readings are NULL in the store. Only ``int``, ``str`` and NULL pass: a float or a truth value in a
row is a bug of the source that made it, and would be hashed differently from what SQLite keeps. A text is one that
every store keeps: with a NUL byte in it PostgreSQL keeps none, and SQLite's functions end before it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from itertools import repeat
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

_TEXT = {str}


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
        self._derive = [_DERIVED[name] for name in self.columns[len(self.fields) :]]
        assert self.columns[: len(self.fields)] == self.fields, f"columns of {kind.table.name} differ from its row"
        whole = {column.name for column in kind.table.columns if isinstance(column.type, sa.BigInteger)}
        nullable = {column.name for column in kind.table.columns if column.nullable}
        self.types: dict[str, frozenset[type]] = {
            name: frozenset([int if name in whole else str, *([type(None)] if name in nullable else [])])
            for name in self.columns
        }
        self._nullable = tuple(position for position, name in enumerate(self.fields) if name in nullable)
        self._read: Callable[[Row], tuple[Any, ...]] = operator.attrgetter(*self.fields[2:])
        self._setters = [getattr(kind.row, name).__set__ for name in self.fields]

    def encode(self, rows: Sequence[Row]) -> list[tuple[Cell, ...]]:
        """The columns of each row after ``writer`` and ``number``.

        Raises:
            TypeError: a value is neither int, str nor (where allowed) Missing.
            Refused: ``row-not-text`` for a text that no store keeps as it is.
        """
        if not rows:
            return []
        as_they_are: list[tuple[Any, ...]] = list(map(self._read, rows))
        columns: list[Sequence[Any]] = list(zip(*as_they_are, strict=True))
        columns.extend([derive(row) for row in rows] for derive in self._derive)
        is_changed = bool(self._derive)
        for position, name in enumerate(self.columns[2:]):
            column, allowed = columns[position], self.types[name]
            types = set(map(type, column))
            if types == _TEXT:
                self._refuse_no_text(name, column)
            if types <= allowed:
                continue
            if type(None) in allowed and None not in column:
                column = [None if isinstance(value, Missing) else value for value in column]
            elif str in allowed and all(isinstance(value, str) for value in column):
                column = [str(value) for value in column]  # a StrEnum becomes plain text
            wrong = set(map(type, column)) - allowed
            if wrong:
                raise TypeError(f"{self.kind.table.name}.{name} cannot hold {sorted(each.__name__ for each in wrong)}")
            columns[position], is_changed = column, True
            if str in allowed:
                self._refuse_no_text(name, [value for value in column if value is not None])
        return list(zip(*columns, strict=True)) if is_changed else as_they_are

    def _refuse_no_text(self, name: str, texts: Sequence[str]) -> None:
        whole = "".join(texts)
        if "\0" not in whole and (whole.isascii() or _is_utf8(whole)):
            return
        odd = next(text for text in texts if "\0" in text or not _is_utf8(text))
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
        for number, row in enumerate(rows, start=first):
            set_writer(row, writer)
            set_number(row, number)
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
            any(map(set_slot, made, column))  # a setter returns None: any() runs them all
        return made


CODECS: dict[type[Row], Codec] = {kind.row: Codec(kind) for kind in KINDS}
"""The codec of a row class, in the order of chaining."""
