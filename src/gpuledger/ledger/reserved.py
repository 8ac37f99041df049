"""Reads reserved time: fills the relations of the metering rule and runs it, inside one snapshot.

In: marks, hours, and which workloads are asked for. Out: :class:`~gpuledger.model.reserved.ReservedTime`, and
the records that stand against it. The rule itself is ``metering/reserved.sql``. Temporary tables hold the
relations: they belong to the connection, and nothing of the ledger changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, cast

from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.ledger.codec import CODECS
from gpuledger.ledger.engine import bare_cursor, engine_of
from gpuledger.ledger.store import Ledger
from gpuledger.model.meters import RESERVED_METERS
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.reserved import RESERVED, ReservedTime
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent

_RELATIONS = {
    "metered_workload": "workload TEXT PRIMARY KEY, from_us BIGINT",
    "metered_mark": "writer TEXT PRIMARY KEY, number BIGINT",
    "metered_seen": "writer TEXT PRIMARY KEY, number BIGINT",
    "metered_hour": "start_us INTEGER PRIMARY KEY, end_us BIGINT",
    "metered_beat": "source TEXT PRIMARY KEY, until_us BIGINT",
    "metered_subject": "subject TEXT PRIMARY KEY, workload TEXT, from_us BIGINT",
}
_FETCHED = 10_000

_WANT = """
ON CONFLICT (workload) DO UPDATE SET from_us = excluded.from_us WHERE excluded.from_us < metered_workload.from_us"""

# Declared time that nothing ended was counted to its last event, so what follows adds time from there on.
_UNSEEN = f"""
INSERT INTO metered_workload (workload, from_us)
SELECT e.workload, MIN(COALESCE(p.at_us, e.at_us) - COALESCE(p.at_us, e.at_us) % {HOUR_US})
FROM metered_mark AS m
LEFT JOIN metered_seen AS s ON s.writer = m.writer
CROSS JOIN workload_event AS e
LEFT JOIN workload_event AS p ON p.workload = e.workload AND p.is_declared = 1 AND (p.at_us, p.sequence) = (
    SELECT b.at_us, b.sequence FROM workload_event AS b
    WHERE b.workload = e.workload AND (b.at_us < e.at_us OR (b.at_us = e.at_us AND b.sequence < e.sequence))
    ORDER BY b.at_us DESC, b.sequence DESC LIMIT 1
)
WHERE e.writer = m.writer AND e.number > COALESCE(s.number, 0) AND e.number <= m.number
GROUP BY e.workload {_WANT}"""  # noqa: S608 constants

# From name to next name by the index, and of each the last event before: a workload that is not running then, and
# of which nothing is told afterwards, has no time there.
_NAMES = """
WITH RECURSIVE name (workload) AS (
    SELECT MIN(workload) FROM workload_event
    UNION ALL
    SELECT (SELECT MIN(e.workload) FROM workload_event AS e WHERE e.workload > name.workload) FROM name
    WHERE name.workload IS NOT NULL
)"""

_LIVING = f"""
INSERT INTO metered_workload (workload, from_us)
{_NAMES}
SELECT workload, :from_us FROM name WHERE workload IS NOT NULL AND (
    SELECT state FROM workload_event AS e WHERE e.workload = name.workload AND e.at_us < :from_us
    ORDER BY e.at_us DESC, e.sequence DESC LIMIT 1
) = 'running' {_WANT}"""  # noqa: S608 constants

_MOVING = f"""
INSERT INTO metered_workload (workload, from_us)
SELECT DISTINCT workload, :from_us FROM workload_event WHERE at_us >= :from_us AND at_us < :until_us {_WANT}"""  # noqa: S608

_OF_SOURCE = f"""
INSERT INTO metered_workload (workload, from_us)
{_NAMES}
SELECT workload, :from_us FROM name WHERE workload IS NOT NULL AND (
    SELECT CASE WHEN state = 'running' THEN source END FROM workload_event AS e WHERE e.workload = name.workload
    ORDER BY e.at_us DESC, e.sequence DESC LIMIT 1
) = :source {_WANT}"""  # noqa: S608 constants

_SINCE_HEARD = """
UPDATE metered_workload SET from_us = :from_us WHERE from_us > :from_us AND EXISTS (
    SELECT 1 FROM workload_event AS e WHERE e.workload = metered_workload.workload AND e.source = :source)"""

_BEATING = "host = :source AND device = '' AND source = 'controller' AND method = 'heartbeat'"

_METERS = " UNION ALL ".join(f"SELECT '{meter.name}' AS meter" for meter in RESERVED_METERS)

_SUBJECTS = """
INSERT INTO metered_subject (subject, workload, from_us)
SELECT e.subject, MIN(e.workload), MIN(w.from_us)
FROM metered_workload AS w CROSS JOIN workload_event AS e CROSS JOIN metered_seen AS s
WHERE e.workload = w.workload AND s.writer = e.writer AND e.number <= s.number
GROUP BY e.subject"""


def _written(table: str, amount: str, number: str) -> str:
    return f"""
