"""Scanning: which rows, in which order; out come frozen rows, streamed in batches.

Spans are half-open and overlap by what a row covers; a row without length belongs to the span that holds
its moment. Marks (writer to number) cut a chain exactly, whatever is appended meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import sqlalchemy as sa

from gpuledger.ledger.codec import CODECS
from gpuledger.ledger.engine import engine_of
from gpuledger.ledger.kinds import Kind
from gpuledger.model.rows import Row

BATCH = 2000
_PAIRS_IN_SQL = 300
_FEW = 4  # a look-up through an index costs about four rows of a walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to scan for; None leaves a limit out.

    Args:
        since_us, until_us: the window, half-open.
        hosts, devices: names and UUIDs.
        pids: pairs of host and pid.
        after: number greater than the writer's mark; a writer that is not named counts as 0.
        upto: number at most the writer's mark; a writer that is not named counts as 0.
        order: ``number`` (writer, then number) or ``time``.
        descending: the other way round.
        limit: at most so many rows.
    """

    since_us: int | None = None
    until_us: int | None = None
    hosts: Collection[str] | None = None
    devices: Collection[str] | None = None
    pids: Collection[tuple[str, int]] | None = None
    after: Mapping[str, int] | None = None
    upto: Mapping[str, int] | None = None
    order: str = "number"
    descending: bool = False
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.order not in ("number", "time"):
            raise ValueError(f"no such order: {self.order!r}")


def overlaps(kind: Kind, since_us: int | None, until_us: int | None) -> list[sa.ColumnElement[bool]]:
    """The conditions under which a row of a kind touches [since, until)."""
    conditions: list[sa.ColumnElement[bool]] = []
    if until_us is not None:
        conditions.append(kind.starts < until_us)
    if since_us is not None:
        conditions.append(kind.ends >= since_us)  # for the index; the next line is the rule
        if kind.starts is not kind.ends:
            conditions.append(sa.or_(kind.ends > since_us, kind.starts >= since_us))
    return conditions


def scan_rows(
    connection: sa.Connection, kind: Kind, wanted: Wanted, writers: Iterable[str], batch: int = BATCH
) -> Iterator[Row]:
    """Rows of one kind; ``writers`` are all that the ledger knows, needed for marks."""
    columns = kind.table.c
    conditions = overlaps(kind, wanted.since_us, wanted.until_us)
    by_time = wanted.since_us is not None and wanted.pids is None and _is_recent(connection, kind, wanted.since_us)
    if wanted.hosts is not None:
        # By time: else SQLite takes the index on the host, which on one box is the whole table.
        host = columns.host.concat("") if by_time else columns.host
        conditions.append(host.in_(sorted(wanted.hosts)))
    if wanted.devices is not None:
        conditions.append(columns.device.in_(sorted(wanted.devices)))
    pairs: set[tuple[str, int]] | None = None
    if wanted.pids is not None:
        pairs = set(wanted.pids)
        conditions.append(_pairs(kind, pairs))
        pairs = pairs if len(pairs) > _PAIRS_IN_SQL else None
    statement = CODECS[kind.row].select.where(*conditions)
    if wanted.limit is not None and pairs is None:
        statement = statement.limit(wanted.limit)
    rows = _stream_all(connection, kind, statement, wanted, sorted(writers), batch, by_time)
    if pairs is not None:
        chosen = pairs
        rows = (row for row in rows if (row.host, row.pid) in chosen)  # type: ignore[attr-defined]
    return rows if wanted.limit is None else islice(rows, wanted.limit)


def _pairs(kind: Kind, pairs: set[tuple[str, int]]) -> sa.ColumnElement[bool]:
    """Rows of these hosts and pids. Many pairs are narrowed to their hosts here and picked by the caller."""
    columns = kind.table.c
    if len(pairs) > _PAIRS_IN_SQL:
        return columns.host.in_(sorted({host for host, _ in pairs}))
    by_host: dict[str, list[int]] = {}
    for host, pid in sorted(pairs):
        by_host.setdefault(host, []).append(pid)
    # Not (host, pid) IN (VALUES ...): SQLite scans the whole table for a row value there.
    return sa.or_(sa.false(), *(sa.and_(columns.host == host, columns.pid.in_(pids)) for host, pids in by_host.items()))


def _is_recent(connection: sa.Connection, kind: Kind, since_us: int) -> bool:
    """Whether the rows from ``since_us`` on are few enough to be looked up through the index on their ends."""
    leading = [index.expressions[0] for index in kind.table.indexes] + [kind.table.c[name] for name in kind.key[:1]]
    if not any(column is kind.ends for column in leading) or not engine_of(connection).IS_HINTED:
        return False
    last = connection.execute(sa.select(sa.func.max(kind.ends))).scalar()
    first = connection.execute(sa.select(sa.func.min(kind.ends))).scalar()
    return last is not None and first is not None and (last - since_us) * _FEW < last - first


def _stream_all(
    connection: sa.Connection,
    kind: Kind,
    statement: sa.Select[Any],
    wanted: Wanted,
    writers: list[str],
    batch: int,
    by_time: bool,
) -> Iterator[Row]:
    writer: sa.ColumnElement[str] = kind.table.c.writer
    number: sa.ColumnElement[int] = kind.table.c.number
    if by_time:
        # Without this SQLite walks the whole primary key, only because it is already in order.
        writer, number = writer.concat(""), number + 0
    order: list[sa.ColumnElement[Any]] = [writer, number]
    if wanted.order == "time":
        order.insert(0, kind.table.c[kind.time])
    statement = statement.order_by(*(column.desc() if wanted.descending else column for column in order))
    if wanted.after is None and wanted.upto is None:
        return _stream(connection, kind, statement, batch)
    ranges = [sa.and_(writer == name, *_marked(number, name, wanted)) for name in writers]
    if wanted.order == "time" or by_time:
        return _stream(connection, kind, statement.where(sa.or_(sa.false(), *ranges)), batch)
    # One query per writer: each is a range of the primary key, already in order.
    ranges = ranges[::-1] if wanted.descending else ranges
    return chain.from_iterable(_stream(connection, kind, statement.where(each), batch) for each in ranges)


def _marked(number: sa.ColumnElement[int], writer: str, wanted: Wanted) -> list[sa.ColumnElement[bool]]:
    parts = []
    if wanted.after is not None:
        parts.append(number > wanted.after.get(writer, 0))
    if wanted.upto is not None:
        parts.append(number <= wanted.upto.get(writer, 0))
    return parts


def _stream(connection: sa.Connection, kind: Kind, statement: sa.Select[Any], batch: int) -> Iterator[Row]:
    decode = CODECS[kind.row].decode
    for rows in engine_of(connection).stream(connection, statement, {}, batch):
        yield from decode(rows)
