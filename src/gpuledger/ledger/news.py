"""What is new of workloads, heartbeats, corrections and policies beyond the marks until which somebody knows a ledger.

In: the connection of an open ledger, and the last number of each writer, then and now. Out: :class:`News`. One
statement, however many there are: on a server each is a journey there and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from gpuledger.ledger.engine import MARK, bare_cursor
from gpuledger.model.missing import Missing

_WRITERS_AT_ONCE = 50  # five parts of a statement each: SQLite takes 500
_BEYOND = f"WHERE writer = {MARK} AND number > {MARK}"
_OF_ONE_WRITER = f"""SELECT 'event' AS kind, workload AS name, MIN(at_us) AS at_us FROM workload_event {_BEYOND}
    GROUP BY workload
UNION ALL SELECT DISTINCT 'hold', workload, 0 FROM hold {_BEYOND}
UNION ALL SELECT 'beat', host, MAX(until_us) FROM watch {_BEYOND}
    AND device = '' AND source = 'controller' AND method = 'heartbeat' GROUP BY host
UNION ALL SELECT 'correction', '', 0 WHERE EXISTS (SELECT 1 FROM usage_correction {_BEYOND})
UNION ALL SELECT 'policy', '', 0 WHERE EXISTS (SELECT 1 FROM policy {_BEYOND})"""  # noqa: S608 constants
_PARTS = 5
NO_EVENT = Missing("no event is new")


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What came between two sets of marks. Rows that came after them may be among it, and will be told again.

    Args:
        seen: the last number of each writer until which all was known.
        marks: the last numbers until which this tells.
        workloads: those with new events or holds.
        earliest_us: the moment of the earliest new event, microseconds UTC.
        beats: the last new heartbeat of each source, microseconds UTC.
        is_corrected: whether any correction is new.
        has_policy: whether any policy is new.
    """

    seen: Mapping[str, int]
    marks: Mapping[str, int]
    workloads: frozenset[str]
    earliest_us: int | Missing
    beats: Mapping[str, int]
    is_corrected: bool
    has_policy: bool

    def can_change(self, before_us: int) -> bool:
        """Whether time before a moment may count otherwise now: by a late event, or by a correction."""
        return self.is_corrected or (not isinstance(self.earliest_us, Missing) and self.earliest_us < before_us)


def news(connection: sa.Connection, seen: Mapping[str, int], marks: Mapping[str, int]) -> News:
    """What came between ``seen`` and ``marks``, both the last number of each writer."""
    moved = [(writer, seen.get(writer, 0)) for writer, number in marks.items() if number != seen.get(writer, 0)]
    found: dict[str, dict[str, list[int]]] = {}
    cursor = bare_cursor(connection)
    for start in range(0, len(moved), _WRITERS_AT_ONCE):
        part = moved[start : start + _WRITERS_AT_ONCE]
        cursor.execute(
            " UNION ALL ".join([_OF_ONE_WRITER] * len(part)), [cell for mark in part for cell in mark * _PARTS]
        )
        for kind, name, at_us in cursor.fetchall():
            found.setdefault(str(kind), {}).setdefault(str(name), []).append(int(at_us))
    events = found.get("event", {})
    return News(
        seen=dict(seen),
        marks=dict(marks),
        workloads=frozenset(events) | frozenset(found.get("hold", ())),
        earliest_us=min((min(moments) for moments in events.values()), default=NO_EVENT),
        beats={source: max(moments) for source, moments in found.get("beat", {}).items()},
        is_corrected="correction" in found,
        has_policy="policy" in found,
    )
