"""Reads reserved time: fills the relations of the metering rule and runs it, inside one snapshot.

In: marks, hours, and which workloads are asked for. Out: :class:`~gpuledger.model.reserved.ReservedTime`, what a pass
inserts without looking at each row (:mod:`.booking`), and the records that stand against it. The rule itself is
``metering/reserved.sql``. Temporary tables hold the relations: they belong to the connection, and nothing of the ledger
changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from gpuledger.ledger import heartbeats, metered
from gpuledger.ledger.engine import bare_cursor, engine_of
from gpuledger.ledger.reserved_lookups import Lookups
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.reserved import ReservedTime

_FETCHED = 10_000
_FAR_AHEAD_US = 2**62


class Way(IntEnum):
    """How the hours of a run are booked."""

    BY_ROW = 0
    """Each is compared with what stands."""
    IN_OPEN_HOURS = 1
    """Inserted where no pass has covered the hour, for then nothing stands."""
    ALWAYS = 2
    """Inserted: history that an importer declares, of a workload that no pass had seen."""


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


class Held(NamedTuple):
    """One interval: a workload on a placement, which stands empty where no event had named one.

    ``end_us`` is far ahead where nothing ends it; ``counted_us`` is where its counting ends all the same.
    """

    workload: str
    source: str
    is_declared: bool
    placement: str
    since_us: int
    end_us: int
    counted_us: int

    @property
    def is_open(self) -> bool:
        """Whether nothing ends it."""
        return self.end_us == _FAR_AHEAD_US


class Reading(Lookups):
    """One reading of reserved time. Made by :func:`reading`; every read sees the ledger as it was at its start.

    Attributes:
        beats: the last heartbeat of each source that has any.
    """

    def __init__(self, ledger: Ledger, marks: Mapping[str, int]) -> None:
        super().__init__(bare_cursor(ledger.connection), marks)
        self._connection = ledger.connection
        self._engine = engine_of(ledger.connection)
        for name in metered.RELATIONS:
            self._cursor.execute(f"DELETE FROM {name}")  # noqa: S608 a name from above
        self._cursor.executemany("INSERT INTO metered_mark VALUES (?, ?)", sorted(marks.items()))
        self.beats = {
            source: heartbeats.last(self._cursor, source, marks) for source in heartbeats.sources(self._cursor)
        }
        self._cursor.executemany(
            "INSERT INTO metered_beat VALUES (?, ?)",
            [(source, beat) for source, beat in self.beats.items() if not isinstance(beat, Missing)],
        )

    def want_unseen(self, seen: Mapping[str, int]) -> None:
        """Ask for the workloads with events beyond these marks, each from the hour of the earliest one on."""
        self._see(seen)
        self._cursor.execute(metered.UNSEEN)

    def want_late(self, seen: Mapping[str, int], parts: Sequence[tuple[int, int, Mapping[str, int]]]) -> None:
        """As :meth:`want_unseen`, of these only what came once the hours it speaks of were final.

        Args:
            seen: the lowest marks of all parts.
            parts: start, end and marks of final hours, latest first: beyond the marks evidence of a part is late.
        """
        self._see(seen)
        self._cursor.execute("DELETE FROM metered_late")
        first_us = parts[-1][0]
        self._cursor.executemany(
            "INSERT INTO metered_late (writer, since_us, number) VALUES (?, ?, ?)",
            [
                (writer, since_us if since_us > first_us else metered.ALWAYS_US, number)
                for since_us, _, marks in parts
                for writer, number in marks.items()
            ],
        )
        self._cursor.execute(metered.LATE)
        for source in self.beats:
            for from_us, lowest in heartbeats.silences(self._cursor, source, parts):
                self._see(lowest)
                self._cursor.execute(metered.FOLLOWED, {"source": source, "from_us": from_us - from_us % HOUR_US})

    def want_heard(self, seen: Mapping[str, int], *, until_us: int) -> None:
        """Ask for what is open of sources whose heartbeat came back, or came for the first time.

        The time after a last heartbeat was not counted. So what is asked for already is asked for from there on:
        a stop ends it too.

        Args:
            seen: the marks at which its heartbeats were looked at before.
            until_us: how far was looked.
        """
        for source, beat in self.beats.items():
            before = heartbeats.last(self._cursor, source, seen)
            if isinstance(before, Missing):
                self._cursor.execute(metered.OF_SOURCE, {"source": source, "from_us": 0})
            elif before < until_us:
                span = {"source": source, "from_us": before - before % HOUR_US}
                self._cursor.execute(metered.SINCE_HEARD, span)
                if beat != before:
                    self._cursor.execute(metered.OF_SOURCE, span)

    def want_living(self, from_us: int, until_us: int) -> None:
        """Ask for every workload that can have time in [from, until), from there on."""
        span = {"from_us": from_us, "until_us": until_us}
        self._cursor.execute(metered.MOVING, span)
        self._cursor.execute(metered.LIVING, span)

    def want_doubtful(self, from_us: int, until_us: int) -> None:
        """Ask for the workloads that can have run somewhere unknown before ``until_us``, from a moment on."""
        self._cursor.execute(metered.DOUBTFUL, {"from_us": from_us, "until_us": until_us})

    def want_next(self, from_us: int, until_us: int) -> None:
        """As :meth:`want_living`, where those asked for are all who could have time right before ``from_us``."""
        span = {"from_us": from_us, "until_us": until_us}
        self._cursor.execute(metered.STILL_LIVING, span)
        self._cursor.execute(metered.FROM_NOW_ON, span)
        self._cursor.execute(metered.MOVING, span)

    def want(self, workloads: Iterable[str], from_us: int) -> None:
        """Ask for these and no others."""
        self._cursor.execute("DELETE FROM metered_workload")
        named = [(workload, from_us) for workload in sorted(set(workloads))]
        self._cursor.executemany("INSERT INTO metered_workload (workload, from_us) VALUES (?, ?)", named)

    def drop_from(self, until_us: int) -> None:
        """Ask no longer for workloads that are asked for from this moment on only."""
        self._cursor.execute("DELETE FROM metered_workload WHERE from_us >= ?", (until_us,))

    def ask_from(self, from_us: int) -> None:
        """Ask for nothing before this moment; 0 or less changes nothing."""
        if from_us > 0:
            self._cursor.execute("UPDATE metered_workload SET from_us = ? WHERE from_us < ?", (from_us, from_us))

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

    def derive(
        self,
        hours: Iterable[tuple[int, int]],
        *,
        until_us: int,
        open_hours: Collection[int] = (),
        cut: bool = True,
        end_us: int | None = None,
    ) -> None:
        """Run the rule for the workloads asked for, into its relations.

        Args:
            hours: start and end of each hour, or of its beginning.
            until_us: where time that nothing ends is cut.
            open_hours: starts of those that no pass has covered.
            cut: whether the intervals are cut at the hours too; else :meth:`cut` does.
            end_us: where the hours end; given it, intervals that begin after it are not right.
        """
        if end_us is None:
            self._cursor.execute(metered.ALL_EVENTS)
        else:
            self._cursor.execute(metered.EVENTS_UNTIL, {"end_us": end_us})
        for name in ("metered_run", "metered_amount"):
            self._cursor.execute(f"DELETE FROM {name}")  # noqa: S608 names from above
        self._engine.weigh(self._cursor, ("metered_workload", "metered_mark", "metered_beat"))
        self._cursor.execute(metered.parts()[0], {"until_us": until_us})
        if cut:
            self.cut(hours, open_hours=open_hours)

    def cut(self, hours: Iterable[tuple[int, int]], *, open_hours: Collection[int] = ()) -> None:
        """Cut the intervals that :meth:`derive` found at these hours."""
        self._fill_hours(hours, open_hours)
        self._cursor.execute("DELETE FROM metered_amount")
        self._engine.weigh(self._cursor, ("metered_run", "metered_hour"))
        self._cursor.execute(metered.parts()[1])

    def running_us(self, since_us: int, until_us: int) -> int:
        """How long the intervals found lie in a span, all together: microseconds.

        One that began after the last heartbeat of its source ends before it begins, and has no time.
        """
        statement = """
            SELECT SUM(CASE WHEN until_us < :until THEN until_us ELSE :until END
                - CASE WHEN since_us > :since THEN since_us ELSE :since END)
            FROM metered_run WHERE until_us > :since AND since_us < :until AND until_us > since_us"""
        self._cursor.execute(statement, {"since": since_us, "until": until_us})
        return int(self._cursor.fetchall()[0][0] or 0)

    def running_until(self, at_us: int, end_us: int) -> int:
        """The end of the last interval found that lies in [at, end); ``at_us`` itself where none does."""
        statement = "SELECT MAX(until_us) FROM metered_run WHERE until_us > ? AND since_us < ?"
        self._cursor.execute(statement, (at_us, end_us))
        return int(self._cursor.fetchall()[0][0] or at_us)

    def runs(self, since_us: int, until_us: int) -> Iterator[tuple[Any, ...]]:
        """The intervals found that lie in a span and have a placement.

        Gives (run, workload, placement, subject, first event, begin event, end event or None).
        """
        statement = (
            "SELECT run, workload, placement, subject, first_event, begin_event, end_event FROM metered_run "
            "WHERE until_us > :since_us AND since_us < :until_us AND placement <> ''"
        )
        for rows in self._stream(statement, since_us=since_us, until_us=until_us):
            yield from rows

    def held(self, since_us: int, until_us: int, placements: Collection[str] | None = None) -> Iterator[Held]:
        """The intervals found that lie in a span, on some placements or on all; the empty one counts as one.

        What nothing ends runs on beyond the span, whether its source was heard or not.
        """
        statement = (
            "SELECT workload, source, is_declared, placement, since_us, "
            "CASE WHEN end_event IS NULL THEN :far_us ELSE until_us END, until_us FROM metered_run "
            "WHERE since_us < :until_us AND (end_event IS NULL OR until_us > :since_us) ORDER BY run"
        )
        for rows in self._stream(statement, since_us=since_us, until_us=until_us, far_us=_FAR_AHEAD_US):
            for workload, source, is_declared, placement, start_us, end_us, counted_us in rows:
                if placements is None or placement in placements:
                    yield Held(workload, source, bool(is_declared), placement, start_us, end_us, counted_us)

    def placed(self) -> list[str]:
        """Keys of the placements of the intervals found."""
        self._cursor.execute("SELECT DISTINCT placement FROM metered_run WHERE placement <> ''")
        return [str(key) for (key,) in self._cursor.fetchall()]

    def book_by_row(self, runs: Iterable[int] | None = None) -> None:
        """Compare the hours of these intervals with what stands, each by itself; of all without ``runs``."""
        if runs is None:
            self._cursor.execute("UPDATE metered_run SET way = 0")
        else:
            self._cursor.executemany("UPDATE metered_run SET way = 0 WHERE run = ?", [(run,) for run in runs])

    def insert_history(self, seen: Mapping[str, int]) -> None:
        """Insert declared time, in whatever hour, of whom nothing was known at these marks: nothing stands of it."""
        self._know_subjects(seen)
        self._cursor.execute(
            "UPDATE metered_run SET way = 2 WHERE is_declared = 1 AND NOT EXISTS "
            "(SELECT 1 FROM metered_subject AS s WHERE s.subject = metered_run.subject)"
        )

    def times(
        self, hours: Iterable[tuple[int, int]], *, until_us: int, open_hours: Collection[int] = ()
    ) -> Iterator[ReservedTime]:
        """Reserved time of the workloads asked for, as :meth:`derive` finds it."""
        self.derive(hours, until_us=until_us, open_hours=open_hours)
        yield from self._times(metered.parts()[2])

    def times_by_row(self) -> Iterator[ReservedTime]:
        """Of what was derived, the time with a placement that is not booked by :mod:`.booking`."""
        self._cursor.execute(metered.ANY_BY_ROW)
        if not self._cursor.fetchall():
            return
        yield from self._times(
            metered.parts()[2].rstrip().replace("CROSS JOIN", "CROSS JOIN metered_hour AS h\nCROSS JOIN")
            + f" AND h.start_us = a.hour_us AND i.placement <> '' AND NOT {metered.INSERTED}"
        )

    def _times(self, statement: str) -> Iterator[ReservedTime]:
        several: list[tuple[Any, ...]] = []
        for rows in self._stream(statement):
            for row in rows:
                if row[7] > 1:
                    several.append(row)
                else:
                    yield _time(row, row[8:])
        for row in several:
            yield _time(row, (row[8], *self._around(row[0], row[1])))

    def _stream(self, statement: str, **bound: int) -> Iterator[list[tuple[Any, ...]]]:
        """Rows of a statement, some thousand at a time."""
        yield from self._engine.stream(self._connection, statement, bound, _FETCHED)

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

    def written(self, seen: Mapping[str, int]) -> list[Written]:
        """What stands in the covered hours last derived, of the workloads asked for and known at these marks."""
        self._know_subjects(seen)
        found: list[Written] = []
        for statement in (metered.RECORDED, metered.CORRECTED):
            self._cursor.execute(statement)
            found += [Written(**dict(zip(Written.__slots__, row, strict=True))) for row in self._cursor.fetchall()]
        return found

    def wanted(self) -> set[str]:
        """The workloads that are asked for."""
        self._cursor.execute("SELECT workload FROM metered_workload")
        return {str(workload) for (workload,) in self._cursor.fetchall()}

    def _see(self, seen: Mapping[str, int]) -> None:
        self._cursor.execute("DELETE FROM metered_seen")
        self._cursor.executemany("INSERT INTO metered_seen VALUES (?, ?)", sorted(seen.items()))

    def _know_subjects(self, seen: Mapping[str, int]) -> None:
        self._see(seen)
        self._cursor.execute("DELETE FROM metered_subject")
        self._cursor.execute(metered.SUBJECTS)

    def _fill_hours(self, hours: Iterable[tuple[int, int]], open_hours: Collection[int]) -> None:
        self._cursor.execute("DELETE FROM metered_hour")
        self._cursor.executemany(
            "INSERT INTO metered_hour VALUES (?, ?, ?)",
            [(start_us, end_us, int(start_us in open_hours)) for start_us, end_us in hours],
        )


def _time(row: Sequence[Any], events: Iterable[str | None]) -> ReservedTime:
    return ReservedTime(
        workload=row[0], hour_us=row[1], placement=row[2], subject=row[3], source=row[4], is_declared=bool(row[5]),
        amount_us=row[6], evidence=tuple(dict.fromkeys(event for event in events if event)),
    )  # fmt: skip


def make_relations(ledger: Ledger) -> None:
    """Make the relations of the rule and of booking, which belong to the connection; before a snapshot begins."""
    with ledger.mapped():
        engine_of(ledger.connection).make_relations(ledger.connection, {**metered.RELATIONS, **metered.READY})


@contextmanager
def reading(ledger: Ledger, marks: Mapping[str, int]) -> Iterator[Reading]:
    """A reading of reserved time out of rows numbered up to ``marks``.

    Append nothing through the same ledger before it ends.
    """
    make_relations(ledger)
    with ledger.snapshot():
        yield Reading(ledger, marks)
