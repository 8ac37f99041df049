"""``make bench-usage``: usage over a month of a busy box against the best hand-written SQL over its records.

2,000,000 finished processes of 3,000 programs on 8 GPUs, some 500,000 records. Building and metering that month
takes a while once; it is kept under ``--work``. Exit 1 when a limit is broken or an answer differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hand_written
import import_race
import month
from hand_written import Line
from month import DAYS, MONTH_US

from gpuledger.accounting.owners import Naming
from gpuledger.ledger.schema import METADATA
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US
from gpuledger.model.reasons import UNATTRIBUTED
from gpuledger.model.rows import DriverRecord, UsageRecord
from gpuledger.operations.meter import meter
from gpuledger.operations.usage import policies, usage

MOST_RATIO = 1.5
MOST_IMPORT_S = 1.0
SHORT_DAYS = 3
"""The shorter history, of the same box, that a pass with nothing new is compared with."""
LATE_ROWS = 200


def main() -> int:
    """Build what is missing, race, and print."""
    words = _arguments()
    folder = words.work / _recipe()
    folder.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {
        "machine": f"{os.cpu_count()} x {platform.machine()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}",
        "broken": [],
    }
    _say(words, result["machine"])
    path = _metered(folder, words, result, days=DAYS)
    short = _metered(folder, words, result, days=SHORT_DAYS)
    _race(path, words, result)
    _command(path, words, result)
    _idle_passes(path, short, words, result)
    _import(words, result)
    _say(words, "")
    for sentence in result["broken"] or ["all limits hold, and the answers are equal"]:
        _say(words, f"LIMIT BROKEN: {sentence}" if result["broken"] else sentence)
    if words.json:
        print(json.dumps(result, indent=1))
    return 1 if result["broken"] else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "gpuledger-bench", help="kept here")
    parser.add_argument("--processes", type=int, default=month.PROCESSES, help="finished processes in the month")
    parser.add_argument("--runs", type=int, default=9, help="of each contender, interleaved")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, the talk on stderr")
    return parser.parse_args()


def _say(words: argparse.Namespace, line: str) -> None:
    print(line, file=sys.stderr if words.json else sys.stdout, flush=True)


def _recipe() -> str:
    """Names what a kept month was made of: its builder and the tables."""
    tables = [(each.name, list(each.columns.keys()), sorted(str(index.name) for index in each.indexes))
              for each in METADATA.sorted_tables]  # fmt: skip
    return hashlib.sha256(Path(month.__file__).read_bytes() + str(tables).encode()).hexdigest()[:12]


def _metered(folder: Path, words: argparse.Namespace, result: dict[str, Any], *, days: int) -> Path:
    """A month with its records: built, metered from scratch, late evidence booked as corrections."""
    path = folder / f"metered-{days}d-{words.processes}.db"
    if path.exists():
        return path
    built = month.evidence(folder, days=days, processes=words.processes)
    told = {"days": days, "evidence_rows": built.rows, "append_seconds": round(built.seconds, 1)}
    if built.rows:
        _say(words, f"{days} days built: {built.rows} rows in {built.seconds:.0f} s, "
                    f"{built.rows / built.seconds:.0f} rows/s through the product's own append")  # fmt: skip
    fresh = path.with_suffix(f".{os.getpid()}")
    shutil.copyfile(built.path, fresh)
    end_us = MONTH_US + days * DAY_US
    with Ledger.open(fresh, mode="append") as ledger:
        finished = ledger.count(DriverRecord)
        began, cpu = time.perf_counter(), time.process_time()
        passed = meter(ledger, now_us=end_us + 2 * HOUR_US, writer=f"{month.HOST}.meter")
        told |= {
            "finished": finished,
            "records": len(passed.records),
            "pass_seconds": round(time.perf_counter() - began, 1),
            "pass_cpu_seconds": round(time.process_time() - cpu, 1),
        }
        began = time.perf_counter()
        ledger.append(_late(days), writer=month.AGENT, at_us=end_us + 3 * HOUR_US)
        late = meter(ledger, now_us=end_us + 3 * HOUR_US, writer=f"{month.HOST}.meter")
        told |= {"late_pass_seconds": round(time.perf_counter() - began, 1), "corrections": len(late.corrections)}
    fresh.rename(path)
    built.path.unlink()
    result[f"built_{days}d"] = told
    _say(words, f"{days} days metered from scratch: {told['finished']} finished processes to {told['records']} records "
                f"in {told['pass_seconds']} s ({told['pass_cpu_seconds']} s CPU); {LATE_ROWS} late rows to "
                f"{told['corrections']} corrections in {told['late_pass_seconds']} s")  # fmt: skip
    return path


def _late(days: int) -> list[DriverRecord]:
    """Finished processes of closed hours, read late: 200 of them, over three hours of one day."""
    start_us = MONTH_US + days // 2 * DAY_US
    return [
        DriverRecord(
            host=month.HOST, device=month.GPUS[number % 8], pid=4_200_000 + number,
            started_at_us=start_us + number * 50_000_000, context_ms=5_000, peak_memory_mib=500, gpu_percent=1,
            memory_percent=1, read_at_us=MONTH_US + days * DAY_US, method="nvml",
        )
        for number in range(LATE_ROWS)
    ]  # fmt: skip


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = call()
    return time.perf_counter() - began, answer


def _race(path: Path, words: argparse.Namespace, result: dict[str, Any]) -> None:
    """usage and the hand-written statements, in one process, one after the other, again and again."""
    since_us, until_us = MONTH_US, MONTH_US + DAYS * DAY_US
    now_us = until_us + 4 * HOUR_US
    bare = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    bare.execute("PRAGMA cache_size = -16384")  # as the product has it
    with Ledger.open(path, mode="read") as ledger:
        records = ledger.count(UsageRecord)
        texts = ledger.texts()
        naming = Naming(texts=texts, versions=policies(ledger, now_us=now_us))
        services = {key: naming.owner(key, since_us).service for key in texts}  # given to the other side for nothing
        contenders: dict[str, Callable[[], Any]] = {
            "usage": lambda: usage(
                ledger, meter="gpu.context", by=["service"], since_us=since_us, until_us=until_us, now_us=now_us
            ),
            "SQL, one pass": lambda: hand_written.by_service(
                bare, services, since_us=since_us, until_us=until_us, one_pass=True
            ),
            "SQL, a pass a meter": lambda: hand_written.by_service(
                bare, services, since_us=since_us, until_us=until_us, one_pass=False
            ),
        }
        times: dict[str, list[float]] = {name: [] for name in contenders}
        answers: dict[str, Any] = {}
        for call in contenders.values():
            call()  # the file's pages are warm for all
        for _ in range(words.runs):
            for name, call in contenders.items():
                seconds, answers[name] = _seconds(call)
                times[name].append(seconds)
    bare.close()
    middle = {name: statistics.median(found) for name, found in times.items()}
    best = min(middle["SQL, one pass"], middle["SQL, a pass a meter"])
    ratio = middle["usage"] / best
    _say(words, f"\nusage --by service over the month, {records} records, {words.runs} runs each, interleaved:")
    for name, found in times.items():
        _say(words, f"  {name:22} min {min(found):.3f} s, median {middle[name]:.3f} s")
    _say(words, f"  ratio of medians to the better statement: {ratio:.2f} (limit {MOST_RATIO})")
    result["usage"] = {
        "records": records,
        "seconds": {name: {"min": min(found), "median": middle[name]} for name, found in times.items()},
        "ratio": round(ratio, 3),
    }
    if ratio > MOST_RATIO:
        result["broken"].append(f"usage takes {ratio:.2f} times the hand-written SQL, more than {MOST_RATIO}")
    ours = _lines(answers["usage"])
    for name in ("SQL, one pass", "SQL, a pass a meter"):
        if ours != sorted(answers[name]):
            result["broken"].append(f"usage and the hand-written statement ({name}) give different answers")


def _lines(report: Any) -> list[Line]:
    """A usage report as the hand-written side gives it."""
    named = [(row.key[0], row) for row in report.rows]
    unnamed = [(f"{UNATTRIBUTED}{line.cause}", line) for line in report.unattributed]
    return sorted(
        (name, row.quantity, row.settled, row.observed, None if isinstance(row.busy_ms, Missing) else row.busy_ms)
        for name, row in [*named, *unnamed]
    )


def _command(path: Path, words: argparse.Namespace, result: dict[str, Any]) -> None:
    """The whole command against a Python that starts and runs the same statement."""
    installed = shutil.which("gpuledger", path=str(Path(sys.executable).parent)) or "gpuledger"
    until_us = MONTH_US + DAYS * DAY_US
    script = (
        "import sqlite3, sys; sys.path.insert(0, sys.argv[1]); import hand_written; "
        "bare = sqlite3.connect(f'file:{sys.argv[2]}?mode=ro', uri=True); "
        f"print(len(hand_written.by_service(bare, {{}}, since_us={MONTH_US}, until_us={until_us}, one_pass=False)))"
    )
    commands = {
        "gpuledger usage": [
            *(installed, "usage", "--ledger", str(path), "--since", "2026-10", "--until", "2026-11"),
            *("--now", "2026-11-01T04:00Z", "--by", "service", "--format", "json"),
        ],
        "python and SQL": [sys.executable, "-c", script, str(Path(__file__).parent), str(path)],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(max(3, words.runs // 3)):
        for name, command in commands.items():
            seconds, _ = _seconds(lambda command=command: subprocess.run(command, check=True, capture_output=True))
            times[name].append(seconds)
    middle = {name: statistics.median(found) for name, found in times.items()}
    _say(
        words, "\nthe whole command, a process each: " + ", ".join(f"{name} {middle[name]:.2f} s" for name in commands)
    )
    result["command"] = middle


def _idle_passes(path: Path, short: Path, words: argparse.Namespace, result: dict[str, Any]) -> None:
    """A pass with nothing new, after a month and after three days."""
    times: dict[str, float] = {}
    for name, place, days in (("after a month", path, DAYS), ("after three days", short, SHORT_DAYS)):
        with Ledger.open(place, mode="append") as ledger:
            now_us = MONTH_US + days * DAY_US + 3 * HOUR_US
            found = [
                _seconds(
                    lambda ledger=ledger, now_us=now_us: meter(ledger, now_us=now_us, writer=f"{month.HOST}.meter")
                )
                for _ in range(words.runs)
            ]
            assert not any(passed.records or passed.corrections for _, passed in found), "there was something new"
            times[name] = statistics.median(seconds for seconds, _ in found)
    _say(
        words,
        "\na pass with nothing new: " + ", ".join(f"{name} {1000 * spent:.1f} ms" for name, spent in times.items()),
    )
    result["idle_pass_seconds"] = times


def _import(words: argparse.Namespace, result: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory(prefix="gpuledger-bench-") as folder:
        dump = Path(folder) / "accounted.csv"
        import_race.write_dump(dump)
        ours, theirs = [], []
        for number in range(words.runs):
            ours.append(import_race.imported(dump, Path(folder) / f"ledger-{number}.db"))
            theirs.append(import_race.bare(dump, Path(folder) / f"bare-{number}.db"))
    mine, bare = statistics.median(ours), statistics.median(theirs)
    _say(words, f"\nimport of {import_race.ROWS} rows of nvidia-smi: {mine:.3f} s (limit {MOST_IMPORT_S:g} s); "
                f"csv.reader and one insert {bare:.3f} s, ratio {mine / bare:.1f}")  # fmt: skip
    result["import"] = {"seconds": mine, "bare_seconds": bare, "ratio": round(mine / bare, 2)}
    if mine > MOST_IMPORT_S:
        result["broken"].append(f"the import takes {mine:.2f} s, more than {MOST_IMPORT_S:g} s")


if __name__ == "__main__":
    sys.exit(main())
