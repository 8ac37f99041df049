"""What the ledger knows of who holds capacity at a moment: names, claims, expected ends.

In: the connection of an open ledger. Out: rows and names. One look over all workloads goes from name to next name by
the index; everything else costs what it is asked about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import sqlalchemy as sa

from gpuledger.ledger.engine import MARK, bare_cursor, together
from gpuledger.ledger.workloads import ask_claims, ask_events, by_workload, last_of_each
from gpuledger.model.lifecycle import HOLDING
from gpuledger.model.workload_rows import Hold, WorkloadEvent

_AT_ONCE = 200  # as in appending: more costs a longer statement and saves nothing
_HOLDS = "('" + "', '".join(sorted(HOLDING)) + "')"

# From name to next name by the index, and of each the last event: nothing else of history is read.
_LIVE = f"""
WITH RECURSIVE name (workload) AS (
    SELECT MIN(workload) FROM workload_event
    UNION ALL
    SELECT (SELECT MIN(e.workload) FROM workload_event AS e WHERE e.workload > name.workload) FROM name
    WHERE name.workload IS NOT NULL
)
SELECT workload FROM name WHERE workload IS NOT NULL AND (
    SELECT state FROM workload_event AS e WHERE e.workload = name.workload AND e.at_us <= {MARK}
    ORDER BY e.at_us DESC, e.sequence DESC LIMIT 1
) IN {_HOLDS}"""  # noqa: S608 constants

_MOVED = f"SELECT DISTINCT workload FROM workload_event WHERE at_us > {MARK} AND at_us <= {MARK}"  # noqa: S608 constants
_ADMITTED = f"SELECT DISTINCT workload FROM hold WHERE at_us > {MARK} AND at_us <= {MARK} AND expires_at_us > {MARK}"  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What says what workloads hold; each of these but the texts is by workload.

    Args:
        events: those since each one's last ``provisioning``, in the order of (at, sequence).
        claims: its last hold row.
        ends: when it said so, and the end that it expects; microseconds UTC.
        texts: JSON of the identity texts of these events' subjects, by their keys; without those that were forgotten.
    """

    events: Mapping[str, list[WorkloadEvent]]
    claims: Mapping[str, Hold]
    ends: Mapping[str, tuple[int, int]]
    texts: Mapping[str, str]


def holding_workloads(connection: sa.Connection, at_us: int, *, until_us: int, longest_us: int) -> set[str]:
    """Workloads that may hold capacity at a moment: by their last event, or by a hold that has not lapsed.

    Args:
        connection: of the ledger.
        at_us: the moment.
        until_us: those that something happens to between it and this one are named too.
        longest_us: how long an unconfirmed hold can last.
    """
    cursor = bare_cursor(connection)
    found: set[str] = set()
    for query, values in (
        (_LIVE, (at_us,)),
        (_MOVED, (at_us, until_us)),
        (_ADMITTED, (at_us - longest_us, until_us, at_us)),
    ):
        cursor.execute(query, values)
        found.update(str(workload) for (workload,) in cursor.fetchall())
    return found


def expected_ends(connection: sa.Connection, workloads: Collection[str]) -> dict[str, tuple[int, int]]:
    """When those of these workloads that said so expect to be done: when it was said, and the end; microseconds UTC.

    What was said at an admission holds for it alone: not after a stop, nor once it was admitted again.
    """
    return {workload: (at_us, until_us) for workload, at_us, until_us in _ask_ends(connection, workloads)}


def standing(connection: sa.Connection, since_us: Mapping[str, int]) -> Standing:
    """All that says what workloads hold: three statements, and one round trip to the store.

    Args:
        connection: of the ledger.
        since_us: workload to the moment from which on it is asked about.
    """
    texts: dict[str, str] = {}
    with together(connection):
        events, holds = ask_events(connection, since_us, texts=texts), ask_claims(connection, since_us)
        ends = _ask_ends(connection, since_us)
        return Standing(
            events=by_workload(events),
            claims=last_of_each(holds),
            ends={workload: (at_us, until_us) for workload, at_us, until_us in ends},
            texts=texts,
        )


def _ask_ends(connection: sa.Connection, workloads: Collection[str]) -> Iterator[tuple[str, int, int]]:
    """Asked at once, read when somebody looks.

    Values out of indexes, and no join: for one PostgreSQL reads the whole of a table that it has not analysed.
    """
    cursors = []
    names = list(workloads)
    for start in range(0, len(names), _AT_ONCE):
        part = names[start : start + _AT_ONCE]
        cursors.append(bare_cursor(connection))
        cursors[-1].execute(
            f"""SELECT x.workload, x.at_us, x.until_us FROM expected_end AS x
            WHERE x.workload IN ({", ".join([MARK] * len(part))})
            AND x.sequence >= COALESCE((
                SELECT MAX(e.sequence) FROM workload_event AS e
                WHERE e.workload = x.workload AND e.state IN ('stopped', 'failed')), 0)
            AND x.sequence >= COALESCE((
                SELECT MAX(h.sequence) FROM hold AS h
                WHERE h.workload = x.workload AND h.expires_at_us IS NOT NULL), 0)
            ORDER BY x.workload, x.sequence""",  # noqa: S608 constants; values are bound
            part,
        )
    rows = chain.from_iterable(cursor.fetchall() for cursor in cursors)
    return ((str(workload), int(at_us), int(until_us)) for workload, at_us, until_us in rows)
