"""The metering rule over the events of a lake: Parquet in, rows of records out, in bounded memory.

In: a lake. Out: records of closed hours, in the order of their hours and keys. Events are read by ranges of workloads,
which are parts of the sorted files; the intervals found are put aside, and cut at the hours month by month, some days
at a time. The rule is ``metering/reserved.sql`` and nothing else; what is added here is what a record carries beside
the seconds: the placement's machine, the meters of its class, and the number and hash of the events behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpuledger.ledger import metered, parquet
from gpuledger.ledger.duck import Duck
from gpuledger.ledger.lake import Lake
from gpuledger.model.lake import month_of, month_span
from gpuledger.model.moments import HOUR_US, SECOND_US
from gpuledger.model.reserved import PLACED, RESERVED, meters_of
from gpuledger.model.workload_rows import PlacementRow

EVENTS_AT_ONCE = 700_000
"""Events whose intervals are derived together, about."""

ROWS_AT_ONCE = 300_000
"""Amounts that are cut together, about."""

_EVENTS = "workload_event"

# ``place`` numbers a placement, -1 stands for none named yet. ``workload`` is told where it has several intervals only.
_ASIDE = """
CREATE TABLE aside (
    run BIGINT, whose BIGINT, held BIGINT, workload VARCHAR, is_declared BIGINT, from_us BIGINT, since_us BIGINT,
    until_us BIGINT, place BIGINT, subject VARCHAR, evidence_count BIGINT, evidence_hash VARCHAR, refs VARCHAR,
    key_hash UBIGINT
);
CREATE TABLE around (workload VARCHAR, hour_us BIGINT, refs VARCHAR[]);
CREATE TABLE placed (place BIGINT, placement VARCHAR);
CREATE TABLE meter_of (place BIGINT, meter_rank BIGINT, meter VARCHAR, host VARCHAR, device VARCHAR)"""

# The rule hands placements and subjects through and looks at neither, save whether a placement is named. So it is given
# numbers, which are sorted in half the time: of the placement, and of the row that names the subject.
_BRING = """
CREATE OR REPLACE TEMP TABLE brought_event AS
SELECT e.writer, e.number, e.workload, e.sequence, e.state, e.at_us, e.source, e.is_declared, e.subject,
    CASE WHEN e.placement = '' THEN '' ELSE COALESCE(CAST(p.place AS VARCHAR), '?') END AS placement
FROM {files} AS e LEFT JOIN placed AS p ON p.placement = e.placement
WHERE {bounds}"""

_NUMBERED = """
CREATE OR REPLACE TEMP VIEW workload_event AS
SELECT writer, number, workload, sequence, state, at_us, source, is_declared, rowid AS subject, placement
FROM brought_event"""

_FOUND_RUNS = """
CREATE OR REPLACE TEMP TABLE found_run AS
SELECT r.run, r.workload, r.is_declared, r.from_us, r.since_us, r.until_us,
    CASE r.placement WHEN '' THEN -1 WHEN '?' THEN NULL ELSE CAST(r.placement AS BIGINT) END AS place,
    e.subject, r.first_event, r.begin_event, r.end_event
FROM metered_run AS r JOIN brought_event AS e ON e.rowid = CAST(r.subject AS BIGINT)"""

# Most workloads have one interval; for the others it is told what is the same.
_TOLD_SEVERAL = """
CREATE OR REPLACE TEMP TABLE several AS
SELECT workload, MIN(run) AS run FROM found_run GROUP BY workload HAVING COUNT(*) > 1"""

# The hours in which a workload has several intervals: only there are there more events behind a row than three. The
# events of the hour, and the ones next to it on both sides.
_AROUND = f"""
INSERT INTO around
WITH edge AS (
    SELECT run, workload, since_us - since_us % {HOUR_US} AS hour_us FROM found_run
    WHERE workload IN (SELECT workload FROM several)
    UNION
    SELECT run, workload, until_us - 1 - (until_us - 1) % {HOUR_US} FROM found_run
    WHERE workload IN (SELECT workload FROM several)
),
shared AS (SELECT workload, hour_us FROM edge GROUP BY workload, hour_us HAVING COUNT(*) > 1),
span AS (
    SELECT s.workload, s.hour_us,
        COALESCE(MAX(e.at_us) FILTER (WHERE e.at_us < s.hour_us), s.hour_us) AS low_us,
        MIN(e.at_us) FILTER (WHERE e.at_us >= s.hour_us + {HOUR_US}) AS high_us
    FROM shared AS s JOIN workload_event AS e USING (workload)
    GROUP BY s.workload, s.hour_us
),
beyond AS (
    SELECT s.workload, s.hour_us, MIN(e.sequence) AS sequence
    FROM span AS s JOIN workload_event AS e ON e.workload = s.workload AND e.at_us = s.high_us
    GROUP BY s.workload, s.hour_us
)
SELECT s.workload, s.hour_us, LIST('event:' || e.writer || '/' || e.number)
FROM span AS s
LEFT JOIN beyond AS b ON b.workload = s.workload AND b.hour_us = s.hour_us
JOIN workload_event AS e ON e.workload = s.workload AND e.at_us >= s.low_us
    AND (e.at_us < s.hour_us + {HOUR_US} OR (e.at_us = s.high_us AND e.sequence = b.sequence))
