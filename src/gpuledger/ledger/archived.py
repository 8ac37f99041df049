"""What the ledger still knows of the rows that left it: until when time is closed for good, and which numbers are gone.

In: the connection of an open ledger. Out: moments and numbers, out of the rows of the archive, which are few.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.ledger.chain import Cell
from gpuledger.ledger.codec import Codec
from gpuledger.ledger.engine import MARK, bare_cursor
from gpuledger.ledger.kinds import KINDS
from gpuledger.ledger.schema import ARCHIVE, LINK
from gpuledger.model.moments import iso
from gpuledger.model.problem import Problem
from gpuledger.model.rows import DriverRecord, Row, Sighting

if TYPE_CHECKING:
    from gpuledger.ledger.store import Ledger

LAID = "archive_laid_under"
"""In a connection's notes: of how many rows of the archive the files lie under its tables (:mod:`.laying`)."""


_ENDS: dict[type[Row], str] = {DriverRecord: "ended_at_us", Sighting: "until_us"}
"""Evidence of processes that leaves, and the column that says when it ends."""


def is_laid(connection: sa.Connection) -> bool:
    """Whether the archived rows lie under the tables of this connection: all of them, also what left meanwhile."""
    laid = connection.info.get(LAID, 0)
    if not laid:
        return False
    cursor = bare_cursor(connection)
    cursor.execute(f"SELECT COUNT(*) FROM {ARCHIVE.name}")  # noqa: S608 the schema's own name
    ((count,),) = cursor.fetchall()
    return bool(count == laid)


def archived_until(ledger: Ledger) -> int:
    """Hours before this are closed for good, for their evidence left; 0 where none did, or where all lies under."""
    with ledger.mapped():
        return 0 if is_laid(ledger.connection) else bound(bare_cursor(ledger.connection))


def bound(cursor: DBAPICursor) -> int:
    """As :func:`archived_until`, of a ledger that is written to: nothing lies under it."""
    cursor.execute(f"SELECT MAX(before_us) FROM {ARCHIVE.name}")  # noqa: S608 the schema's own name
    ((before_us,),) = cursor.fetchall()
    return int(before_us or 0)


def edges(connection: sa.Connection, kinds: Collection[str], side: str) -> list[int]:
    """Where what left of these kinds ``starts``, or ``ends``."""
    if is_laid(connection) or not kinds:
        return []
    cursor = bare_cursor(connection)
    marks = ", ".join([MARK] * len(kinds))
    edge = "MIN(first_us)" if side == "starts" else "MAX(last_us)"
    cursor.execute(f"SELECT {edge} FROM {ARCHIVE.name} WHERE rows_of IN ({marks})", tuple(kinds))  # noqa: S608 the schema's own names
    return [int(found) for (found,) in cursor.fetchall() if found is not None]


def numbers(connection: sa.Connection) -> dict[str, tuple[int, int, int]]:
    """By writer the lowest and highest number that left, and how many; nothing where all of them lie under."""
    found: dict[str, tuple[int, int, int]] = {}
    if is_laid(connection):
        return found
    cursor = bare_cursor(connection)
    cursor.execute(f"SELECT writers FROM {ARCHIVE.name}")  # noqa: S608 the schema's own name
    for (text,) in cursor.fetchall():
        for writer, (low, high, count) in _writers(text).items():
            before = found.get(writer, (low, high, 0))
            found[writer] = (min(low, before[0]), max(high, before[1]), count + before[2])
    return found


def still_here(connection: sa.Connection) -> int:
    """How many rows stand in the tables though they left: a copy that was made before they did has them still."""
    cursor, found = bare_cursor(connection), 0
    for writer, (_, _, left) in numbers(connection).items():
        cursor.execute(f"SELECT MAX(last_number) FROM {LINK.name} WHERE writer = {MARK}", (writer,))  # noqa: S608 the schema's own names
        ((last,),) = cursor.fetchall()
        here = 0
        for kind in KINDS:
            cursor.execute(f"SELECT COUNT(*) FROM {kind.table.name} WHERE writer = {MARK}", (writer,))  # noqa: S608 the schema's own names
            here += int(cursor.fetchall()[0][0])
        found += max(0, here + left - int(last or 0))
    return found


def _writers(text: object) -> dict[str, tuple[int, int, int]]:
    """What a row of the archive says of its writers; nothing where it cannot be read: its own hash tells that."""
    try:
        document = json.loads(str(text))
        return {str(writer): (int(low), int(high), int(count)) for writer, (low, high, count) in document.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def may_hold(writers: str, writer: str, number: int) -> bool:
    """Whether a number of a chain lies between those that left with a row of the archive."""
    low, high, _ = _writers(writers).get(writer, (1, 0, 0))
    return low <= number <= high


def told_in_time(
    cursor: DBAPICursor, codec: Codec, cells: Sequence[tuple[Cell, ...]]
) -> tuple[Sequence[int], list[Problem]]:
    """Which rows of one kind, by their places, do not end before what is archived, and what to say of the others.

    Of those nobody can tell here whether they are there: they are not added, and so nothing is counted twice.

    Args:
        cursor: of the transaction that would add them.
        codec: of the kind.
        cells: their columns after writer and number.
    """
    name = _ENDS.get(codec.kind.row)
    if name is None or not cells or not (before_us := bound(cursor)):
        return range(len(cells)), []
    place = codec.columns.index(name) - 2
    kept = [index for index, row in enumerate(cells) if int(row[place] or 0) >= before_us]
    count = len(cells) - len(kept)
    if not count:
        return kept, []
    table = codec.kind.table.name
    message = f"{count} of {table} end before {iso(before_us)}, and the evidence of that time is archived: not added"
    return kept, [Problem(code="archived", message=f"{message}; they may be there", where=table)]
