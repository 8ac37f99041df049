"""The relations of the metering rule, and who is asked for: the SQL that fills them.

In: nothing. Out: statements for :mod:`gpuledger.ledger.reserved`. Each goes through an index, from name to next name or
along time, and none reads a history that cannot matter.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from gpuledger.model.meters import RESERVED_METERS
from gpuledger.model.moments import HOUR_US
from gpuledger.model.reserved import RESERVED

ALWAYS_US = -(2**62)
"""Before every moment."""

RELATIONS = {
    "metered_workload": "workload TEXT NOT NULL PRIMARY KEY, from_us BIGINT, since_us BIGINT, until_us BIGINT",
    "metered_mark": "writer TEXT NOT NULL PRIMARY KEY, number BIGINT",
    "metered_seen": "writer TEXT NOT NULL PRIMARY KEY, number BIGINT",
    "metered_hour": "start_us INTEGER PRIMARY KEY, end_us BIGINT, is_open BIGINT",
    "metered_beat": "source TEXT NOT NULL PRIMARY KEY, until_us BIGINT",
    "metered_subject": "subject TEXT NOT NULL PRIMARY KEY, workload TEXT, from_us BIGINT",
    "metered_late": "writer TEXT NOT NULL, since_us BIGINT NOT NULL, number BIGINT, PRIMARY KEY (writer, since_us)",
    "metered_run": "run INTEGER PRIMARY KEY, workload TEXT, source TEXT, is_declared BIGINT, from_us BIGINT, "
    "since_us BIGINT, until_us BIGINT, placement TEXT, subject TEXT, first_event TEXT, begin_event TEXT, "
    "end_event TEXT, way BIGINT",
    "metered_amount": "run BIGINT, hour_us BIGINT, amount_us BIGINT, intervals BIGINT, is_declared BIGINT",
}
"""What whoever runs the rule fills, and the two relations of it that are kept between its parts.

``is_open`` tells an hour that no pass has covered; ``way`` how a run is booked: see
:class:`gpuledger.ledger.reserved.Way`.
"""

READY = {
    "metered_head": "head INTEGER PRIMARY KEY, run BIGINT, place BIGINT, meter TEXT, host TEXT, device TEXT, "
    "subject TEXT, evidence_count BIGINT, evidence_hash TEXT",
    "metered_ready": "number INTEGER PRIMARY KEY, head BIGINT, hour_us BIGINT, seconds BIGINT",
}
"""Records that stand ready, and what those of one interval share; numbered by the store as they come."""

_WANT = """
ON CONFLICT (workload) DO UPDATE SET from_us = excluded.from_us WHERE excluded.from_us < metered_workload.from_us"""

# Declared time that nothing ended was counted to its last event, so what follows adds time from there on.
UNSEEN = f"""
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

# As UNSEEN, and of these only what came after its hours were final: metered_late has the marks of the time from a
# moment on, latest first; what is told of time before all of them is told of the first.
LATE = f"""
INSERT INTO metered_workload (workload, from_us)
SELECT u.workload, MIN(u.told_us - u.told_us % {HOUR_US})
FROM (
    SELECT e.workload, e.writer, e.number, COALESCE(p.at_us, e.at_us) AS told_us
    FROM metered_mark AS m
    LEFT JOIN metered_seen AS s ON s.writer = m.writer
    CROSS JOIN workload_event AS e
    LEFT JOIN workload_event AS p ON p.workload = e.workload AND p.is_declared = 1 AND (p.at_us, p.sequence) = (
        SELECT b.at_us, b.sequence FROM workload_event AS b
        WHERE b.workload = e.workload AND (b.at_us < e.at_us OR (b.at_us = e.at_us AND b.sequence < e.sequence))
        ORDER BY b.at_us DESC, b.sequence DESC LIMIT 1
    )
    WHERE e.writer = m.writer AND e.number > COALESCE(s.number, 0) AND e.number <= m.number
) AS u
WHERE u.number > COALESCE((
    SELECT l.number FROM metered_late AS l WHERE l.writer = u.writer AND l.since_us <= u.told_us
    ORDER BY l.since_us DESC LIMIT 1
), 0)
GROUP BY u.workload {_WANT}"""  # noqa: S608 constants