GROUP BY s.workload, s.hour_us"""  # noqa: S608 constants


# The evidence of an interval is that of each of its hours, save where several intervals lie in one: two or three
# events, sorted. Functions on lists would take thrice as long, and this is done for each interval. ``whose`` stands for
# a workload, ``held`` for what it holds: its placement, for one owner.
_PUT_ASIDE = """
INSERT INTO aside
SELECT r.run + $before, COALESCE(w.run, r.run) + $before, COALESCE(h.run, r.run) + $before, w.workload,
    r.is_declared, r.from_us, r.since_us, r.until_us, r.place, r.subject,
    CASE WHEN r.first_event = r.begin_event THEN 1 ELSE 2 END + CASE WHEN r.end_event IS NULL THEN 0 ELSE 1 END,
    SUBSTR(SHA256(r.refs), 1, 16), r.refs, HASH(r.place, r.subject)
FROM (
    SELECT *, CASE
        WHEN end_event IS NULL AND first_event = begin_event THEN first_event
        WHEN end_event IS NULL OR first_event = begin_event THEN
            LEAST(first_event, COALESCE(end_event, begin_event)) || CHR(10)
            || GREATEST(first_event, COALESCE(end_event, begin_event))
        ELSE LEAST(first_event, begin_event, end_event) || CHR(10)
            || GREATEST(LEAST(first_event, begin_event), LEAST(GREATEST(first_event, begin_event), end_event))
            || CHR(10) || GREATEST(first_event, begin_event, end_event)
    END AS refs
    FROM found_run
) AS r
LEFT JOIN several AS w ON w.workload = r.workload
LEFT JOIN (
    SELECT m.workload, m.place, m.subject, MIN(m.run) AS run
    FROM found_run AS m JOIN several AS s ON s.workload = m.workload
    GROUP BY m.workload, m.place, m.subject
) AS h ON h.workload = r.workload AND h.place = r.place AND h.subject = r.subject"""

# Two workloads share a subject only where no text names them: each is rounded by itself, then they are one record.
# First by a hash, which fits into memory, then the few that are left by their text.
_SHARED = """
CREATE TABLE shared AS
SELECT place, subject FROM aside
WHERE key_hash IN (SELECT key_hash FROM aside GROUP BY key_hash HAVING MIN(whose) <> MAX(whose))
GROUP BY place, subject HAVING MIN(whose) <> MAX(whose)"""

# What began after its controller's last heartbeat ends before it begins: no time yet, and never less than none.
_OF_MONTH = """
CREATE OR REPLACE TEMP TABLE month_run AS
SELECT a.run, a.whose, a.held, a.workload, a.is_declared, a.from_us, a.since_us, a.until_us, a.place, a.subject,
    a.evidence_count, a.evidence_hash, s.subject IS NOT NULL AS is_shared,
    CASE WHEN s.subject IS NOT NULL OR a.workload IS NOT NULL THEN a.refs END AS refs
FROM aside AS a LEFT JOIN shared AS s ON s.place = a.place AND s.subject = a.subject
WHERE a.place >= 0 AND a.since_us < $until AND a.until_us > $since AND a.until_us > a.since_us"""

_OF_DAYS = """
CREATE OR REPLACE TEMP TABLE day_run AS SELECT * FROM month_run WHERE since_us < $until AND until_us > $since"""

# To cut, the rule only asks whether workloads, placements and subjects are the same: numbers tell that, in a tenth of
# the room.
_TO_CUT = """
INSERT INTO metered_run BY NAME
SELECT run, CAST(whose AS VARCHAR) AS workload, is_declared, from_us, since_us, until_us,
    CAST(held AS VARCHAR) AS placement, '' AS subject
