"""Which rows of an append are new, which are known, and which are known with other figures.

In: rows of one kind and their columns. Out: :class:`Sorted`; what came of the others becomes problems. Nothing is
written here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.ledger.chain import Cell
from gpuledger.ledger.codec import Codec
from gpuledger.ledger.engine import MARK
from gpuledger.model.problem import Problem
from gpuledger.model.rows import Row

_LOOKED_UP_AT_ONCE = 200  # more costs SQLite a longer statement and saves nothing (measured 100 to 4,000)


@dataclass(slots=True)
class Sorted:
    """The new rows of one kind, and what came of the others."""

    codec: Codec
    rows: list[Row]
    cells: list[tuple[Cell, ...]]
    known: int = 0
    are_ours: bool = False
    """Whether nobody else has seen these rows yet."""
    conflicts: list[tuple[str | Row, list[str]]] = field(default_factory=list)
    """The first, or its reference, and the differences."""


def _getter(positions: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Picks these positions, always as a tuple."""
    if len(positions) == 1:
        only = positions[0]
        return lambda cells: (cells[only],)
    return operator.itemgetter(*positions) if positions else lambda _: ()


def take_all(cursor: DBAPICursor, codec: Codec, rows: list[Row], cells: list[tuple[Cell, ...]]) -> Sorted:
    """All rows of one kind as new ones, made for this very call."""
    del cursor
    return Sorted(codec, rows, cells, are_ours=True)


def sort_out(cursor: DBAPICursor, codec: Codec, rows: list[Row], cells: list[tuple[Cell, ...]]) -> Sorted:
    """Which rows of one kind are new, known, or in conflict."""
    kind = codec.kind
    if not kind.key:
        return Sorted(codec, rows, cells)
    columns = codec.columns[2:]
    key_of = _getter([columns.index(name) for name in kind.key])
    figures_of = _getter([columns.index(name) for name in kind.figures])
    keys = [key_of(each) for each in cells]
    distinct = list(dict.fromkeys(keys))
    stored = _look_up(cursor, codec, distinct)
    if not stored and len(distinct) == len(keys):
        return Sorted(codec, rows, cells)
    result = Sorted(codec, [], [])
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


def problems_of(sorted_kinds: list[Sorted], added: list[list[Row]]) -> tuple[Problem, ...]:
    """What to say of rows that are known with other figures.

    Args:
        sorted_kinds: what came of each kind.
        added: of those kinds that have new rows, these with their numbers.
    """
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
