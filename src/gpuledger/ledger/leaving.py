"""Which rows of evidence may leave the ledger, and which stay: chosen once, in relations of the connection.

In: a bound, a whole UTC month. Out: for each kind the rows that nothing later than the bound can need, by month.
What an hour at or after the bound comes to is the same without them, and so is every recorded hour, for records stay.

Devices, watches and identities never leave: ``usage`` and ``blind`` read the first two for any month, names are looked
up by the third, and ``forget`` must find them. Placements stay: records name them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import sqlalchemy as sa

from gpuledger.ledger.engine import MARK, bare_cursor, engine_of
from gpuledger.ledger.kinds import KIND_OF
from gpuledger.ledger.store import Ledger
from gpuledger.model.moments import DAY_US, HOUR_US
from gpuledger.model.rows import DriverRecord, Row, Sighting
from gpuledger.model.workload_rows import ExpectedEnd, Hold, WorkloadEvent

LEAVE: tuple[type[Row], ...] = (DriverRecord, Sighting, WorkloadEvent, Hold, ExpectedEnd)
"""The kinds that leave."""

_MARGIN_US = 4 * HOUR_US
"""Rows that end so long before the bound can leave: deriving an hour looks an hour back, and an hour more for the looks
around a row that begins there."""

_NEAR_US = 2 * HOUR_US
"""What begins before and ends after this long before the bound lives across it: all of its pid stays."""

_RING_ROWS = 128
"""Finished rows that a driver may still list (FACTS): an agent that starts knows them again by these rows."""

_DAY_US = DAY_US + HOUR_US
"""An agent that starts reads back the last day of looks before its last one."""

_STARTLESS = "('nvidia-smi', 'import')"
_STARTS = "CASE WHEN context_started_at_us < since_us THEN context_started_at_us ELSE since_us END"

_PAIRS = (
    ("no-start", "driver_record", f"started_at_us IS NULL OR method IN {_STARTLESS}"),
    ("no-start", "sighting", f"method IN {_STARTLESS} OR (start_ticks = 0 AND context_started_at_us IS NULL)"),
    ("living", "driver_record", "ended_at_us >= :near AND ended_at_us - context_ms * 1000 < :near"),
    ("living", "sighting", f"until_us >= :near AND {_STARTS} < :near"),
    (
        "living",
        "sighting",
        "gone_at_us IS NULL AND until_us >= (SELECT h.since_us FROM staying_host AS h WHERE h.host = p.host)",
    ),
)
"""Pids of which every row stays: why, and by which rows.

Where neither the driver nor /proc says which context it is, only all rows of the pid together do.
"""

_PROCESS_RULES: dict[type[Row], tuple[tuple[str, str], ...]] = {
    DriverRecord: (
        ("settles", "settled.pid IS NOT NULL"),
        ("ring", "newest.writer IS NOT NULL"),
    ),
    Sighting: (
        ("once", "once.pid IS NOT NULL"),
        ("last-looks", "t.until_us >= host.since_us"),
    ),
}
_PAIR = "LEFT JOIN staying_pair AS p ON p.host = t.host AND p.pid = t.pid"
_PROCESS_JOINS: dict[type[Row], str] = {
    # usage joins it to hours that were recorded while its context was open
    DriverRecord: f"""{_PAIR}
        LEFT JOIN staying_settled AS settled ON settled.host = t.host AND settled.device = t.device
            AND settled.pid = t.pid AND settled.natural_key = t.natural_key
        LEFT JOIN staying_row AS newest ON newest.writer = t.writer AND newest.number = t.number""",
    Sighting: f"""{_PAIR}
        LEFT JOIN staying_once AS once ON once.host = t.host AND once.device = t.device AND once.pid = t.pid
            AND once.boot_id = t.boot_id AND once.start_ticks = t.start_ticks
        LEFT JOIN staying_host AS host ON host.host = t.host""",
}

_OPEN = (
    ("ended_workload", "o.at_us >= :before"),
    (
        "ended_workload",
        """EXISTS (SELECT 1 FROM workload_event AS e
            WHERE e.workload = o.workload AND e.sequence = o.last AND e.state NOT IN ('stopped', 'failed'))""",
    ),
    ("hold", "o.at_us >= :before OR o.expires_at_us >= :before"),
    ("expected_end", "o.at_us >= :before"),
    ("hold", "NOT EXISTS (SELECT 1 FROM ended_workload AS d WHERE d.workload = o.workload)"),
)
"""By which rows a workload is one that has not ended, or not before the bound."""

# The last event by (at, sequence) as one text, as the rule of metering finds it.
_ENDED = """
INSERT INTO ended_workload
SELECT e.workload, MAX(e.at_us),
    CAST(SUBSTR(MAX(CAST(e.at_us + 4000000000000000000 AS VARCHAR) || CAST(e.sequence + 10000000000 AS VARCHAR)), 20)
        AS BIGINT) - 10000000000,
    MAX(e.sequence),
    (SELECT MAX(h.sequence) FROM hold AS h WHERE h.workload = e.workload)
