"""Sums: what the usage view asks of records and watches, each one SQL statement.

Whether the driver has settled an amount since it was recorded is read here by joining the driver's rows;
it is never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from gpuledger.ledger.codec import CODECS
from gpuledger.ledger.sqlite import POSITION
from gpuledger.model.moments import DAY_US
from gpuledger.model.rows import UsageRecord, Watch

_PARTS: dict[str, str] = {
    "subject": "subject",
    "host": "host",
    "device": "device",
    "hour_us": "hour_us",
    "day_us": f"hour_us - hour_us % {DAY_US}",
}
"""What a sum can be grouped by, and its expression."""

_ALL_TIME = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum:
    """One group of a sum over records and corrections.

    Args:
        key: the group, in the order of ``by``.
        quantity: all of it: settled + gone + open + corrected, in the meter's unit.
        settled: what the driver had settled when it was recorded.
        gone: contexts that had ended without a driver row.
        open: contexts that were still open then; see :func:`open_records`.
        corrected: corrections, signed.
    """

    key: tuple[str | int, ...]
    quantity: int
    settled: int
    gone: int
    open: int
    corrected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRecord:
    """A record of a context that was still open when its hour was recorded.

    Args:
        record: the record.
        settled_by: reference of the driver's row that has settled the context since; empty while there is none.
    """

    record: UsageRecord
    settled_by: str


def sum_usage(
    connection: sa.Connection, meter: str, since_us: int | None, until_us: int | None, by: Sequence[str]
) -> list[UsageSum]:
    """Sums over the records and corrections of the hours that begin in [since, until), sorted by key."""
    _check(by)
    keys = "".join(f"{_PARTS[part]}, " for part in by)
    # Grouped by something even without a key, so that there is a row only where there are records.
    grouped = keys[:-2] or "meter"
    parts = f"WHERE meter = :meter AND hour_us >= :since_us AND hour_us < :until_us GROUP BY {grouped}"
    records = f"""
        SELECT {keys}SUM(quantity),
               SUM(CASE WHEN context = 'settled' THEN quantity ELSE 0 END),
               SUM(CASE WHEN context = 'gone' THEN quantity ELSE 0 END)
        FROM usage_record {parts}"""  # noqa: S608 names are the schema's own, values are bound
    corrections = f"SELECT {keys}SUM(delta) FROM usage_correction {parts}"  # noqa: S608 as above
    bound = _bound(meter, since_us, until_us)
    found = {tuple(key): (quantity, settled, gone, 0)
             for *key, quantity, settled, gone in connection.execute(sa.text(records), bound)}  # fmt: skip
    for *key, delta in connection.execute(sa.text(corrections), bound):
        quantity, settled, gone, _ = found.get(tuple(key), (0, 0, 0, 0))
        found[tuple(key)] = (quantity + delta, settled, gone, delta)
    return [
        UsageSum(key=key, quantity=quantity, settled=settled, gone=gone, open=quantity - settled - gone - corrected,
                 corrected=corrected)
        for key, (quantity, settled, gone, corrected) in sorted(found.items())
    ]  # fmt: skip


def settled_since(
    connection: sa.Connection, meter: str, since_us: int | None, until_us: int | None, by: Sequence[str]
) -> dict[tuple[str | int, ...], int]:
    """Of what was open when its hour was recorded: what the driver has settled by now, by the key of a sum.

    The rule is that of :func:`open_records`; one context is open for many hours, so its row is looked up once.
    """
    _check(by)
    named = "".join(f"{_PARTS[part]} AS key_{position}, " for position, part in enumerate(by))
    keys = "".join(f"o.key_{position}, " for position in range(len(by)))
    parts = "".join(f"{_PARTS[part]}, " for part in by)
    at = f"{POSITION}(o.context, '@')"
    statement = f"""
        WITH o AS MATERIALIZED (
            SELECT {named}host AS at_host, device AS at_device, context, SUM(quantity) AS quantity
            FROM usage_record
            WHERE meter = :meter AND hour_us >= :since_us AND hour_us < :until_us AND context LIKE '%@%'
            GROUP BY {parts}host, device, context
        )
        SELECT {keys}SUM(o.quantity) FROM o JOIN driver_record AS d
          ON d.host = o.at_host AND d.device = o.at_device
         AND d.pid = CAST(substr(o.context, 1, {at} - 1) AS INTEGER)
         AND d.natural_key = 'start:' || substr(o.context, {at} + 1)
        {f"GROUP BY {keys[:-2]}" if by else ""}"""  # noqa: S608 names are the schema's own, values are bound
    rows = connection.execute(sa.text(statement), _bound(meter, since_us, until_us))
    return {tuple(key): int(quantity) for *key, quantity in rows if quantity is not None}


def open_records(connection: sa.Connection, meter: str, since_us: int | None, until_us: int | None) -> list[OpenRecord]:
    """Records of contexts that were open when recorded, each with the driver's row that settled it since.

    ``context`` is ``PID@START`` there, so the driver's row is found by its natural key ``start:START``.
    """
    at = f"{POSITION}(r.context, '@')"
    fields = CODECS[UsageRecord].fields
    statement = f"""
        SELECT {", ".join(f"r.{name}" for name in fields)}, d.writer, d.number
        FROM usage_record AS r
        LEFT JOIN driver_record AS d
          ON d.host = r.host AND d.device = r.device
         AND d.pid = CAST(substr(r.context, 1, {at} - 1) AS INTEGER)
         AND d.natural_key = 'start:' || substr(r.context, {at} + 1)
        WHERE r.meter = :meter AND r.hour_us >= :since_us AND r.hour_us < :until_us AND r.context LIKE '%@%'
        ORDER BY r.hour_us, r.writer, r.number"""  # noqa: S608 names are the schema's own, values are bound
    rows = connection.execute(sa.text(statement), _bound(meter, since_us, until_us)).fetchall()
    records = CODECS[UsageRecord].decode([row[:-2] for row in rows])
    found = []
    for record, row in zip(records, rows, strict=True):
        assert isinstance(record, UsageRecord)
        found.append(OpenRecord(record=record, settled_by="" if row[-2] is None else f"driver:{row[-2]}/{row[-1]}"))
    return found


def watched_spans(
    connection: sa.Connection, devices: Iterable[tuple[str, str]], since_us: int | None, until_us: int | None
) -> list[Watch]:
    """What was watched of these devices and of their hosts as a whole, and the first look ever at each.

    Touching or overlapping watches of one method and status are one span. It is answered from the unique
    index alone: interval and figures of the rows are not read and stand at 0, and there is no reference.
    """
    of_place = "FROM watch WHERE host = :host AND device = :device AND source = 'driver'"
    kinds = sa.text(f"SELECT method, status, MIN(since_us) {of_place} GROUP BY method, status")
    earliest = sa.text(f"SELECT MIN(until_us) {of_place} AND method = :method AND since_us = :since_us")
    spans = sa.text(
        f"SELECT since_us, until_us {of_place} AND method = :method AND status = :status AND since_us < :until_us "
        "AND until_us >= :since_us AND (until_us > :since_us OR since_us = :since_us) ORDER BY since_us"
    )
    window = {
        "since_us": -_ALL_TIME if since_us is None else since_us,
        "until_us": _ALL_TIME if until_us is None else until_us,
    }
    found: list[Watch] = []
    places = list(devices)
    for host, device in dict.fromkeys([*places, *((host, "") for host, _ in places)]):
        place = {"host": host, "device": device}
        known = connection.execute(kinds, place).fetchall()
        for method, status, first_us in known:
            kind = {**place, "method": method, "status": status}
            merged = _merged(connection, spans, {**kind, **window})
            if first_us == min(row[2] for row in known):
                ended_us = connection.execute(earliest, {**kind, "since_us": first_us}).scalar_one()
                merged.append((first_us, ended_us))
            found += [
                Watch(host=host, device=device, source="driver", method=method, interval_ms=0, since_us=low,
                      until_us=high, status=status, readings=0)
                for low, high in merged
            ]  # fmt: skip
    return found


def _merged(connection: sa.Connection, spans: sa.TextClause, bound: Mapping[str, str | int]) -> list[tuple[int, int]]:
    """Spans in the order of their start, touching and overlapping ones as one."""
    result = connection.execute(spans, bound)
    cursor = result.cursor  # the driver's own: a month is some 70,000 spans
    assert cursor is not None
    merged: list[tuple[int, int]] = []
    low = high = -_ALL_TIME
    for since_us, until_us in cursor.fetchall():
        if since_us > high:
            merged.append((low, high))
            low, high = since_us, until_us
        elif until_us > high:
            high = until_us
    merged.append((low, high))
    result.close()
    return merged[1:]


def coalesced_watches(
    connection: sa.Connection, since_us: int | None, until_us: int | None, source: str
) -> list[Watch]:
    """The watches that touch [since, until), touching or overlapping ones of one kind merged into one span.

    One kind is one host, device, method, interval and status. Readings and new rows are added, ``living``
    is the highest; ``detail`` belongs to single rows and is left empty. Merged spans have no reference.
    """
    one_kind = "host, device, method, interval_ms, status"
    statement = f"""
        WITH touching AS (
            SELECT {one_kind}, since_us, until_us, readings, new_rows, living FROM watch
            WHERE source = :source AND until_us >= :since_us AND since_us < :until_us
              AND (until_us > :since_us OR since_us >= :since_us)
        ), marked AS (
            SELECT touching.*, CASE WHEN since_us <= MAX(until_us) OVER (
                PARTITION BY {one_kind} ORDER BY since_us, until_us
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) THEN 0 ELSE 1 END AS opens
            FROM touching
        ), islands AS (
            SELECT marked.*, SUM(opens) OVER (
                PARTITION BY {one_kind} ORDER BY since_us, until_us
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS island
            FROM marked
        )
        SELECT {one_kind}, MIN(since_us), MAX(until_us), SUM(readings), SUM(new_rows), MAX(living)
        FROM islands GROUP BY {one_kind}, island
        ORDER BY host, device, MIN(since_us), method, interval_ms, status"""  # noqa: S608 names are the schema's own, values are bound
    rows = connection.execute(
        sa.text(statement),
        {
            "source": source,
            "since_us": -_ALL_TIME if since_us is None else since_us,
            "until_us": _ALL_TIME if until_us is None else until_us,
        },
    )
    return [
        Watch(
            host=host,
            device=device,
            source=source,
            method=method,
            interval_ms=interval_ms,
            since_us=since,
            until_us=until,
            status=status,
            readings=int(readings),
            new_rows=int(new_rows),
            living=living,
        )
        for host, device, method, interval_ms, status, since, until, readings, new_rows, living in rows
    ]


def _check(by: Sequence[str]) -> None:
    if unknown := [part for part in by if part not in _PARTS]:
        raise ValueError(f"usage cannot be summed by {unknown}; known: {sorted(_PARTS)}")


def _bound(meter: str, since_us: int | None, until_us: int | None) -> dict[str, str | int]:
    return {
        "meter": meter,
        "since_us": -_ALL_TIME if since_us is None else since_us,
        "until_us": _ALL_TIME if until_us is None else until_us,
    }
