"""What the ledger knows of who holds capacity at a moment: names, claims, expected ends.

In: the connection of an open ledger. Out: rows and names. One look over all workloads goes from name to next name by
the index; everything else costs what it is asked about.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from gpuledger.ledger.engine import MARK, bare_cursor
from gpuledger.model.lifecycle import HOLDING

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
    cursor = bare_cursor(connection)
    found: dict[str, tuple[int, int]] = {}
    names = list(workloads)
    for start in range(0, len(names), _AT_ONCE):
        part = names[start : start + _AT_ONCE]
        cursor.execute(
            f"""WITH wanted (workload) AS (VALUES {", ".join([f"({MARK})"] * len(part))})
            SELECT x.workload, x.at_us, x.until_us FROM wanted CROSS JOIN expected_end AS x
            WHERE x.workload = wanted.workload AND NOT EXISTS (
                SELECT 1 FROM workload_event AS e WHERE e.workload = x.workload AND e.sequence > x.sequence
                AND e.state IN ('stopped', 'failed')
            ) AND NOT EXISTS (
                SELECT 1 FROM hold AS h WHERE h.workload = x.workload AND h.sequence > x.sequence
                AND h.expires_at_us IS NOT NULL
            ) ORDER BY x.workload, x.sequence""",  # noqa: S608 constants; values are bound
            part,
        )
        found.update((str(workload), (int(at_us), int(until_us))) for workload, at_us, until_us in cursor.fetchall())
    return found