FROM day_run"""

_RUNNING = """
SELECT CAST(COALESCE(SUM(LEAST(until_us, $until) - GREATEST(since_us, $since)), 0) AS BIGINT), COUNT(*)
FROM month_run"""

_SEVERAL = """
SELECT 1 WHERE EXISTS (SELECT 1 FROM metered_amount WHERE intervals > 1)
    OR EXISTS (SELECT 1 FROM day_run WHERE is_shared)"""

_FOUND = f"""
SELECT i.run, a.hour_us, i.place, i.subject, a.amount_us // {SECOND_US} AS seconds, i.evidence_count, i.evidence_hash
FROM metered_amount AS a JOIN day_run AS i ON i.run = a.run
WHERE a.amount_us >= {SECOND_US} AND a.intervals = 1 AND NOT i.is_shared"""  # noqa: S608 constants

# Several intervals in an hour, or several workloads under one key: the evidence is all events of the hour.
_FOUND_SEVERAL = f"""
SELECT MIN(run), hour_us, place, subject, CAST(SUM(seconds) AS BIGINT), LEN(LIST_DISTINCT(FLATTEN(LIST(refs)))),
    SUBSTR(SHA256(ARRAY_TO_STRING(LIST_SORT(LIST_DISTINCT(FLATTEN(LIST(refs)))), CHR(10))), 1, 16)
FROM (
    SELECT i.run, a.hour_us, i.place, i.subject, a.amount_us // {SECOND_US} AS seconds,
        LIST_CONCAT(STRING_SPLIT(i.refs, CHR(10)), CASE WHEN a.intervals > 1 THEN x.refs END) AS refs
    FROM metered_amount AS a JOIN day_run AS i ON i.run = a.run
    LEFT JOIN around AS x ON a.intervals > 1 AND x.workload = i.workload AND x.hour_us = a.hour_us
    WHERE a.amount_us >= {SECOND_US} AND (a.intervals > 1 OR i.is_shared)
)
GROUP BY hour_us, place, subject"""  # noqa: S608 constants


def _rows(*, has_several: bool) -> str:
    """Records by hour, meter, machine, placement and workload: runs are numbered in the order of workloads."""
    found = f"{_FOUND} UNION ALL {_FOUND_SEVERAL}" if has_several else _FOUND
    return f"""
SELECT m.meter, f.hour_us, m.host, m.device, f.subject, '{RESERVED}' AS context, f.seconds AS quantity,
    CAST(f.evidence_count AS BIGINT) AS evidence_count, f.evidence_hash
