"""What a reading of reserved time looks up beside the rule: events, placements, records, heartbeats.

In: a cursor inside one snapshot, and marks. Out: rows and values. Nothing here fills a relation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from sqlalchemy.engine.interfaces import DBAPICursor

from gpuledger.ledger import heartbeats, metered
from gpuledger.ledger.codec import CODECS
from gpuledger.ledger.engine import rows_of
from gpuledger.model.missing import Missing
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent

_FETCHED = 10_000


class Lookups:
    """Look-ups of one reading.

    Attributes:
        cursor: the connection's own, for :mod:`.booking`.
    """

    def __init__(self, cursor: DBAPICursor, marks: Mapping[str, int]) -> None:
        self.cursor = cursor
        self._cursor = cursor
        self._marks = dict(marks)

    def sources(self) -> dict[str, bool]:
        """Who has told anything, and whether any of it is declared history."""
        self._cursor.execute("SELECT source, MAX(is_declared) FROM workload_event GROUP BY source")
        return {str(source): bool(declares) for source, declares in self._cursor.fetchall()}

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
        return heartbeats.interval_us(self._cursor, source)

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

    def next_event(self, from_us: int) -> int | Missing:
        """When something is told next, at a moment or after it."""
        self._cursor.execute("SELECT MIN(at_us) FROM workload_event WHERE at_us >= ?", (from_us,))
        found = self._cursor.fetchall()[0][0]
        return Missing("nothing is told after it") if found is None else int(found)

    def event_after(self, from_us: int, events: int) -> int | Missing:
        """When, from a moment on, so many events have been told."""
        statement = "SELECT at_us FROM workload_event WHERE at_us >= ? ORDER BY at_us LIMIT 1 OFFSET ?"
        self._cursor.execute(statement, (from_us, events))
        found = self._cursor.fetchall()
        return int(found[0][0]) if found else Missing("fewer are told")

    def recorded(self, since_us: int, until_us: int) -> Iterator[tuple[str, int, str, str, str, int]]:
        """Records and corrections of reserved time of the hours of [since, until): their key, and signed seconds."""
        for statement in (metered.ALL_RECORDED, metered.ALL_CORRECTED):
            for rows in rows_of(self._cursor, statement, {"since_us": since_us, "until_us": until_us}, _FETCHED):
                yield from cast("list[tuple[str, int, str, str, str, int]]", rows)

    def has_records(self, since_us: int, until_us: int) -> bool:
        """Whether any record of reserved time stands in the hours that begin in [since, until)."""
        self._cursor.execute(metered.ANY_RECORD, {"since_us": since_us, "until_us": until_us})
        return bool(self._cursor.fetchall())
