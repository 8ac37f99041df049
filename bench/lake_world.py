"""A lake of a busy fleet, made by DuckDB: lifecycles of a month, or a month of records with the texts behind them.

In: how much. Out: a folder that ``gpuledger`` takes for a lake that was exported.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from gpuledger.ledger import parquet
from gpuledger.ledger.duck import Duck
from gpuledger.ledger.lake import file_of, put_manifest
from gpuledger.model.lake import TEXTS, LakeFile, Manifest, month_span
from gpuledger.model.moments import HOUR_US, SECOND_US

MONTH = "2026-11"
SINCE_US, UNTIL_US = month_span(MONTH)
PLACES = 200
TEAMS = 50
WRITER = "lab.controller"

_EVENTS = f"""
SELECT '{WRITER}' AS writer, i * 5 + k AS number, printf('job-%08d', i) AS workload, k || '' AS event_id,
    k AS sequence, state, at_us, at_us AS recorded_at_us, 'controller' AS source, 0 AS is_declared,
    sha256('subject' || i) AS subject,
    '' AS requested_class, CASE WHEN k = 2 THEN substr(sha256('place' || hash(i * 17) % {PLACES}), 1, 32) ELSE '' END
        AS placement
FROM (
    SELECT i, s.k, s.state, t + CASE s.k WHEN 1 THEN 0 WHEN 2 THEN 10 WHEN 3 THEN 60 WHEN 4 THEN 60 + d ELSE 61 + d END
        * {SECOND_US} AS at_us
    FROM (
        SELECT i,
            {SINCE_US} + (hash(i) % (29 * 86400))::BIGINT * {SECOND_US} + (hash(i + 7) % {SECOND_US})::BIGINT AS t,
            60 + (hash(i * 31) % 14400)::BIGINT AS d
        FROM range($low, $high) AS r(i)
    ) CROSS JOIN (
        VALUES (1, 'pending'), (2, 'provisioning'), (3, 'running'), (4, 'stopping'), (5, 'stopped')
    ) AS s(k, state)
) ORDER BY i, k"""

_RECORDS = f"""
SELECT 'lab.meter' AS writer, row_number() OVER () + $before AS number, 'gpu.reserved' AS meter, hour_us,
    'n' || place AS host, 'placement:' || substr(sha256('place' || place), 1, 32) AS device,
    sha256('subject' || i) AS subject, 'reserved' AS context, 3600 - (hash(i, hour_us) % 3)::BIGINT AS quantity,
    3 AS evidence_count, substr(sha256('evidence' || i), 1, 16) AS evidence_hash,
    {UNTIL_US} + 600000000 AS recorded_at_us
FROM (
    SELECT i, hash(i * 17) % {PLACES} AS place,
        {SINCE_US} + (hash(i) % (30 * 24 - $hours))::BIGINT * {HOUR_US} AS from_us
    FROM range($workloads) AS r(i)
), (SELECT {SINCE_US} + h * {HOUR_US} AS hour_us FROM range($first, $last) AS r(h))
WHERE hour_us >= from_us AND hour_us < from_us + $hours * {HOUR_US}
ORDER BY hour_us, host, device, subject"""

_TEXTS = f"""
SELECT sha256('subject' || i) AS text_key, substr(sha256('salt' || i), 1, 32) AS salt, sha256('digest' || i) AS digest,
    printf('{{"labels": "{{\\"qos\\": \\"%s\\"}}", "team": "team-%02d", "user": "user-%04d", "workload": "job-%08d"}}',
        CASE WHEN i % 3 = 0 THEN 'LS' ELSE 'BE' END, i % {TEAMS}, i % 1000, i) AS json
FROM range($workloads) AS r(i) ORDER BY text_key"""


def build_events(folder: Path, workloads: int) -> None:
    """A lake of lifecycles: five events of each workload, spread over a month."""
    step = 100_000

    def batches(duck: Duck) -> Any:
        for low in range(0, workloads, step):
            yield from duck.batches(_EVENTS, {"low": low, "high": min(low + step, workloads)})

    with Duck(_made(folder)) as duck:
        files = [
            _write(folder, "workload_event", MONTH, batches(duck), {WRITER: (1, workloads * 5)}),
            _write_places(folder),
        ]
    _seal(folder, files, {WRITER: workloads * 5})


def build_records(folder: Path, workloads: int, hours: int) -> None:
    """A lake of records: of each workload one for each of so many hours, its text, and a pass over the month."""

    def batches(duck: Duck) -> Any:
        before = 0
        for first in range(0, 30 * 24, 48):
            bound = {"workloads": workloads, "hours": hours, "first": first, "last": first + 48, "before": before}
            for batch in duck.batches(_RECORDS, bound):
                before += batch.num_rows
                yield batch

    with Duck(_made(folder)) as duck:
        records = workloads * hours
        files = [
            _write(folder, "usage_record", MONTH, batches(duck), {"lab.meter": (1, records)}),
            _write(folder, TEXTS, "", duck.batches(_TEXTS, {"workloads": workloads}), {}),
            _write_places(folder),
        ]
    at_us = UNTIL_US + 600_000_000
    marks = json.dumps({"lab.controller": 1})
    covered = ("lab.meter", records + 1, at_us, SINCE_US, UNTIL_US, marks, records, 0)
    event = ("lab.controller", 1, "job-0", "1", 1, "pending", SINCE_US, SINCE_US, "controller", 0, "", "", "")
    for table, row in (("pass", covered), ("workload_event", event)):
        name = f"{table}/{MONTH}.parquet"
        numbers = {str(row[0]): (int(row[1]), int(row[1]))}
        files.append(file_of(name, table, MONTH, numbers, parquet.write(folder / name, table, [[row]])))
    _seal(folder, files, {"lab.meter": records + 1, "lab.controller": 1})


def places() -> list[tuple[Any, ...]]:
    """Rows of the table ``placement``."""
    rows = []
    for number in range(PLACES):
        key = hashlib.sha256(f"place{number}".encode()).hexdigest()[:32]
        rows.append(("lab.place", number + 1, key, "H100-80GB", "eu", f"n{number}", "", "[]", 1 + number % 8, 1, 1))
    return rows


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write_places(folder: Path) -> LakeFile:
    rows = places()
    written = parquet.write(folder / "placement.parquet", "placement", [rows])
    return file_of("placement.parquet", "placement", "", {"lab.place": (1, len(rows))}, written)


def _write(folder: Path, table: str, month: str, batches: Any, numbers: dict[str, tuple[int, int]]) -> LakeFile:
    name = f"{table}/{month}.parquet" if month else f"{table}.parquet"
    schema = parquet.schema_of(table)
    module = parquet.arrow()
    cast = (module.Table.from_batches([batch]).select(schema.names).cast(schema) for batch in batches)
    return file_of(name, table, month, numbers, parquet.write_arrow(folder / name, schema, cast))


def _seal(folder: Path, files: list[LakeFile], marks: dict[str, int]) -> None:
    marks = {**marks, "lab.place": PLACES}
    heads = {writer: (number, "0" * 64) for writer, number in marks.items()}
    put_manifest(
        folder, Manifest(exported_at_us=UNTIL_US + 600_000_000, marks=marks, heads=heads, root="", files=()), files
    )
