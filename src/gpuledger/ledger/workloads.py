"""What the ledger knows of workloads, looked up by their names: events, claims, placements, who may hold a device.

In: the connection of an open ledger, for the one transaction in which transitions are judged and written. Out: rows.
Every look-up goes through an index, however long the history is.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, TypeVar, cast

import sqlalchemy as sa

from gpuledger.ledger import heartbeats
from gpuledger.ledger.codec import CODECS
from gpuledger.ledger.engine import MARK, bare_cursor, engine_of
from gpuledger.model.controller_clock import CLOCK
from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.model.reasons import UnknownReason
from gpuledger.model.rows import Row, Watch
from gpuledger.model.workload_rows import Hold, PlacementRow, WorkloadEvent

R = TypeVar("R", bound=Row)

FEW = 16
"""Devices up to which a search in each list is cheaper than reading all lists."""

_AT_ONCE = 200  # as in appending: more costs a longer statement and saves nothing
_ENDS = "('stopped', 'failed')"


def events_since_begin(connection: sa.Connection, since_us: Mapping[str, int]) -> dict[str, list[WorkloadEvent]]:
    """The events of workloads from the last ``provisioning`` at or before a moment on, in the order of (at, sequence).

    Args:
        connection: of the ledger.
        since_us: workload to that moment; nothing before its ``provisioning`` can matter from then on.
    """
    return by_workload(ask_events(connection, since_us))


def by_workload(events: Iterable[WorkloadEvent]) -> dict[str, list[WorkloadEvent]]:
    """Events by their workload, in the order in which they come."""
    found: dict[str, list[WorkloadEvent]] = {}
    for row in events:
        found.setdefault(row.workload, []).append(row)
    return found


def ask_events(
    connection: sa.Connection, since_us: Mapping[str, int], *, texts: dict[str, str] | None = None
) -> Iterator[WorkloadEvent]:
    """As :func:`events_since_begin`, asked at once and read when somebody looks.

    Args:
        connection, since_us: as there.
        texts: where to put the JSON of their owners' texts, by key; it comes with the events.
    """
    columns = _columns(WorkloadEvent, "e")
    owner = ", (SELECT t.json FROM identity_text AS t WHERE t.text_key = e.subject)" if texts is not None else ""
    query = f"""SELECT {columns}{owner} FROM wanted CROSS JOIN workload_event AS e
        WHERE e.workload = wanted.workload AND e.at_us >= coalesce((
            SELECT b.at_us FROM workload_event AS b
            WHERE b.workload = wanted.workload AND b.at_us <= wanted.at_us AND b.state = 'provisioning'
            ORDER BY b.at_us DESC, b.sequence DESC LIMIT 1), -1)
        ORDER BY e.workload, e.at_us, e.sequence"""  # noqa: S608 names are the schema's own, values are bound
    cells = _cells(connection, ("workload", "at_us"), list(since_us.items()), query)
    return _decoded(WorkloadEvent, cells if texts is None else _without_texts(cells, texts))


def _without_texts(cells: Iterable[tuple[Any, ...]], texts: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    place = CODECS[WorkloadEvent].fields.index("subject")
    for *row, text in cells:
        if text is not None:
            texts[row[place]] = text
        yield tuple(row)


def known_events(connection: sa.Connection, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], WorkloadEvent]:
    """The stored events of these (workload, event id), by them."""
    columns = _columns(WorkloadEvent, "e")
    if len(keys) == 1:  # what a controller tells event by event
        cursor = bare_cursor(connection)
        query = f"SELECT {columns} FROM workload_event AS e WHERE workload = {MARK} AND event_id = {MARK}"  # noqa: S608 as above
        cursor.execute(query, keys[0])
        rows = cast("list[WorkloadEvent]", CODECS[WorkloadEvent].decode(cursor.fetchall()))
    else:
        query = f"""SELECT {columns} FROM wanted CROSS JOIN workload_event AS e
            WHERE e.workload = wanted.workload AND e.event_id = wanted.event_id"""  # noqa: S608 as above
        rows = list(_wanted(connection, WorkloadEvent, ("workload", "event_id"), keys, query))
    return {(row.workload, row.event_id): row for row in rows}


def name_after(connection: sa.Connection, text: str) -> str | Missing:
    """The first name of a workload that any event tells of, after a text."""
    cursor = bare_cursor(connection)
    cursor.execute(f"SELECT min(workload) FROM workload_event WHERE workload > {MARK}", (text,))  # noqa: S608 as above
    ((name,),) = cursor.fetchall()
    return Missing("none comes after it") if name is None else str(name)


def events_named(connection: sa.Connection, spans: Collection[tuple[str, str]]) -> list[WorkloadEvent]:
    """The events of workloads whose names lie between two texts, of several such pairs that do not overlap."""
    query = f"""SELECT {_columns(WorkloadEvent, "e")} FROM wanted CROSS JOIN workload_event AS e
        WHERE e.workload > wanted.low AND e.workload < wanted.high
        ORDER BY e.workload, e.at_us, e.sequence"""  # noqa: S608 as above
    return list(_wanted(connection, WorkloadEvent, ("low", "high"), sorted(set(spans)), query))


def last_sequences(connection: sa.Connection, workloads: Collection[str]) -> dict[str, int]:
    """The highest sequence of an event of each workload that is known: by events, or, with 0, by a hold alone."""
    return dict(ask_last_sequences(connection, workloads))


def ask_last_sequences(connection: sa.Connection, workloads: Collection[str]) -> Iterator[tuple[str, int]]:
    """As :func:`last_sequences`, asked at once and read when somebody looks."""
    query = """SELECT workload, last FROM (
        SELECT wanted.workload,
            (SELECT MAX(e.sequence) FROM workload_event AS e WHERE e.workload = wanted.workload) AS last,
            (SELECT MAX(h.sequence) FROM hold AS h WHERE h.workload = wanted.workload) AS held FROM wanted
        ) AS found WHERE last IS NOT NULL OR held IS NOT NULL"""
    return ((name, last or 0) for name, last in _cells(connection, ("workload",), [(w,) for w in workloads], query))


def claims(connection: sa.Connection, workloads: Collection[str]) -> dict[str, Hold]:
    """The last hold row of each workload that ever held anything; one that was ``released`` holds nothing."""
    return last_of_each(ask_claims(connection, workloads))


def last_of_each(holds: Iterable[Hold]) -> dict[str, Hold]:
    """The last of these rows of each workload. Of one sequence: released, then taken; a move lets go first."""
    return {row.workload: row for row in holds}


def ask_claims(connection: sa.Connection, workloads: Collection[str]) -> Iterator[Hold]:
    """The rows that :func:`claims` is made of, asked at once and read when somebody looks."""
    query = f"""SELECT {_columns(Hold, "h")} FROM wanted CROSS JOIN hold AS h
        WHERE h.workload = wanted.workload
        AND h.sequence = (SELECT max(sequence) FROM hold WHERE workload = wanted.workload)
        ORDER BY h.workload, h.change"""  # noqa: S608 as above
    return _wanted(connection, Hold, ("workload",), [(w,) for w in workloads], query)


def placement_rows(connection: sa.Connection, keys: Collection[str]) -> list[PlacementRow]:
    """The placements of these keys."""
    query = f"""SELECT {_columns(PlacementRow, "p")} FROM wanted CROSS JOIN placement AS p
        WHERE p.placement = wanted.placement"""  # noqa: S608 as above
    return list(_wanted(connection, PlacementRow, ("placement",), [(key,) for key in keys], query))


def placements_on(connection: sa.Connection, devices: Collection[str]) -> list[PlacementRow]:
    """The placements that hold one of these devices, which are :data:`FEW` at most."""
    position = engine_of(connection).POSITION
    condition = " OR ".join([f"{position}(p.devices, {MARK}) > 0"] * len(devices))
    values = [json.dumps(device) for device in devices]  # as it stands in the list
    cursor = bare_cursor(connection)
    cursor.execute(f"SELECT {_columns(PlacementRow, 'p')} FROM placement AS p WHERE {condition}", values)  # noqa: S608 as above
    return cast("list[PlacementRow]", CODECS[PlacementRow].decode(cursor.fetchall()))


def every_placement(connection: sa.Connection) -> list[PlacementRow]:
    """All placements of the ledger."""
    cursor = bare_cursor(connection)
    cursor.execute(f"SELECT {_columns(PlacementRow, 'p')} FROM placement AS p")  # noqa: S608 as above
    return cast("list[PlacementRow]", CODECS[PlacementRow].decode(cursor.fetchall()))


def may_hold(connection: sa.Connection, placements: Collection[str], since_us: int) -> set[str]:
    """Workloads that may hold one of these placements at ``since_us`` or after: those whose stop is not known by then.

    With an unconfirmed hold as well as by their events.
    """
    named = f"""SELECT e.workload FROM wanted CROSS JOIN workload_event AS e
        WHERE e.placement = wanted.placement AND e.placement <> '' AND NOT EXISTS (
            SELECT 1 FROM workload_event AS x WHERE x.workload = e.workload AND x.state IN {_ENDS}
            AND x.at_us BETWEEN e.at_us AND wanted.at_us
            AND (x.at_us > e.at_us OR x.sequence > e.sequence))"""  # noqa: S608 as above
    admitted = """SELECT h.workload FROM wanted CROSS JOIN hold AS h
        WHERE h.placement = wanted.placement AND h.expires_at_us > wanted.at_us"""
    wanted = [(key, since_us) for key in placements]
    found: set[str] = set()
    for query in (named, admitted):
        found.update(workload for (workload,) in _cells(connection, ("placement", "at_us"), wanted, query))
    return found


def placements_by_place(connection: sa.Connection) -> list[PlacementRow]:
    """The placements with a device whose name has a slash, as HOST/ADDRESS has."""
    cursor = bare_cursor(connection)
    cursor.execute(f"SELECT {_columns(PlacementRow, 'p')} FROM placement AS p WHERE p.devices LIKE {MARK}", ("%/%",))  # noqa: S608 as above
    return cast("list[PlacementRow]", CODECS[PlacementRow].decode(cursor.fetchall()))


def placed_on(connection: sa.Connection, placements: Collection[str]) -> set[str]:
    """Workloads of which any event names one of these placements."""
    query = """SELECT DISTINCT e.workload FROM wanted CROSS JOIN workload_event AS e
        WHERE e.placement = wanted.placement AND e.placement <> ''"""
    wanted = [(key,) for key in placements]
    return {str(workload) for (workload,) in _cells(connection, ("placement",), wanted, query)}


def told_ahead(connection: sa.Connection, since_us: int, until_us: int) -> list[tuple[str, int, int, int, int]]:
    """Events of a window that the ledger was told before they had happened, by more than the tolerance.

    Gives (source, events, microseconds ahead in all, first, last) for each source.
    """
    cursor = bare_cursor(connection)
    query = f"""SELECT source, count(*), sum(at_us - recorded_at_us), min(at_us), max(at_us) FROM workload_event
        WHERE at_us >= {MARK} AND at_us < {MARK} AND is_declared = 0 AND at_us - recorded_at_us > {CLOCK_TOLERANCE_US}
        GROUP BY source ORDER BY source"""  # noqa: S608 as above
    cursor.execute(query, (since_us, until_us))
    return [(str(source), int(n), int(ahead), int(low), int(high)) for source, n, ahead, low, high in cursor.fetchall()]


def clock_rows(connection: sa.Connection) -> list[Watch]:
    """What controllers said of their clocks, by source, oldest first. They say it with a heartbeat."""
    codec = CODECS[Watch]
    cursor = bare_cursor(connection)
    query = f"""SELECT {", ".join(codec.fields)} FROM watch
        WHERE host = {MARK} AND device = '' AND source = 'controller' AND method = {MARK}
        ORDER BY since_us, writer, number"""  # noqa: S608 as above
    found: list[Watch] = []
    for source in heartbeats.sources(cursor):
        cursor.execute(query, (source, CLOCK))
        found += cast("list[Watch]", codec.decode(cursor.fetchall()))
    return found


def clock_steps(connection: sa.Connection, since_us: int, until_us: int) -> list[Watch]:
    """Where agents saw in a window that the clock of their machine was set: of each machine and moment one row."""
    codec = CODECS[Watch]
    cursor = bare_cursor(connection)
    query = f"""SELECT {", ".join(codec.fields)} FROM watch
        WHERE until_us > {MARK} AND since_us < {MARK} AND status = {MARK}
        ORDER BY host, since_us, until_us, writer, number"""  # noqa: S608 as above
    cursor.execute(query, (since_us, until_us, UnknownReason.CLOCK_STEP.value))
    rows = cast("list[Watch]", codec.decode(cursor.fetchall()))
    # each device and source that was looked at has a row of its own
    return list({(row.host, row.since_us, row.until_us): row for row in reversed(rows)}.values())[::-1]


def told_between(connection: sa.Connection, source: str, told: tuple[int, int], window: tuple[int, int]) -> int:
    """How many events of a window a live source told between two moments."""
    cursor = bare_cursor(connection)
    query = f"""SELECT count(*) FROM workload_event WHERE at_us >= {MARK} AND at_us < {MARK}
        AND source = {MARK} AND is_declared = 0 AND recorded_at_us >= {MARK} AND recorded_at_us < {MARK}"""  # noqa: S608 as above
    cursor.execute(query, (*window, source, *told))
    ((found,),) = cursor.fetchall()
    return int(found)


def newest_policy(connection: sa.Connection) -> int:
    """The version of the policy applied last; 0 before the first."""
    cursor = bare_cursor(connection)
    cursor.execute("SELECT max(version) FROM policy")
    ((version,),) = cursor.fetchall()
    return int(version or 0)


@cache
def _columns(kind: type[Row], alias: str) -> str:
    return ", ".join(f"{alias}.{name}" for name in CODECS[kind].fields)


def _wanted(
    connection: sa.Connection, kind: type[R], names: Sequence[str], values: Sequence[tuple[Any, ...]], query: str
) -> Iterator[R]:
    """Rows of one kind of a query over ``wanted``, a relation of these values: asked at once, read when one looks."""
    return _decoded(kind, _cells(connection, names, values, query))


def _decoded(kind: type[R], cells: Iterable[tuple[Any, ...]]) -> Iterator[R]:
    yield from cast("list[R]", CODECS[kind].decode(list(cells)))


def _cells(
    connection: sa.Connection, names: Sequence[str], values: Sequence[tuple[Any, ...]], query: str
) -> Iterator[tuple[Any, ...]]:
    cursors = []
    for start in range(0, len(values), _AT_ONCE):
        part = values[start : start + _AT_ONCE]
        cursors.append(bare_cursor(connection))
        cursors[-1].execute(_over_values(tuple(names), len(part), query), list(chain.from_iterable(part)))
    return chain.from_iterable(cursor.fetchall() for cursor in cursors)


@lru_cache(maxsize=100)
def _over_values(names: tuple[str, ...], count: int, query: str) -> str:
    one = f"({', '.join([MARK] * len(names))})"
    return f"WITH wanted ({', '.join(names)}) AS (VALUES {', '.join([one] * count)}) {query}"
