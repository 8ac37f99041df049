"""The metering rule over the events of a lake: Parquet in, rows of records out, in bounded memory.

In: a lake. Out: records of closed hours, in the order of their hours and keys. Events are read by ranges of workloads,
which are parts of the sorted files; the intervals found are put aside, and cut at the hours month by month, some days at
a time. The rule is ``metering/reserved.sql`` and nothing else; what is added here is what a record carries beside the
seconds: the placement's machine, the meters of its class, and the number and hash of the events behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpuledger.ledger import metered, parquet
from gpuledger.ledger.duck import RULE_READS, Duck
from gpuledger.ledger.lake import Lake
from gpuledger.model.lake import month_of, month_span
from gpuledger.model.meters import RESERVED_METERS
from gpuledger.model.moments import HOUR_US, SECOND_US
from gpuledger.model.reserved import PLACED, RESERVED, meters_of
from gpuledger.model.workload_rows import PlacementRow

EVENTS_AT_ONCE = 700_000
"""Events whose intervals are derived together, about."""

ROWS_AT_ONCE = 600_000
"""Amounts that are cut together, about."""

_EVENTS = "workload_event"

_ASIDE = """
CREATE TABLE aside (
    run BIGINT, workload VARCHAR, source VARCHAR, is_declared BIGINT, from_us BIGINT, since_us BIGINT, until_us BIGINT,
    placement VARCHAR, subject VARCHAR, first_event VARCHAR, begin_event VARCHAR, end_event VARCHAR, way BIGINT
);
CREATE TABLE around (workload VARCHAR, hour_us BIGINT, refs VARCHAR[]);
CREATE TABLE meter_of (placement VARCHAR, meter VARCHAR, host VARCHAR, device VARCHAR)"""

# The hours in which a workload has several intervals: only there are there more events behind a row than three. The
# events of the hour, and the ones next to it on both sides.
_AROUND = f"""
INSERT INTO around
WITH edge AS (
    SELECT run, workload, since_us - since_us % {HOUR_US} AS hour_us FROM metered_run
    UNION
    SELECT run, workload, until_us - 1 - (until_us - 1) % {HOUR_US} FROM metered_run
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

_REFS = """
CASE WHEN a.intervals = 1 THEN [i.first_event, i.begin_event, i.end_event] ELSE LIST_APPEND(x.refs, i.first_event) END"""


def _hash(refs: str) -> str:
    return f"SUBSTR(SHA256(ARRAY_TO_STRING(LIST_SORT({refs}), CHR(10))), 1, 16)"


# Two workloads share a subject only where no text names them. Each is rounded by itself, then they are one record.
_ROWS = f"""
CREATE OR REPLACE TEMP TABLE cut_row AS
SELECT a.hour_us, i.placement, i.subject, a.amount_us // {SECOND_US} AS seconds,
    LEN(q.refs) AS evidence_count, {_hash("q.refs")} AS evidence_hash, q.refs AS refs
FROM metered_amount AS a
JOIN metered_run AS i ON i.run = a.run
LEFT JOIN around AS x ON a.intervals > 1 AND x.workload = i.workload AND x.hour_us = a.hour_us
CROSS JOIN LATERAL (SELECT LIST_DISTINCT({_REFS}) AS refs) AS q
WHERE a.amount_us >= {SECOND_US} AND i.placement <> ''"""  # noqa: S608 constants

# Of an interval by itself the evidence is that of all its hours: found once, when it is put aside.
_SIMPLE = f"""
CREATE OR REPLACE TEMP TABLE cut_row AS
SELECT a.hour_us, i.placement, i.subject, a.amount_us // {SECOND_US} AS seconds,
    i.evidence_count, i.evidence_hash
FROM metered_amount AS a JOIN month_run AS i ON i.run = a.run
WHERE a.intervals = 1 AND a.amount_us >= {SECOND_US} AND i.placement <> ''
UNION ALL
SELECT a.hour_us, i.placement, i.subject, a.amount_us // {SECOND_US}, LEN(q.refs), {_hash("q.refs")}
FROM metered_amount AS a JOIN month_run AS i ON i.run = a.run
JOIN around AS x ON x.workload = i.workload AND x.hour_us = a.hour_us
CROSS JOIN LATERAL (SELECT LIST_DISTINCT(LIST_APPEND(x.refs, i.first_event)) AS refs) AS q
WHERE a.intervals > 1 AND a.amount_us >= {SECOND_US} AND i.placement <> ''"""  # noqa: S608 constants