FROM ({found}) AS f JOIN meter_of AS m ON m.place = f.place
ORDER BY f.hour_us, m.meter_rank, f.place, f.run"""  # noqa: S608 constants


class LakeRule:
    """The rule over one lake.

    Args:
        lake: which.
        duck: the engine; nothing else may run on it.
        until_us: where time that nothing ends is cut; hours up to it are derived.
    """

    def __init__(self, lake: Lake, duck: Duck, *, until_us: int) -> None:
        self._lake = lake
        self._duck = duck
        self._until_us = until_us
        self._events = lake.paths(_EVENTS)

    def find(self) -> Iterator[tuple[int, int]]:
        """Derive all intervals and put them aside. Gives how many parts are done, of how many."""
        duck = self._duck
        for statement in _ASIDE.split(";"):
            duck.run(statement)
        duck.make_relations()
        duck.run("ALTER TABLE workload_event RENAME TO brought_event")
        duck.run(_NUMBERED)
        duck.fill("metered_mark", ("writer", "number"), sorted(self._lake.manifest.marks.items()))
        self._bring_beats()
        self._bring_placements()
        ranges = list(_ranges(self._events))
        for done, (low, high) in enumerate(ranges):
            yield done, len(ranges)
            duck.clear("metered_workload")
            bounds = " AND ".join(
                [
                    *(["workload >= $low"] if low is not None else []),
                    *(["workload < $high"] if high is not None else []),
                ]
            )
            duck.run(
                _BRING.format(files=files(self._events), bounds=bounds or "TRUE"),
                {name: value for name, value in (("low", low), ("high", high)) if value is not None},
            )
            duck.run(
                "INSERT INTO metered_workload (workload, from_us, since_us, until_us) "  # noqa: S608 constants
                f"SELECT DISTINCT workload, {metered.ALWAYS_US}, {metered.ALWAYS_US}, {-metered.ALWAYS_US} "
                "FROM brought_event"
            )
            duck.find_runs(self._until_us)
            duck.run(_FOUND_RUNS)
            duck.run(_TOLD_SEVERAL)
            duck.run(_AROUND)
            duck.run(_PUT_ASIDE, {"before": duck.rows("SELECT COALESCE(MAX(run), 0) FROM aside")[0][0]})
        duck.clear("metered_workload", "metered_run")
        for name in ("brought_event", "found_run", "several"):
            duck.run(f"DROP TABLE IF EXISTS {name}")
        duck.run(_SHARED)
        yield len(ranges), len(ranges)

    def months(self) -> list[str]:
        """The months in which an interval has a whole hour, before the cut."""
        first_us, last_us = self._duck.rows("SELECT MIN(since_us), MAX(until_us) FROM aside WHERE place >= 0")[0]
        found: list[str] = []
        at_us = first_us if first_us is not None else self._until_us
        while at_us < min(last_us or 0, self._until_us):
            found.append(month_of(at_us))
            at_us = month_span(found[-1])[1]
        return found

    def records(self, month: str) -> Iterator[Any]:
        """Arrow batches of a month's records, in the order of hour and key: all columns but writer, number and time."""
        duck = self._duck
        since_us, end_us = month_span(month)
        end_us = min(end_us, self._until_us)
        duck.run(_OF_MONTH, {"since": since_us, "until": end_us})
        running_us, runs = duck.rows(_RUNNING, {"since": since_us, "until": end_us})[0]
        hours = (end_us - since_us) // HOUR_US
        step_us = max(1, hours * ROWS_AT_ONCE // (running_us // HOUR_US + runs + 1)) * HOUR_US
        for low_us in range(since_us, end_us, step_us):
            high_us = min(low_us + step_us, end_us)
            duck.clear("metered_run", "metered_hour")
            duck.run(_OF_DAYS, {"since": low_us, "until": high_us})
            duck.run(_TO_CUT)
            duck.run(
                f"INSERT INTO metered_hour SELECT h, h + {HOUR_US}, 1 FROM range($since, $until, {HOUR_US}) AS r(h)",  # noqa: S608
                {"since": low_us, "until": high_us},
            )
            duck.cut_runs()
            yield from duck.batches(_rows(has_several=bool(duck.rows(_SEVERAL))))

    def unplaced_us(self) -> int:
        """How long workloads ran nobody knows where."""
        statement = "SELECT SUM(until_us - since_us) FROM aside WHERE place = -1 AND until_us > since_us"
        return int(self._duck.rows(statement)[0][0] or 0)

    def _bring_beats(self) -> None:
        watches = self._lake.paths("watch")
        if watches:
            self._duck.run(
                "INSERT INTO metered_beat SELECT host, ARG_MAX(until_us, since_us) "  # noqa: S608 constants
                f"FROM {files(watches)} WHERE source = 'controller' AND method = 'heartbeat' AND device = '' "
                "GROUP BY host"
            )

    def _bring_placements(self) -> None:
        known = sorted(placements(self._lake).values(), key=lambda row: (row.machine, row.placement))
        meters = sorted({meter.name for row in known for meter in meters_of(row.class_name)})
        places = list(enumerate(known))
        self._duck.fill("placed", ("place", "placement"), [(place, row.placement) for place, row in places])
        self._duck.fill(
            "meter_of",
            ("place", "meter_rank", "meter", "host", "device"),
            [
                (place, meters.index(meter.name), meter.name, row.machine, f"{PLACED}{row.placement}")
                for place, row in places
                for meter in meters_of(row.class_name)
            ],
        )


def placements(lake: Lake) -> dict[str, PlacementRow]:
    """Every placement of a lake by its key."""
    found: dict[str, PlacementRow] = {}
    for path in lake.paths("placement"):
        for row in parquet.read_rows(path, PlacementRow):
            assert isinstance(row, PlacementRow)
            found[row.placement] = row
    return found


def files(paths: list[Path]) -> str:
    """The relation of some files, as DuckDB's SQL has it."""
    names = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
    return f"read_parquet([{names}])"


def _ranges(paths: list[Path]) -> Iterator[tuple[str | None, str | None]]:
    """Ranges of workloads with about so many events each, by what the files say of their row groups."""
    lowest: list[tuple[str, int]] = []
    for path in paths:
        with parquet.opened(path, _EVENTS) as file:
            place = file.schema_arrow.names.index("workload")
            for number in range(file.metadata.num_row_groups):
                group = file.metadata.row_group(number)
                told = group.column(place).statistics
                if told is not None and told.has_min_max:
                    lowest.append((str(told.min), group.num_rows))
    low: str | None = None
    events = 0
    for first, rows in sorted(lowest):
        if events + rows > EVENTS_AT_ONCE and events and first != low:
            yield low, first
            low, events = first, 0
        events += rows
    if paths:
        yield low, None
