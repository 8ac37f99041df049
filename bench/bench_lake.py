"""``make bench-lake``: lakes against bare SQL on the same engine.

Two races. Parquet to Parquet: ``meter --lake`` over ten million events of two million workloads, against the split that
writes the same records by one statement of DuckDB: the same rows, columns and order, out of lifecycles that keep all
rules, so without the rules. Beside it the split of hours alone, three columns without owner, place and evidence, to see
what the columns cost. All with the same memory and threads. And a month by team over ten million records, against the
best hand-written SQL on the same store: the lake, and a ledger in SQLite. Each runner is a process of its own: CPU,
wall and peak memory are the kernel's. What was built is kept under ``--work``. Exit 1 when a limit is broken or two
answers differ.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import lake_world
from process_cost import own_peak_mib

from gpuledger.ledger import parquet
from gpuledger.ledger.duck import MEMORY_MIB, Duck
from gpuledger.ledger.store import Ledger
from gpuledger.model.lake import DERIVED, MANIFEST
from gpuledger.model.meters import GPU_RESERVED
from gpuledger.model.moments import HOUR_US
from gpuledger.operations.meter_lake import meter_lake
from gpuledger.operations.usage_lake import usage_lake
from gpuledger.operations.usage_reserved import usage_reserved

METER_TIMES, USAGE_TIMES, MOST_MIB = 2.0, 1.5, 1000
LABELS = {
    "hours-split": "hours alone, three columns",
    "records-split": "the same records by hand",
    "meter-lake": "meter --lake",
    "sql-lake": "by team, hand-written DuckDB",
    "usage-lake": "by team, usage --lake",
    "sql-ledger": "by team, hand-written SQLite",
    "usage-ledger": "by team, usage of the ledger",
}


def main() -> int:
    """Build what is missing, race, print."""
    words = _arguments()
    if words.runner:
        answer = _RUNNERS[words.runner](words)
        sys.stdout.write(json.dumps({"answer": answer, "mib": own_peak_mib()}))
        return 0
    words.work.mkdir(parents=True, exist_ok=True)
    print(f"{os.cpu_count()} x {platform.machine()}, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    print(f"{words.workloads * 5:,} events of {words.workloads:,} workloads; {words.records:,} records by team")
    _build(words)
    broken = _race(words, "meter", ("records-split", "meter-lake"), METER_TIMES, beside="hours-split")
    broken += _race(words, "usage of the lake", ("sql-lake", "usage-lake"), USAGE_TIMES)
    if not words.no_sqlite:
        broken += _race(words, "usage of SQLite", ("sql-ledger", "usage-ledger"), USAGE_TIMES)
    for each in broken:
        print(f"BROKEN: {each}")
    return 1 if broken else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=2_000_000)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--small", action="store_true", help="a twentieth of all")
    parser.add_argument("--no-sqlite", action="store_true", help="without the ledger, which takes long to build")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("/tmp/gpuledger-bench-lake"))
    parser.add_argument("--runner", choices=sorted(_RUNNERS), help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.small:
        words.workloads, words.records = words.workloads // 20, words.records // 20
    return words


def _events(words: argparse.Namespace) -> Path:
    return Path(words.work / f"events-{words.workloads}")


def _records(words: argparse.Namespace) -> Path:
    return Path(words.work / f"records-{words.records}")


def _hours(words: argparse.Namespace) -> tuple[int, int]:
    """Workloads, and hours of each."""
    return max(1, words.records // 100), 100


def _build(words: argparse.Namespace) -> None:
    if not (_events(words) / MANIFEST).exists():
        print("building events")
        lake_world.build_events(_events(words), words.workloads)
    if not (_records(words) / MANIFEST).exists():
        print("building records")
        lake_world.build_records(_records(words), *_hours(words))
    place = _records(words).with_suffix(".db")
    if not words.no_sqlite and not place.exists():
        print("building a ledger of these records")
        started = time.monotonic()
        _build_ledger(_records(words), place)
        print(f"  in {time.monotonic() - started:.0f} s")


def _build_ledger(lake: Path, place: Path) -> None:
    """The same rows in SQLite: with its indexes, without its chain, which nobody asks here."""
    unfinished = place.with_suffix(".building")
    unfinished.unlink(missing_ok=True)
    Ledger.open(unfinished, mode="append").close()
    connection = sqlite3.connect(unfinished, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -400000")
    guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in guards:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("BEGIN")
    for table in ("placement", "identity_text", "workload_event", "pass", "usage_record"):
        marks = ", ".join("?" * len(parquet.columns_of(table)))
        for path in sorted(lake.glob(f"{table}/*.parquet")) or [lake / f"{table}.parquet"]:
            for rows in parquet.read(path, table):
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    for writer, number in connection.execute("SELECT writer, MAX(number) FROM usage_record GROUP BY writer").fetchall():
        connection.execute("INSERT INTO link VALUES (?, 1, ?, 1, ?, ?)", (writer, number + 1, "0" * 64, "1" * 64))
    for _, sql in guards:
        connection.execute(sql)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    unfinished.replace(place)


def _race(
    words: argparse.Namespace, what: str, runners: tuple[str, str], most: float, *, beside: str = ""
) -> list[str]:
    """Runs by turns; the smallest of each is compared: what else the machine did only adds. No limit for ``beside``."""
    taken: dict[str, list[dict[str, Any]]] = {runner: [] for runner in (*([beside] if beside else []), *runners)}
    for _ in range(words.runs):
        for runner, runs in taken.items():
            runs.append(_run(words, runner))
    print(f"{what}:")
    for runner, runs in taken.items():
        cpu, wall = (sorted(run[name] for run in runs) for name in ("cpu", "wall"))
        print(
            f"  {LABELS[runner]:<34} CPU {cpu[0]:7.2f} s (median {statistics.median(cpu):.2f})   "
            f"wall {wall[0]:7.2f} s   peak {max(run['mib'] for run in runs)} MiB"
        )
    broken = []
    bare, ours = (taken[runner] for runner in runners)
    for name in ("cpu", "wall"):
        ratio = min(run[name] for run in ours) / min(run[name] for run in bare)
        print(f"  {name} ratio {ratio:.2f} (limit {most})")
        if ratio > most:
            broken.append(f"{what}: {name} {ratio:.2f} of bare SQL, limit {most}")
    if (peak := max(run["mib"] for run in ours)) > MOST_MIB:
        broken.append(f"{what}: {peak} MiB, limit {MOST_MIB}")
    if len({json.dumps(run["answer"]) for run in [*bare, *ours]}) != 1:
        broken.append(f"{what}: the answers differ")
    if beside:
        ratio = min(run["cpu"] for run in ours) / min(run["cpu"] for run in taken[beside])
        print(f"  cpu ratio to {LABELS[beside]}: {ratio:.2f} (no limit)")
        if {json.dumps(run["answer"]) for run in taken[beside]} != {json.dumps(ours[0]["answer"][:1])}:
            broken.append(f"{what}: {LABELS[beside]} has other seconds")
    return broken


def _run(words: argparse.Namespace, runner: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--runner", runner, "--work", str(words.work)]
    command += ["--workloads", str(words.workloads), "--records", str(words.records)]
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{runner} ended with {process.returncode}")
    return {
        **json.loads(told), "wall": time.monotonic() - started, "cpu": used.ru_utime + used.ru_stime,
    }  # fmt: skip


_HOURS_SPLIT = f"""
COPY (
    WITH held AS (
        SELECT * FROM (
            SELECT workload, state, at_us, LEAD(at_us) OVER (PARTITION BY workload ORDER BY at_us, sequence) AS next_us
            FROM read_parquet('{{source}}')
        ) WHERE state = 'running'
    )
    SELECT workload, hour_us, SUM(LEAST(next_us, hour_us + {HOUR_US}) - GREATEST(at_us, hour_us)) // 1000000 AS seconds
    FROM (SELECT *, UNNEST(RANGE(at_us - at_us % {HOUR_US}, next_us, {HOUR_US})) AS hour_us FROM held)
    WHERE hour_us < {lake_world.UNTIL_US}
    GROUP BY workload, hour_us
) TO '{{target}}' (FORMAT parquet, COMPRESSION zstd)"""


# What a person would write who knows that every workload here runs once, from its provisioning to its stopping: the
# record's own columns, in the order of its key, with the hash of the three events behind it, sorted as text.
_RECORDS_SPLIT = f"""
COPY (
    WITH told AS (
        SELECT workload, state, subject, at_us, LEAD(at_us) OVER life AS next_us, LAG(placement) OVER life AS placement,
            'event:' || writer || '/' || LAG(number) OVER life AS first_ref, 'event:' || writer || '/' || number AS ref,
            'event:' || writer || '/' || LEAD(number) OVER life AS next_ref
        FROM read_parquet('{{events}}') WINDOW life AS (PARTITION BY workload ORDER BY at_us, sequence)
    ),
    held AS (
        SELECT *, SUBSTR(SHA256(LEAST(first_ref, ref, next_ref) || CHR(10)
            || GREATEST(LEAST(first_ref, ref), LEAST(GREATEST(first_ref, ref), next_ref)) || CHR(10)
            || GREATEST(first_ref, ref, next_ref)), 1, 16) AS evidence_hash
        FROM told WHERE state = 'running'
    ),
    cut AS (
        SELECT hour_us, placement, subject, evidence_hash,
            LEAST(next_us, hour_us + {HOUR_US}) - GREATEST(at_us, hour_us) AS amount_us
        FROM (SELECT *, UNNEST(RANGE(at_us - at_us % {HOUR_US}, next_us, {HOUR_US})) AS hour_us FROM held)
        WHERE hour_us < {lake_world.UNTIL_US}
    ),
    record AS (
        SELECT c.hour_us, p.machine AS host, 'placement:' || c.placement AS device, c.subject,
            SUM(c.amount_us) // 1000000 AS quantity, MIN(c.evidence_hash) AS evidence_hash
        FROM cut AS c JOIN read_parquet('{{places}}') AS p ON p.placement = c.placement
        GROUP BY c.hour_us, p.machine, c.placement, c.subject HAVING SUM(c.amount_us) >= 1000000
        ORDER BY c.hour_us, p.machine, c.placement, c.subject
    )
    SELECT 'lake' AS writer, ROW_NUMBER() OVER () AS number, 'gpu.reserved' AS meter, hour_us, host, device, subject,
        'reserved' AS context, CAST(quantity AS BIGINT) AS quantity, 3 AS evidence_count, evidence_hash,
        {lake_world.UNTIL_US} AS recorded_at_us
    FROM record
) TO '{{target}}' (FORMAT parquet, COMPRESSION zstd)"""

# Every row, whatever the order in which it is read.
_ANSWER = """
SELECT CAST(SUM(quantity) AS BIGINT), COUNT(*),
    CAST(BIT_XOR(HASH(meter, hour_us, host, device, subject, context, quantity, evidence_count::BIGINT, evidence_hash))
        AS VARCHAR)