SELECT s.workload, r.meter, r.hour_us, r.host, r.device, r.subject, r.{amount}, {number}
FROM metered_subject AS s CROSS JOIN metered_hour AS h CROSS JOIN ({_METERS}) AS m CROSS JOIN {table} AS r
WHERE h.start_us >= s.from_us AND r.meter = m.meter AND r.hour_us = h.start_us AND r.subject = s.subject"""  # noqa: S608


_RECORDED = _written("usage_record", "quantity", "0") + f" AND r.context = '{RESERVED}'"
_CORRECTED = _written("usage_correction", "delta", "r.correction_number")


_ALL_SUBJECTS = """
INSERT INTO metered_subject (subject, workload, from_us)
SELECT subject, MIN(workload), 0 FROM workload_event GROUP BY subject"""


def _all_written(table: str, amount: str, number: str) -> str:
    return f"""
SELECT COALESCE(s.workload, ''), r.meter, r.hour_us, r.host, r.device, r.subject, r.{amount}, {number}
FROM metered_hour AS h CROSS JOIN ({_METERS}) AS m CROSS JOIN {table} AS r
LEFT JOIN metered_subject AS s ON s.subject = r.subject
WHERE r.meter = m.meter AND r.hour_us = h.start_us"""  # noqa: S608 constants


_ALL_RECORDED = _all_written("usage_record", "quantity", "0") + f" AND r.context = '{RESERVED}'"
_ALL_CORRECTED = _all_written("usage_correction", "delta", "r.correction_number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What stands in the ledger of one key: the record, or one correction of it.

    Args:
        workload: whose it is.
        meter, hour_us, host, device, subject: the key.
        amount: seconds, signed.
        number: of the correction; 0 for the record.
    """

    workload: str
    meter: str
    hour_us: int
    host: str
    device: str
    subject: str
    amount: int
    number: int


@cache
def rule() -> str:
    """The metering rule, as it stands in ``metering/reserved.sql``."""
    return files("gpuledger.metering").joinpath("reserved.sql").read_text(encoding="utf-8")


