"""Heartbeats of controllers among the watches: whose there are, until when each was alive, how often it beats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.model.missing import Missing

_LOOKED_AT = 100
"""Heartbeats at a time: the last one is nearly always within the marks."""

_BEATING = "host = :source AND device = '' AND source = 'controller' AND method = 'heartbeat'"


def sources(cursor: DBAPICursor) -> list[str]:
    """The sources that have a heartbeat: from host to next host by the index."""
    found: list[str] = []
    after = ""
    while True:
        cursor.execute("SELECT MIN(host) FROM watch WHERE host > :after", {"after": after})
        name = cursor.fetchall()[0][0]
        if name is None:
            return found
        after = str(name)
        cursor.execute(f"SELECT 1 FROM watch WHERE {_BEATING} LIMIT 1", {"source": after})  # noqa: S608 constants
        if cursor.fetchall():
            found.append(after)


def last(cursor: DBAPICursor, source: str, marks: Mapping[str, int]) -> int | Missing:
    """The last heartbeat of a source that stands within these marks, microseconds UTC."""
    statement = f"""SELECT until_us, writer, number FROM watch WHERE {_BEATING}
        ORDER BY since_us DESC, writer, number LIMIT {_LOOKED_AT} OFFSET :offset"""  # noqa: S608 constants
    for offset in count(0, _LOOKED_AT):
        cursor.execute(statement, {"source": source, "offset": offset})
        rows = cursor.fetchall()
        for until_us, writer, number in rows:
            if number <= marks.get(writer, 0):
                return int(until_us)
        if len(rows) < _LOOKED_AT:
            break
    return Missing("no heartbeat yet")


def first(cursor: DBAPICursor, source: str) -> int:
    """The first heartbeat of a source that has any, microseconds UTC."""
    statement = f"SELECT MIN(since_us) FROM watch WHERE {_BEATING}"  # noqa: S608 constants
    cursor.execute(statement, {"source": source})
    return int(cursor.fetchall()[0][0])


def last_before(cursor: DBAPICursor, source: str, until_us: int, marks: Mapping[str, int]) -> int | Missing:
    """The last heartbeat of a source that was not alive at a moment or after it, by what stands within these marks.

    Missing where it was, or had never been alive.
    """
    statement = f"""SELECT writer, number FROM watch WHERE {_BEATING} AND since_us >= :until_us
        ORDER BY since_us, writer, number LIMIT {_LOOKED_AT}"""  # noqa: S608 constants
    cursor.execute(statement, {"source": source, "until_us": until_us})
    if any(number <= marks.get(writer, 0) for writer, number in cursor.fetchall()):
        return Missing("it was alive")
    before = last(cursor, source, marks)
    return before if isinstance(before, Missing) or before < until_us else Missing("it was alive")


def silences(
    cursor: DBAPICursor, source: str, parts: Sequence[tuple[int, int, Mapping[str, int]]]
) -> Iterator[tuple[int, Mapping[str, int]]]:
    """When a source fell silent for one or more final parts on end, and the marks beyond which evidence is late.

    A source that retired is silent in all parts since: that is one silence, and not one for each.

    Args:
        cursor, source: who is asked about.
        parts: start, end and marks of final hours, latest first.
    """
    first_us = first(cursor, source)
    found: list[tuple[int, Mapping[str, int]]] = []
    for since_us, until_us, marks in parts:
        if until_us <= first_us:
            break
        before = last_before(cursor, source, until_us, marks)
        if isinstance(before, Missing):
            yield from found
            found = []
        else:
            found = [(max(before, since_us), marks)]
    yield from found


def interval_us(cursor: DBAPICursor, source: str) -> int:
    """How often a source said that it beats, last: microseconds; 0 where it said nothing."""
    statement = f"SELECT interval_ms FROM watch WHERE {_BEATING} ORDER BY since_us DESC LIMIT 1"  # noqa: S608
    cursor.execute(statement, {"source": source})
    found = cursor.fetchall()
    return int(found[0][0]) * 1000 if found else 0