FROM read_parquet('{files}')"""


def _hours_split(words: argparse.Namespace) -> Any:
    target = words.work / "hours.parquet"
    with Duck(words.work, memory_mib=MEMORY_MIB) as duck:
        duck.run(_HOURS_SPLIT.format(source=_events(words) / "workload_event" / "*.parquet", target=target))
        return list(duck.rows(f"SELECT CAST(SUM(seconds) AS BIGINT) FROM read_parquet('{target}')")[0])


def _records_split(words: argparse.Namespace) -> Any:
    lake, target = _events(words), words.work / "records.parquet"
    with Duck(words.work, memory_mib=MEMORY_MIB) as duck:
        duck.run(
            _RECORDS_SPLIT.format(
                events=lake / "workload_event" / "*.parquet", places=lake / "placement.parquet", target=target
            )
        )
        return list(duck.rows(_ANSWER.format(files=target))[0])


def _meter_lake(words: argparse.Namespace) -> Any:
    lake = _events(words)
    shutil.rmtree(lake / DERIVED, ignore_errors=True)
    meter_lake(lake)
    with Duck(words.work, memory_mib=MEMORY_MIB) as duck:
        return list(duck.rows(_ANSWER.format(files=f"{lake}/{DERIVED}/*.parquet"))[0])


_BY_TEAM_LAKE = """
SELECT t.team, SUM(r.quantity * p.count * p.share_num / p.share_den)
FROM read_parquet('{lake}/usage_record/*.parquet') AS r
JOIN (
    SELECT text_key, json_extract_string(json, '$.team') AS team FROM read_parquet('{lake}/identity_text.parquet')
) AS t ON t.text_key = r.subject
JOIN read_parquet('{lake}/placement.parquet') AS p ON 'placement:' || p.placement = r.device
WHERE r.meter = 'gpu.reserved' AND r.hour_us >= {since} AND r.hour_us < {until} GROUP BY 1 ORDER BY 1"""

_BY_TEAM_SQLITE = """
SELECT json_extract(t.json, '$.team'), SUM(r.quantity * p.count)
FROM (
    SELECT subject, device, SUM(quantity) AS quantity FROM usage_record
    WHERE meter = 'gpu.reserved' AND hour_us >= {since} AND hour_us < {until} GROUP BY subject, device
) AS r
JOIN identity_text AS t ON t.text_key = r.subject
JOIN placement AS p ON p.placement = substr(r.device, 11) GROUP BY 1 ORDER BY 1"""

_WINDOW = {"since": lake_world.SINCE_US, "until": lake_world.UNTIL_US}


def _sql_lake(words: argparse.Namespace) -> Any:
    with Duck(memory_mib=MEMORY_MIB) as duck:
        return [[team, int(value)] for team, value in duck.rows(_BY_TEAM_LAKE.format(lake=_records(words), **_WINDOW))]


def _usage_lake(words: argparse.Namespace) -> Any:
    report = usage_lake(
        _records(words), meter=GPU_RESERVED, by=("team",), since_us=lake_world.SINCE_US, until_us=lake_world.UNTIL_US,
        now_us=lake_world.UNTIL_US + HOUR_US,
    )  # fmt: skip
    return sorted([row.key[0], int(row.quantity)] for row in report.rows)


def _sql_ledger(words: argparse.Namespace) -> Any:
    connection = sqlite3.connect(f"file:{_records(words).with_suffix('.db')}?mode=ro", uri=True)
    return [[team, int(value)] for team, value in connection.execute(_BY_TEAM_SQLITE.format(**_WINDOW))]


def _usage_ledger(words: argparse.Namespace) -> Any:
    with Ledger.open(_records(words).with_suffix(".db"), mode="read") as ledger:
        report = usage_reserved(
            ledger, meter=GPU_RESERVED, by=("team",), since_us=lake_world.SINCE_US, until_us=lake_world.UNTIL_US,
            now_us=lake_world.UNTIL_US + 600_000_000,
        )  # fmt: skip
    return sorted([row.key[0], int(row.quantity)] for row in report.rows)


_RUNNERS = {
    "hours-split": _hours_split,
    "records-split": _records_split,
    "meter-lake": _meter_lake,
    "sql-lake": _sql_lake,
    "usage-lake": _usage_lake,
    "sql-ledger": _sql_ledger,
    "usage-ledger": _usage_ledger,
}


if __name__ == "__main__":
    sys.exit(main())