class Reading:
    """One reading of reserved time. Made by :func:`reading`; every read sees the ledger as it was at its start."""

    def __init__(self, ledger: Ledger, marks: Mapping[str, int]) -> None:
        self._connection = ledger.connection
        self._engine = engine_of(ledger.connection)
        self._cursor: DBAPICursor = bare_cursor(ledger.connection)
        self._marks = dict(marks)
        self._knows_subjects = False
        for name in _RELATIONS:
            self._cursor.execute(f"DELETE FROM {name}")  # noqa: S608 a name from above
        self._cursor.executemany("INSERT INTO metered_mark VALUES (?, ?)", sorted(marks.items()))
        self.beats = {source: self._beat(source, marks) for source in self._sources()}
        self._cursor.executemany(
            "INSERT INTO metered_beat VALUES (?, ?)",
            [(source, beat) for source, beat in self.beats.items() if not isinstance(beat, Missing)],
        )

    def _sources(self) -> list[str]:
        """The sources that have a heartbeat: from host to next host by the index."""
        found: list[str] = []
        after = ""
        while True:
            self._cursor.execute("SELECT MIN(host) FROM watch WHERE host > ?", (after,))
            name = self._cursor.fetchall()[0][0]
            if name is None:
                return found
            after = str(name)
            self._cursor.execute(f"SELECT 1 FROM watch WHERE {_BEATING} LIMIT 1", {"source": after})  # noqa: S608 constants
            if self._cursor.fetchall():
                found.append(after)

    def _beat(self, source: str, marks: Mapping[str, int]) -> int | Missing:
        """The last heartbeat of a source that stands within these marks."""
        statement = f"SELECT until_us, writer, number FROM watch WHERE {_BEATING} ORDER BY since_us DESC"  # noqa: S608
        for rows in self._engine.stream(self._connection, statement, {"source": source}, 100):
            for until_us, writer, number in rows:
                if number <= marks.get(writer, 0):
                    return int(until_us)
        return Missing("no heartbeat yet")

    def want_unseen(self, seen: Mapping[str, int]) -> None:
        """Ask for the workloads with events beyond these marks, each from the hour of the earliest one on."""
        self._see(seen)
        self._cursor.execute(_UNSEEN)

    def want_heard(self, seen: Mapping[str, int], *, until_us: int) -> None:
        """Ask for what is open of sources whose heartbeat came back, or came for the first time.

        The time after a last heartbeat was not counted. So what is asked for already is asked for from there on:
        a stop ends it too.

        Args:
            seen: the marks at which its heartbeats were looked at before.
            until_us: how far was looked.
        """
        for source, beat in self.beats.items():
            before = self._beat(source, seen)
            if isinstance(before, Missing):
                self._cursor.execute(_OF_SOURCE, {"source": source, "from_us": 0})
            elif before < until_us:
                span = {"source": source, "from_us": before - before % HOUR_US}
                self._cursor.execute(_SINCE_HEARD, span)
                if beat != before:
                    self._cursor.execute(_OF_SOURCE, span)

    def want_living(self, from_us: int, until_us: int) -> None:
        """Ask for every workload that can have time in [from, until), from there on."""
        span = {"from_us": from_us, "until_us": until_us}
        self._cursor.execute(_MOVING, span)
        self._cursor.execute(_LIVING, span)

    def want(self, workloads: Iterable[str], from_us: int) -> None:
        """Ask for these and no others."""
        self._cursor.execute("DELETE FROM metered_workload")
        named = [(workload, from_us) for workload in sorted(set(workloads))]
        self._cursor.executemany("INSERT INTO metered_workload VALUES (?, ?)", named)

    def forget_beats(self) -> None:
        """From here on time that nothing ends runs on, whether its source was heard or not."""
        self._cursor.execute("DELETE FROM metered_beat")

    def drop_from(self, until_us: int) -> None:
        """Ask no longer for workloads that are asked for from this moment on only."""
        self._cursor.execute("DELETE FROM metered_workload WHERE from_us >= ?", (until_us,))

    def first_hour(self) -> int | Missing:
        """The first hour that is asked for."""
        self._cursor.execute("SELECT MIN(from_us) FROM metered_workload")
        found = self._cursor.fetchall()[0][0]
        if found is None:
            return Missing("no workload is asked for")
        if found:
            return int(found)
        self._cursor.execute(
            "SELECT MIN(at_us) FROM workload_event AS e JOIN metered_workload AS w ON w.workload = e.workload"
        )
        earliest_us = int(self._cursor.fetchall()[0][0])
        return earliest_us - earliest_us % HOUR_US

    def times(self, hours: Iterable[tuple[int, int]], *, until_us: int) -> Iterator[ReservedTime]:
        """Reserved time of the workloads asked for.

        Args:
            hours: start and end of each hour, or of its beginning.
            until_us: where time that nothing ends is cut.
        """
        self._fill_hours(hours)
        self._engine.weigh(self._cursor, ("metered_workload", "metered_hour", "metered_mark", "metered_beat"))
        several: list[tuple[Any, ...]] = []
        for rows in self._engine.stream(self._connection, rule(), {"until_us": until_us}, _FETCHED):
            for row in rows:
                if row[7] > 1:
                    several.append(row)
                else:
                    yield _time(row, row[8:])
        for row in several:
            yield _time(row, (row[8], *self._around(row[0], row[1])))

    def _around(self, workload: str, hour_us: int) -> Iterator[str]:
        """The events of a workload in an hour, and the ones next to it on both sides."""
        statement = """
            SELECT writer, number, at_us FROM workload_event WHERE workload = ? AND at_us >= COALESCE(
                (SELECT MAX(at_us) FROM workload_event WHERE workload = ? AND at_us < ?), ?) ORDER BY at_us, sequence"""
        self._cursor.execute(statement, (workload, workload, hour_us, hour_us))
        for writer, number, at_us in self._cursor.fetchall():
            if number <= self._marks.get(writer, 0):
                yield f"event:{writer}/{number}"
                if at_us >= hour_us + HOUR_US:
                    return

    def written(self, hours: Iterable[tuple[int, int]], seen: Mapping[str, int]) -> list[Written]:
        """Records and corrections of whole hours, of the workloads asked for and known at these marks."""
        self._fill_hours(hours)
        self._see(seen)
        self._cursor.execute("DELETE FROM metered_subject")
        self._cursor.execute(_SUBJECTS)
        self._knows_subjects = False
        found: list[Written] = []
        for statement in (_RECORDED, _CORRECTED):
            self._cursor.execute(statement)
            names = Written.__slots__
            found += [Written(**dict(zip(names, row, strict=True))) for row in self._cursor.fetchall()]
        return found

    def written_of_all(self, hours: Iterable[tuple[int, int]]) -> list[Written]:
        """Records and corrections of whole hours, of whoever has any."""
        self._fill_hours(hours)
        if not self._knows_subjects:
            self._cursor.execute("DELETE FROM metered_subject")
            self._cursor.execute(_ALL_SUBJECTS)
            self._knows_subjects = True
        found: list[Written] = []
        for statement in (_ALL_RECORDED, _ALL_CORRECTED):
            self._cursor.execute(statement)
            found += [Written(**dict(zip(Written.__slots__, row, strict=True))) for row in self._cursor.fetchall()]
        return found

    def wanted(self) -> set[str]:
        """The workloads that are asked for."""
        self._cursor.execute("SELECT workload FROM metered_workload")
        return {str(workload) for (workload,) in self._cursor.fetchall()}

    def workloads_of(self, subject: str) -> list[str]:
        """The workloads whose events name a subject."""
        self._cursor.execute("SELECT DISTINCT workload FROM workload_event WHERE subject = ? ORDER BY 1", (subject,))
        return [str(workload) for (workload,) in self._cursor.fetchall()]

    def events(self, workload: str) -> list[WorkloadEvent]:
        """The events of a workload, in their order."""
        codec = CODECS[WorkloadEvent]
        statement = f"SELECT {', '.join(codec.fields)} FROM workload_event WHERE workload = ? ORDER BY at_us, sequence"  # noqa: S608
        self._cursor.execute(statement, (workload,))
        return cast("list[WorkloadEvent]", codec.decode(self._cursor.fetchall()))

    def interval_us(self, source: str) -> int:
        """How often a source said that it beats, last: microseconds; 0 where it said nothing."""
        statement = f"SELECT interval_ms FROM watch WHERE {_BEATING} ORDER BY since_us DESC LIMIT 1"  # noqa: S608
        self._cursor.execute(statement, {"source": source})
        found = self._cursor.fetchall()
        return int(found[0][0]) * 1000 if found else 0

    def placements(self, keys: Iterable[str]) -> dict[str, PlacementRow]:
        """What these placement keys stand for."""
        codec = CODECS[PlacementRow]
        columns = ", ".join(codec.fields)
        found: dict[str, PlacementRow] = {}
        for key in sorted(set(keys)):
            self._cursor.execute(f"SELECT {columns} FROM placement WHERE placement = ?", (key,))  # noqa: S608 the schema's own
            for row in codec.decode(self._cursor.fetchall()):
                found[key] = cast("PlacementRow", row)
        return found

    def events_after(self, workload: str, seen: Mapping[str, int]) -> tuple[str, ...]:
        """References of the events of a workload beyond these marks."""
        return tuple(
            event.ref
            for event in self.events(workload)
            if seen.get(event.writer, 0) < event.number <= self._marks.get(event.writer, 0)
        )

    def _see(self, seen: Mapping[str, int]) -> None:
        self._cursor.execute("DELETE FROM metered_seen")
        self._cursor.executemany("INSERT INTO metered_seen VALUES (?, ?)", sorted(seen.items()))

    def _fill_hours(self, hours: Iterable[tuple[int, int]]) -> None:
        self._cursor.execute("DELETE FROM metered_hour")
        self._cursor.executemany("INSERT INTO metered_hour VALUES (?, ?)", list(hours))


def _time(row: Sequence[Any], events: Iterable[str | None]) -> ReservedTime:
    return ReservedTime(
        workload=row[0], hour_us=row[1], placement=row[2], subject=row[3], source=row[4], is_declared=bool(row[5]),
        amount_us=row[6], evidence=tuple(dict.fromkeys(event for event in events if event)),
    )  # fmt: skip


@contextmanager
def reading(ledger: Ledger, marks: Mapping[str, int]) -> Iterator[Reading]:
    """A reading of reserved time out of rows numbered up to ``marks``.

    Append nothing through the same ledger before it ends.
    """
    with ledger.mapped():
        engine_of(ledger.connection).make_relations(ledger.connection, _RELATIONS)
    with ledger.snapshot():
        yield Reading(ledger, marks)
