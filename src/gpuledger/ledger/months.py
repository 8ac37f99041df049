"""Which months a table's rows lie in, and the rows of one month, streamed in the order of a lake's file.

In: an open ledger inside a snapshot. Out: counts and numbers by month, and tuples of columns in batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from gpuledger.ledger.engine import engine_of
from gpuledger.ledger.kinds import KINDS
from gpuledger.ledger.parquet import ROWS_AT_ONCE
from gpuledger.ledger.schema import IDENTITY_TEXT, LINK
from gpuledger.ledger.store import Ledger
from gpuledger.model.lake import SINGLE, TEXTS, month_of, month_span
from gpuledger.model.moments import DAY_US

_TIMES = {kind.table.name: kind.time for kind in KINDS} | {LINK.name: "committed_at_us"}
_TABLES = {kind.table.name: kind.table for kind in KINDS} | {LINK.name: LINK, TEXTS: IDENTITY_TEXT}

TABLES: tuple[str, ...] = tuple(_TABLES)
"""Every table that can be exported, in the order of the river; links and texts last."""

_ORDERS: dict[str, tuple[str, ...]] = {
    "workload_event": ("workload", "at_us", "sequence"),
    "usage_record": ("hour_us", "meter", "host", "device", "subject", "context"),
    "usage_correction": ("hour_us", "meter", "host", "device", "subject", "correction_number"),
    TEXTS: ("text_key",),
    LINK.name: ("writer", "first_number"),
}
"""How a file is sorted, where not by time, writer and number: events by workload, so that a part of the workloads is a
part of each file; records by their key."""


@dataclass(slots=True)
class Held:
    """What a table holds of one month.

    Args:
        rows: how many.
        numbers: of each writer the lowest and the highest number.
    """

    rows: int = 0
    numbers: dict[str, tuple[int, int]] = field(default_factory=dict)


def held(ledger: Ledger, table: str) -> dict[str, Held]:
    """What a table holds, by month; under the empty month of a table that has one file. In one walk."""
    columns = _TABLES[table].c
    if table == TEXTS:
        count = ledger.connection.execute(sa.select(sa.func.count()).select_from(IDENTITY_TEXT)).scalar_one()
        return {"": Held(rows=int(count))}
    low, high = (columns.first_number, columns.last_number) if table == LINK.name else (columns.number, columns.number)
    time = columns[_TIMES[table]] if table not in SINGLE else sa.literal(0)
    day = (time - time % DAY_US) if table not in SINGLE else sa.literal(0)
    statement = sa.select(columns.writer, day, sa.func.count(), sa.func.min(low), sa.func.max(high)).group_by(
        columns.writer, *([day] if table not in SINGLE else [])
    )
    found: dict[str, Held] = {}
    for writer, day_us, count, lowest, highest in ledger.connection.execute(statement):
        month = found.setdefault("" if table in SINGLE else month_of(int(day_us)), Held())
        before = month.numbers.get(writer, (lowest, highest))
        month.numbers[writer] = (int(min(lowest, before[0])), int(max(highest, before[1])))
        month.rows += int(count)
    for month in found.values():
        month.numbers = dict(sorted(month.numbers.items()))
    return found


def rows_of(ledger: Ledger, table: str, month: str, *, batch: int = ROWS_AT_ONCE) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a month, or of the whole table, in batches of tuples; sorted as their file is."""
    whole = _TABLES[table]
    columns = whole.c
    order = _ORDERS.get(table) or (("writer", "number") if table in SINGLE else (_TIMES[table], "writer", "number"))
    statement = sa.select(whole).order_by(*(columns[name] for name in order))
    if month:
        since_us, until_us = month_span(month)
        time = columns[_TIMES[table]]
        statement = statement.where(time >= since_us, time < until_us)
    yield from engine_of(ledger.connection).stream(ledger.connection, statement, {}, batch)
