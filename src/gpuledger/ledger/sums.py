"""Sums: what the usage view asks of records and watches, each with one SQL statement.

Whether the driver has settled an amount since it was recorded is read here by joining the driver's rows;
it is never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from gpuledger.ledger.engine import engine_of
from gpuledger.ledger.kinds import KIND_OF
from gpuledger.ledger.scanning import overlaps
from gpuledger.ledger.schema import WATCH
from gpuledger.model.meters import METERS, Grade
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US
from gpuledger.model.reasons import WATCHED
from gpuledger.model.rows import Watch

_PARTS: dict[str, str] = {
    "subject": "subject",
    "host": "host",
    "device": "device",
    "hour_us": "hour_us",
    "day_us": f"hour_us - hour_us % {DAY_US}",
}
"""What a sum can be grouped by, and its expression."""

_ALL_TIME = 2**62
_SAMPLED = frozenset(meter.name for meter in METERS if Grade.SETTLED not in meter.grades)


class UsageSum(NamedTuple):
    """One group of a sum over records and corrections.

    Args:
        key: the group, in the order of ``by``.
        quantity: all of it, corrections included, in the meter's unit.
        settled: what of it the driver had settled when it was recorded; 0 where nothing is ever settled.
        corrected: corrections, signed.
    """

    key: tuple[str | int, ...]
    quantity: int
    settled: int
    corrected: int


def _check(by: Sequence[str]) -> None:
    if unknown := [part for part in by if part not in _PARTS]:
        raise ValueError(f"usage cannot be summed by {unknown}; known: {sorted(_PARTS)}")


def _bound(meter: str, since_us: int | None, until_us: int | None) -> dict[str, str | int]:
    return {
        "meter": meter,
        "since_us": -_ALL_TIME if since_us is None else since_us,
        "until_us": _ALL_TIME if until_us is None else until_us,
    }


def _tuples(connection: sa.Connection, statement: str, bound: Mapping[str, str | int]) -> list[tuple[Any, ...]]:
    """Rows as the driver gives them: a SQLAlchemy row for each of thousands costs as much as SQLite itself."""
    result = connection.execute(sa.text(statement), bound)
    cursor = result.cursor
    assert cursor is not None
    rows = list(cursor.fetchall())
    result.close()
    return rows


def sum_usage(
    connection: sa.Connection, meter: str, since_us: int | None, until_us: int | None, by: Sequence[str]
) -> list[UsageSum]:
    """Sums over the records and corrections of the hours that begin in [since, until), sorted by key."""
    _check(by)
    keys = "".join(f"{_PARTS[part]}, " for part in by)
    # Grouped by something even without a key, so that there is a row only where there are records.
    grouped = keys[:-2] or "meter"
    parts = f"WHERE meter = :meter AND hour_us >= :since_us AND hour_us < :until_us GROUP BY {grouped}"
    # What is only sampled is never settled: the sum more would take a tenth of the time.
    of_settled = "0" if meter in _SAMPLED else "SUM(CASE context WHEN 'settled' THEN quantity ELSE 0 END)"
    records = f"SELECT {keys}SUM(quantity), {of_settled} FROM usage_record {parts}"  # noqa: S608 the schema's own names, values are bound
    corrections = f"SELECT {keys}SUM(delta) FROM usage_correction {parts}"  # noqa: S608 as above
    bound = _bound(meter, since_us, until_us)
    width = len(by)
    deltas = {row[:width]: row[width] for row in _tuples(connection, corrections, bound)}
    found: list[UsageSum] = []
    for *key, quantity, settled in _tuples(connection, records, bound):
        delta = deltas.pop(tuple(key), 0)
        found.append(UsageSum(tuple(key), quantity + delta, settled, delta))
    found += [UsageSum(key, delta, 0, delta) for key, delta in deltas.items()]
    return sorted(found)


def hours_of(connection: sa.Connection, meters: Iterable[str]) -> tuple[int | Missing, int | Missing]:
    """Start of the first and of the last hour in which one of these meters has a record or a correction."""
    found: list[int] = []
    for meter in meters:
        for table in ("usage_record", "usage_correction"):
            for edge in ("MIN", "MAX"):
                statement = f"SELECT {edge}(hour_us) FROM {table} WHERE meter = :meter"  # noqa: S608 constants
                found += [row[0] for row in _tuples(connection, statement, {"meter": meter}) if row[0] is not None]
    nothing = Missing("nothing is recorded")
    return min(found, default=nothing), max(found, default=nothing)


def recorded_meters(connection: sa.Connection) -> list[str]:
    """The meters that records name, from one to the next by the index."""
    found: list[str] = []
    statement = "SELECT MIN(meter) FROM usage_record WHERE meter > :meter"
    while (name := _tuples(connection, statement, {"meter": found[-1] if found else ""})[0][0]) is not None:
        found.append(str(name))
    return found


def negative_sums(connection: sa.Connection) -> list[tuple[str, int, str, str, str, int]]:
    """Keys whose record and corrections add up to less than nothing: meter, hour, host, device, subject, sum."""
    same = " AND ".join(f"r.{name} = c.{name}" for name in ("hour_us", "meter", "host", "device", "subject"))
    statement = f"""
        SELECT c.meter, c.hour_us, c.host, c.device, c.subject,
            c.delta + COALESCE((SELECT SUM(r.quantity) FROM usage_record AS r WHERE {same}), 0) AS total
        FROM (
            SELECT meter, hour_us, host, device, subject, SUM(delta) AS delta FROM usage_correction
            GROUP BY meter, hour_us, host, device, subject
        ) AS c"""  # noqa: S608 constants
    return [(*row,) for row in _tuples(connection, f"SELECT * FROM ({statement}) AS s WHERE s.total < 0", {})]  # noqa: S608


def settled_since(
    connection: sa.Connection, meter: str, since_us: int | None, until_us: int | None, by: Sequence[str]
) -> dict[tuple[str | int, ...], int]:
    """Of what was open when its hour was recorded: what the driver has settled by now, by the key of a sum.

    ``context`` is ``PID@START`` there, so the driver's row is found by its natural key ``start:START``. One
    context is open for many hours, so its row is looked up once.
    """
    _check(by)
    named = "".join(f"{_PARTS[part]} AS key_{position}, " for position, part in enumerate(by))
    keys = "".join(f"o.key_{position}, " for position in range(len(by)))
    parts = "".join(f"{_PARTS[part]}, " for part in by)
    engine = engine_of(connection)
    at = f"{engine.POSITION}(o.context, '@')"
    statement = f"""
        WITH o AS MATERIALIZED (
            SELECT {named}host AS at_host, device AS at_device, context, SUM(quantity) AS quantity
            FROM {engine.OPEN_RECORDS}
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


def watched_spans(
    connection: sa.Connection, devices: Iterable[tuple[str, str]], since_us: int | None, until_us: int | None
) -> list[Watch]:
    """What was watched of these devices and of their hosts as a whole, and the first look ever at each.

    Touching or overlapping watches of one method and status are one span. It is answered from the unique
    index alone: interval and figures of the rows are not read and stand at 0, and there is no reference.
    """
    of_place = "FROM watch WHERE host = :host AND device = :device AND source = 'driver'"
    of_method = f"{of_place} AND method = :method"
    touching = f"{of_method} AND since_us < :until_us AND (until_us > :since_us OR since_us = :since_us)"
    watched = f"SELECT since_us, until_us, status {touching} AND status = 'ok' ORDER BY since_us"
    unwatched = f"SELECT since_us, until_us, status {touching} AND status <> 'ok' ORDER BY since_us"
    ok = "CASE status WHEN 'ok' THEN {} END"
    of_each = engine_of(connection).JOINED
    starts_and_ends = ", ".join(of_each.format(ok.format(edge)) for edge in ("since_us", "until_us"))
    joined = f"SELECT {starts_and_ends}, COUNT(CASE WHEN status <> 'ok' THEN 1 END) {touching}"
    method_after = f"SELECT MIN(method) {of_place} AND method > :method"
    earliest = f"SELECT since_us, until_us, status {of_method} ORDER BY since_us LIMIT 1"
    window = _bound("", since_us, until_us)
    found: list[Watch] = []
    places = list(devices)
    for host, device in dict.fromkeys([*places, *((host, "") for host, _ in places)]):
        looks: list[tuple[int, int, str, str]] = []
        firsts: list[tuple[int, int, str, str]] = []
        kind = {"host": host, "device": device, "method": ""}
        while (method := _tuples(connection, method_after, kind)[0][0]) is not None:
            kind["method"] = method
            bound = {**kind, **window}
            starts, ends, others = _tuples(connection, joined, bound)[0]
            merged = _unbroken(starts, ends) or _merged(_tuples(connection, watched, bound))
            if others:
                merged += _merged(_tuples(connection, unwatched, bound))
            looks += [(*span, method) for span in merged]
            firsts += [(*row, method) for row in _tuples(connection, earliest, kind)]
        looks += sorted(firsts)[:1]
        found += [
            Watch(host=host, device=device, source="driver", method=method, interval_ms=0, since_us=low,
                  until_us=high, status=status, readings=0)
            for low, high, status, method in looks
        ]  # fmt: skip
    return found


def _unbroken(starts: str | None, ends: str | None) -> list[tuple[int, int, str]]:
    """The one span of watched rows each of which begins where the one before ended; empty where they do not.

    A month of an agent that never paused is 9,000 rows of a device, and to compare two texts is a tenth of the
    price of walking them. Whichever order they were joined in, equal texts are a chain.
    """
    if starts is None or ends is None:
        return []
    first, _, later = starts.partition(",")
    earlier, _, last = ends.rpartition(",")
    return [(int(first), int(last), "ok")] if later == earlier else []


def _merged(spans: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Spans in the order of their start, touching and overlapping ones of one status as one."""
    merged: list[tuple[int, int, str]] = []
    growing: dict[str, tuple[int, int]] = {}
    for since_us, until_us, status in spans:
        low, high = growing.get(status, (since_us, since_us))
        if since_us > high:
            merged.append((low, high, status))
            low = high = since_us
        growing[status] = (low, max(high, until_us))
    return merged + [(low, high, status) for status, (low, high) in growing.items()]


def coalesced_watches(
    connection: sa.Connection, since_us: int | None, until_us: int | None, source: str
) -> list[Watch]:
    """The watches that touch [since, until), touching or overlapping ones of one kind merged into one span.

    One kind is one host, device, method, interval and status. Readings and new rows are added, ``living``
    is the highest; ``detail`` belongs to single rows and is left empty. Merged spans have no reference.
    """
    # Sorted there, merged here: SQLite's window functions take twice as long over a month of a busy box
    # (70,000 spans, measured on 3.40.1).
    columns = WATCH.c
    parts = (columns.host, columns.device, columns.method, columns.interval_ms, columns.status)
    spans = (columns.since_us, columns.until_us)
    statement = (
        sa.select(*parts, *spans, columns.readings, columns.new_rows, columns.living)
        .where(columns.source == source, *overlaps(KIND_OF[Watch], since_us, until_us))
        .order_by(*parts, *spans)
    )
    merged: list[list[Any]] = []
    last: list[Any] = []
    cursor = connection.execute(statement).cursor
    assert cursor is not None
    for *kind, since, until, readings, new_rows, living in cursor.fetchall():
        if last and last[0] == kind and since <= last[2]:
            last[2] = max(last[2], until)
            last[3] += readings
            last[4] += new_rows
            last[5] = max(last[5], living)
        else:
            last = [kind, since, until, readings, new_rows, living]
            merged.append(last)
    merged.sort(key=lambda each: (each[0][:2], each[1]))
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
            readings=readings,
            new_rows=new_rows,
            living=living,
        )
        for (host, device, method, interval_ms, status), since, until, readings, new_rows, living in merged
    ]


class Remark(NamedTuple):
    """What a look at a device, or at a whole host, said beside its status.

    Args:
        host, device: where; the device is empty for the whole host.
        status: an ``UnknownReason``.
        since_us, until_us: the span of the looks that said so.
        detail: a clause.
    """

    host: str
    device: str
    status: str
    since_us: int
    until_us: int
    detail: str


def remarks(connection: sa.Connection, since_us: int | None, until_us: int | None) -> list[Remark]:
    """What the watches of devices that touch [since, until) and say UNKNOWN said beside it, by time."""
    columns = WATCH.c
    statement = (
        sa.select(columns.host, columns.device, columns.status, columns.since_us, columns.until_us, columns.detail)
        .where(columns.source == "driver", columns.detail != "", columns.status.not_in(WATCHED))
        .where(*overlaps(KIND_OF[Watch], since_us, until_us))
        .order_by(columns.since_us, columns.until_us, columns.detail)
    )
    return [Remark(*row) for row in connection.execute(statement)]