# From name to next name by the index, and of each the last event before: a workload that is not running then, and
# of which nothing is told afterwards, has no time there.
_NAMES = """
WITH RECURSIVE name (workload) AS (
    SELECT MIN(workload) FROM workload_event
    UNION ALL
    SELECT (SELECT MIN(e.workload) FROM workload_event AS e WHERE e.workload > name.workload) FROM name
    WHERE name.workload IS NOT NULL
)"""


def _last_state(workload: str) -> str:
    return f"""(
    SELECT e.state FROM workload_event AS e CROSS JOIN metered_mark AS m
    WHERE e.workload = {workload} AND e.at_us < :from_us AND m.writer = e.writer AND e.number <= m.number
    ORDER BY e.at_us DESC, e.sequence DESC LIMIT 1
)"""  # noqa: S608 constants


LIVING = f"""
INSERT INTO metered_workload (workload, from_us)
{_NAMES}
SELECT workload, :from_us FROM name WHERE workload IS NOT NULL AND {_last_state("name.workload")} = 'running' {_WANT}"""  # noqa: S608

# Of those asked for until a moment who can have time after it: whoever is not among them was not running then.
STILL_LIVING = f"""
DELETE FROM metered_workload WHERE COALESCE({_last_state("metered_workload.workload")}, '') <> 'running'"""  # noqa: S608

FROM_NOW_ON = "UPDATE metered_workload SET from_us = :from_us"

MOVING = f"""
INSERT INTO metered_workload (workload, from_us)
SELECT DISTINCT workload, :from_us FROM workload_event WHERE at_us >= :from_us AND at_us < :until_us {_WANT}"""  # noqa: S608

# A life that begins without a placement, or time before any life: all others know where they run. One walk through the
# events costs less than one look at each workload.
DOUBTFUL = f"""
INSERT INTO metered_workload (workload, from_us)
SELECT workload, :from_us FROM workload_event
WHERE state IN ('running', 'provisioning') AND at_us < :until_us
GROUP BY workload
HAVING MAX(CASE WHEN state = 'provisioning' AND placement = '' THEN 1 ELSE 0 END) = 1
    OR MIN(CASE WHEN state = 'running' THEN at_us END)
        < COALESCE(MIN(CASE WHEN state = 'provisioning' THEN at_us END), {-ALWAYS_US}) {_WANT}"""  # noqa: S608 constants

OF_SOURCE = f"""
INSERT INTO metered_workload (workload, from_us)
{_NAMES}
SELECT workload, :from_us FROM name WHERE workload IS NOT NULL AND (
    SELECT CASE WHEN state = 'running' THEN source END FROM workload_event AS e CROSS JOIN metered_mark AS m
    WHERE e.workload = name.workload AND m.writer = e.writer AND e.number <= m.number
    ORDER BY e.at_us DESC, e.sequence DESC LIMIT 1
) = :source {_WANT}"""  # noqa: S608 constants

# Time after a last heartbeat was not counted, so whatever follows it adds time from there on.
FOLLOWED = f"""
INSERT INTO metered_workload (workload, from_us)
SELECT DISTINCT e.workload, :from_us
FROM metered_mark AS m
LEFT JOIN metered_seen AS s ON s.writer = m.writer
CROSS JOIN workload_event AS e
WHERE e.writer = m.writer AND e.number > COALESCE(s.number, 0) AND e.number <= m.number AND e.at_us > :from_us
    AND EXISTS (
        SELECT 1 FROM workload_event AS p
        WHERE p.workload = e.workload AND p.source = :source AND p.state = 'running' AND p.at_us <= e.at_us
    ) {_WANT}"""  # noqa: S608 constants

SINCE_HEARD = """
UPDATE metered_workload SET from_us = :from_us WHERE from_us > :from_us AND EXISTS (
    SELECT 1 FROM workload_event AS e WHERE e.workload = metered_workload.workload AND e.source = :source)"""