FROM workload_event AS e GROUP BY e.workload"""

_RING = f"""
INSERT INTO staying_row SELECT writer, number FROM driver_record WHERE host = {MARK} AND device = {MARK}
ORDER BY writer DESC, number DESC LIMIT {MARK}"""  # noqa: S608 a constant

_ONCE = """
INSERT INTO staying_once SELECT host, device, pid, boot_id, start_ticks FROM sighting
WHERE context_started_at_us IS NULL GROUP BY host, device, pid, boot_id, start_ticks
HAVING MIN(until_us - since_us) = 0"""

REASONS = {
    "late": "end within four hours of the bound: the next hour is derived with them",
    "living": "belong to processes that lived across the bound, or at the last looks",
    "no-start": "are of pids known without start times, whose rows decide each other",
    "settles": "settle hours that were recorded while their context was open",
    "ring": "are the newest that the driver may still list",
    "once": "are of contexts that one look saw and the next one missed: usage counts them",
    "last-looks": "are the last day of looks: an agent that starts reads them back",
    "open": "are of workloads that have not ended, or not before the bound",
    "unplaced": "are of workloads that run nobody knows where: they are counted when a placement arrives",
    "last-event": "are the last of each workload: they say that it ended, and what follows is counted on from them",
}
"""Why rows stay: a clause for each, after their number and kind."""

_RELATIONS = {
    "staying_pair": "host TEXT NOT NULL, pid BIGINT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (host, pid)",
    "staying_settled": "host TEXT NOT NULL, device TEXT NOT NULL, pid BIGINT NOT NULL, natural_key TEXT NOT NULL, "
    "PRIMARY KEY (host, device, pid, natural_key)",
    "staying_row": "writer TEXT NOT NULL, number BIGINT NOT NULL, PRIMARY KEY (writer, number)",
    "staying_once": "host TEXT NOT NULL, device TEXT NOT NULL, pid BIGINT NOT NULL, boot_id TEXT NOT NULL, "
    "start_ticks BIGINT NOT NULL, PRIMARY KEY (host, device, pid, boot_id, start_ticks)",
    "staying_host": "host TEXT NOT NULL PRIMARY KEY, since_us BIGINT",
    "staying_workload": "workload TEXT NOT NULL PRIMARY KEY, reason TEXT NOT NULL",
    "ended_workload": "workload TEXT NOT NULL PRIMARY KEY, at_us BIGINT, last BIGINT, newest BIGINT, hold BIGINT",
    **{f"leaving_{KIND_OF[kind].table.name}": "writer TEXT NOT NULL, number BIGINT NOT NULL, ends_us BIGINT NOT NULL, "
       "month TEXT NOT NULL, PRIMARY KEY (writer, number)" for kind in LEAVE},
    "leaving_month": "month TEXT NOT NULL PRIMARY KEY, since_us BIGINT, until_us BIGINT",
}  # fmt: skip


def relation_of(kind: type[Row]) -> str:
    """The relation that names the rows of a kind that leave."""
    return f"leaving_{KIND_OF[kind].table.name}"


class Leaving:
    """What leaves before a bound, chosen when it is made.

    Args:
        ledger: open in either mode; the relations belong to its connection.
        before_us: the bound, the start of a UTC month.
        months: the months before it, oldest first: name, start, end.
        unplaced: workloads that run nobody knows where.
    """

    def __init__(
        self, ledger: Ledger, before_us: int, months: Collection[tuple[str, int, int]], unplaced: Collection[str]
    ) -> None:
        self._ledger = ledger
        self._before_us = before_us
        self.staying: dict[tuple[type[Row], str], int] = {}
        with ledger.mapped():
            self._cursor = bare_cursor(ledger.connection)
            self._make_relations()
            fill = f"INSERT INTO leaving_month VALUES ({MARK}, {MARK}, {MARK})"  # noqa: S608 a constant
            self._cursor.executemany(fill, list(months))
            self._choose_processes()
            self._choose_workloads(unplaced)

    def _make_relations(self) -> None:
        engine = engine_of(self._ledger.connection)
        engine.make_relations(self._ledger.connection, _RELATIONS)
        for name in _RELATIONS:
            self._cursor.execute(f"DELETE FROM {name}")  # noqa: S608 a name from above

    # Processes

    def _choose_processes(self) -> None:
        near = {"near": self._before_us - _NEAR_US}
        self._cursor.execute(
            "INSERT INTO staying_host SELECT host, MAX(until_us) - :back FROM sighting GROUP BY host", {"back": _DAY_US}
        )
        for reason, table, condition in _PAIRS:
            self._cursor.execute(
                f"INSERT INTO staying_pair SELECT DISTINCT p.host, p.pid, '{reason}' FROM {table} AS p "  # noqa: S608 constants
                f"WHERE ({condition}) AND NOT EXISTS "
                "(SELECT 1 FROM staying_pair AS s WHERE s.host = p.host AND s.pid = p.pid)",
                near if ":near" in condition else (),
            )
        self._choose_settled()
        self._cursor.execute("SELECT DISTINCT host, device FROM driver_record")
        for host, device in self._cursor.fetchall():
            self._cursor.execute(_RING, (host, device, _RING_ROWS))
        self._cursor.execute(_ONCE)
        for kind, rules in _PROCESS_RULES.items():
            pids = [("no-start", "p.reason = 'no-start'"), ("living", "p.reason = 'living'")]
            late = ("late", f"{ends_of(kind)} >= {self._before_us - _MARGIN_US}")
            self._choose(kind, _PROCESS_JOINS[kind], [late, *pids, *rules])

    def _choose_settled(self) -> None:
        """The driver's rows of contexts that were open when an hour of them was recorded."""
        engine = engine_of(self._ledger.connection)
        at = f"{engine.POSITION}(context, '@')"
        self._cursor.execute(
            "INSERT INTO staying_settled SELECT DISTINCT host, device, "  # noqa: S608 words of the engine
            f"CAST(substr(context, 1, {at} - 1) AS BIGINT), 'start:' || substr(context, {at} + 1) "
            f"FROM {engine.OPEN_RECORDS} WHERE context LIKE '%@%' AND meter = 'gpu.context'"
        )

    # Workloads

    def _choose_workloads(self, unplaced: Collection[str]) -> None:
        unknown = f"INSERT INTO staying_workload VALUES ({MARK}, 'unplaced')"  # noqa: S608 a constant
        self._cursor.executemany(unknown, [(name,) for name in sorted(set(unplaced))])
        self._cursor.execute(_ENDED)
        for table, condition in _OPEN:
            self._cursor.execute(
                f"INSERT INTO staying_workload SELECT DISTINCT o.workload, 'open' FROM {table} AS o "  # noqa: S608 constants
                f"WHERE ({condition}) AND NOT EXISTS "
                "(SELECT 1 FROM staying_workload AS s WHERE s.workload = o.workload)",
                {"before": self._before_us} if ":before" in condition else (),
            )
        last = {
            WorkloadEvent: "t.sequence = d.last OR t.sequence = d.newest",
            Hold: "t.sequence = d.hold",
            ExpectedEnd: "d.workload IS NULL",
        }
        joins = (
            "LEFT JOIN staying_workload AS p ON p.workload = t.workload "
            "LEFT JOIN ended_workload AS d ON d.workload = t.workload"
        )
        for kind, is_last in last.items():
            rules = [("open", "p.reason = 'open'"), ("unplaced", "p.reason = 'unplaced'"), ("last-event", is_last)]
            self._choose(kind, joins, rules)

    # Both

    def _choose(self, kind: type[Row], joins: str, rules: list[tuple[str, str]]) -> None:
        """Put the rows of a kind that end before the bound where they belong: to those that leave, or counted."""
        table, ends = KIND_OF[kind].table.name, ends_of(kind)
        why = " ".join(f"WHEN {condition} THEN '{reason}'" for reason, condition in rules)
        # an expression of its own, evaluated once: the two statements below ask it of every row
        judged = (
            f"SELECT t.writer, t.number, {ends} AS ends_us, CASE {why} ELSE '' END AS reason "  # noqa: S608 names are the schema's own
            f"FROM {table} AS t {joins} WHERE {ends} < {self._before_us}"
        )
        self._cursor.execute(
            f"INSERT INTO {relation_of(kind)} SELECT j.writer, j.number, j.ends_us, m.month FROM ({judged}) AS j "  # noqa: S608 as above
            "JOIN leaving_month AS m ON j.ends_us >= m.since_us AND j.ends_us < m.until_us WHERE j.reason = ''"
        )
        self._cursor.execute(f"SELECT reason, COUNT(*) FROM ({judged}) AS j WHERE reason <> '' GROUP BY reason")  # noqa: S608 as above
        for reason, count in self._cursor.fetchall():
            self.staying[kind, str(reason)] = int(count)

    def months(self, kind: type[Row]) -> list[str]:
        """The months in which rows of a kind that leave end, oldest first."""
        with self._ledger.mapped():
            self._cursor.execute(f"SELECT DISTINCT month FROM {relation_of(kind)} ORDER BY month")  # noqa: S608 a name from above
            return [str(month) for (month,) in self._cursor.fetchall()]

    def rows(self, kind: type[Row], month: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a kind and month with all columns of their table, in the order of writer and number."""
        table = KIND_OF[kind].table
        leaving = sa.table(relation_of(kind), sa.column("writer"), sa.column("number"), sa.column("month"))
        named = sa.and_(leaving.c.writer == table.c.writer, leaving.c.number == table.c.number)
        statement = (
            sa.select(*table.columns)
            .select_from(leaving.join(table, named))
            .where(leaving.c.month == month)
            .order_by(table.c.writer, table.c.number)
        )
        with self._ledger.mapped():
            yield from engine_of(self._ledger.connection).stream(self._ledger.connection, statement, {}, size)

    def span(self, kind: type[Row], month: str) -> tuple[int, int]:
        """The earliest start and the latest end of them."""
        found = KIND_OF[kind]
        table = found.table
        leaving = sa.table(relation_of(kind), sa.column("writer"), sa.column("number"), sa.column("month"))
        named = sa.and_(leaving.c.writer == table.c.writer, leaving.c.number == table.c.number)
        statement = (
            sa.select(sa.func.min(found.starts), sa.func.max(found.ends))
            .select_from(leaving.join(table, named))
            .where(leaving.c.month == month)
        )
        with self._ledger.mapped():
            first_us, last_us = self._ledger.connection.execute(statement).one()
        return int(first_us), int(last_us)


def ends_of(kind: type[Row]) -> str:
    """The column that says when a row of a kind ends, of a table called ``t``."""
    column = KIND_OF[kind].ends
    assert isinstance(column, sa.Column)
    return f"t.{column.name}"