# What came before the life in which a workload is at that hour cannot matter any more. Of what comes after the hours
# only the first event does: it may end an interval.
_SINCE = f"""
UPDATE metered_workload SET since_us = COALESCE((
    SELECT e.at_us FROM workload_event AS e CROSS JOIN metered_mark AS m
    WHERE e.workload = metered_workload.workload AND e.at_us <= metered_workload.from_us
        AND m.writer = e.writer AND e.number <= m.number AND e.state = 'provisioning'
    ORDER BY e.at_us DESC, e.sequence DESC LIMIT 1
), {ALWAYS_US}), until_us = """  # noqa: S608 constants
ALL_EVENTS = _SINCE + f"{-ALWAYS_US}"
_FIRST_AFTER = f"""COALESCE((
    SELECT MIN(e.at_us) FROM workload_event AS e CROSS JOIN metered_mark AS m
    WHERE e.workload = metered_workload.workload AND e.at_us >= :end_us AND m.writer = e.writer AND e.number <= m.number
), {-ALWAYS_US})"""  # noqa: S608 constants
EVENTS_UNTIL = _SINCE + _FIRST_AFTER

_METERS = " UNION ALL ".join(f"SELECT '{meter.name}' AS meter" for meter in RESERVED_METERS)

SUBJECTS = """
INSERT INTO metered_subject (subject, workload, from_us)
SELECT e.subject, MIN(e.workload), MIN(w.from_us)
FROM metered_workload AS w CROSS JOIN workload_event AS e CROSS JOIN metered_seen AS s
WHERE e.workload = w.workload AND s.writer = e.writer AND e.number <= s.number
GROUP BY e.subject"""


def _written(table: str, amount: str, number: str) -> str:
    return f"""
SELECT s.workload, r.meter, r.hour_us, r.host, r.device, r.subject, r.{amount}, {number}
FROM metered_subject AS s CROSS JOIN metered_hour AS h CROSS JOIN ({_METERS}) AS m CROSS JOIN {table} AS r
WHERE h.is_open = 0 AND h.start_us >= s.from_us
    AND r.meter = m.meter AND r.hour_us = h.start_us AND r.subject = s.subject"""  # noqa: S608 constants


RECORDED = _written("usage_record", "quantity", "0") + f" AND r.context = '{RESERVED}'"
CORRECTED = _written("usage_correction", "delta", "r.correction_number")


def _all_written(table: str, amount: str) -> str:
    return f"""
SELECT r.meter, r.hour_us, r.host, r.device, r.subject, r.{amount}
FROM ({_METERS}) AS m CROSS JOIN {table} AS r
WHERE r.meter = m.meter AND r.hour_us >= :since_us AND r.hour_us < :until_us"""  # noqa: S608 constants


ALL_RECORDED = _all_written("usage_record", "quantity") + f" AND r.context = '{RESERVED}'"
ALL_CORRECTED = _all_written("usage_correction", "delta")

ANY_RECORD = f"""
SELECT 1 FROM ({_METERS}) AS m CROSS JOIN usage_record AS r
WHERE r.meter = m.meter AND r.hour_us >= :since_us AND r.hour_us < :until_us LIMIT 1"""  # noqa: S608 constants


INSERTED = "(a.intervals = 1 AND (i.way = 2 OR (i.way = 1 AND h.is_open = 1)))"
"""Which amounts ``a`` of runs ``i`` in hours ``h`` are inserted, and not compared with what stands."""

# Whether any amount can be another: several intervals in an hour, an interval that is not inserted, a covered hour.
ANY_BY_ROW = """
SELECT 1 WHERE EXISTS (SELECT 1 FROM metered_amount WHERE intervals > 1)
    OR EXISTS (SELECT 1 FROM metered_run WHERE way = 0)
    OR (EXISTS (SELECT 1 FROM metered_run WHERE way = 1) AND EXISTS (SELECT 1 FROM metered_hour WHERE is_open = 0))"""


@cache
def rule() -> str:
    """The metering rule, as it stands in ``metering/reserved.sql``."""
    return files("gpuledger.metering").joinpath("reserved.sql").read_text(encoding="utf-8")


@cache
def parts() -> tuple[str, str, str]:
    """The rule in three statements: the intervals and the amounts into relations of that name, and the rows.

    The text is the rule's own; only where it names an interval or an amount, the relation takes the place of what it
    is made of.
    """
    _, runs, amounts, rows = rule().split("\n-- [")
    return _filling("metered_run", runs, ", 1 AS way"), _filling("metered_amount", amounts, ""), rows.partition("\n")[2]


def _filling(name: str, part: str, more: str) -> str:
    tables = part.partition("\n")[2].rstrip().removesuffix(",")
    return f"INSERT INTO {name} WITH\n{tables}\nSELECT t.*{more} FROM {name} AS t"
