"""``make bench-metering``: reserved time, from transitions to hourly records, against bare SQL doing the same insert.

Five races, each in one run: closing an hour of a large cluster, a pass with nothing new, transitions one by one and in
batches, a month of jobs as history, and the import of a trace. Exit 1 when a limit is broken. Ledgers are built once
and kept under ``--work``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
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

import bare_metering
import reserved_world

from gpuledger.ledger.schema import METADATA
from gpuledger.ledger.store import Ledger
from gpuledger.model.moments import DAY_US, HOUR_US
from gpuledger.model.rows import UsageRecord
from gpuledger.operations.meter import meter
from gpuledger.operations.transition import record_transitions

MOST_CLOSING = 2.0
MOST_GROWTH = 2.0
LEAST_SINGLE = 1 / 2
LEAST_BATCH = 1 / 3
SLURM_S = 35.0
"""What Slurm's own rollup of 100,000 jobs over 30 days took on this kind of machine: 35 to 38 s."""
LEAST_AGAINST_SLURM = 5.0
MOST_IMPORT_S = 5.0
TRACE = Path(__file__).parents[2] / "shared" / "data" / "traces" / "openb" / "openb_pod_list_default.csv"


def main() -> int:
    """Build what is missing, race, and print."""
    words = _arguments()
    words.work.mkdir(parents=True, exist_ok=True)
    folder = words.work / _recipe()
    folder.mkdir(exist_ok=True)
    result: dict[str, Any] = {
        "machine": f"{os.cpu_count()} x {platform.machine()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}",
        "broken": [],
    }
    _say(words, result["machine"])
    parts = {"closing": _closing, "transitions": _transitions, "jobs": _jobs, "import": _import}
    for name, part in parts.items():
        if not words.only or name in words.only:
            part(folder, words, result)
    _say(words, "")
    for sentence in result["broken"] or ["all limits hold"]:
        _say(words, f"LIMIT BROKEN: {sentence}" if result["broken"] else sentence)
    if words.json:
        print(json.dumps(result, indent=1))
    return 1 if result["broken"] else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "gpuledger-bench", help="kept here")
    parser.add_argument("--small", action="store_true", help="a tenth of everything, for a first look")
    parser.add_argument("--runs", type=int, default=5, help="of each contender, interleaved")
    parser.add_argument("--only", nargs="*", default=(), choices=("closing", "transitions", "jobs", "import"))
    parser.add_argument("--json", action="store_true", help="print the result as JSON, the talk on stderr")
    words = parser.parse_args()
    words.by = 10 if words.small else 1
    return words


def _say(words: argparse.Namespace, line: str) -> None:
    print(line, file=sys.stderr if words.json else sys.stdout, flush=True)


def _broken(words: argparse.Namespace, result: dict[str, Any], is_broken: bool, sentence: str) -> None:
    """A limit holds for the real thing; in small it is only shown."""
    if is_broken and words.small:
        _say(words, f"  (over the limit, in small: {sentence})")
    elif is_broken:
        result["broken"].append(sentence)


def _recipe() -> str:
    tables = [(each.name, list(each.columns.keys())) for each in METADATA.sorted_tables]
    return (
        "reserved-" + hashlib.sha256(Path(reserved_world.__file__).read_bytes() + str(tables).encode()).hexdigest()[:12]
    )


def _timed(call: Callable[[], Any]) -> tuple[float, float, Any]:
    """CPU and wall seconds of a call, and its answer."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer = call()
    return time.process_time() - cpu, time.perf_counter() - wall, answer


def _copy(path: Path, name: str) -> Path:
    place = path.with_name(name)
    for suffix in ("", "-wal", "-shm"):
        place.with_name(place.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(path, place)
    return place


def _metered(folder: Path, *, count: int, events: int) -> Path:
    """A cluster of live workloads, metered up to the hour that is to be closed."""
    path = folder / f"live-{count}-metered.db"
    if not path.exists():
        fresh = _copy(reserved_world.live(folder / f"live-{count}.db", count=count, events=events), f"live-{count}.tmp")
        with Ledger.open(fresh, mode="append") as ledger:
            meter(ledger, now_us=_before_us(), writer="bench.meter")
        fresh.rename(path)
    return path


def _before_us() -> int:
    return reserved_world.BEGIN_US + reserved_world.HISTORY_HOURS * HOUR_US + HOUR_US // 4


def _closing(folder: Path, words: argparse.Namespace, result: dict[str, Any]) -> None:
    """One hour that closes, and then nothing new."""
    count = 100_000 // words.by
    path = _metered(folder, count=count, events=10 * count)
    tenth = _metered(folder, count=count // 10, events=count)
    hour_us = reserved_world.BEGIN_US + reserved_world.HISTORY_HOURS * HOUR_US
    contenders: dict[str, Callable[[Path], int]] = {
        "meter": _close_hour,
        "bare SQL": lambda place: bare_metering.close_hour(place, hour_us),
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(min(words.runs, 3)):
        for name, call in contenders.items():
            place = _copy(path, "racing.db")
            cpu, _, records = _timed(lambda call=call, place=place: call(place))
            assert records == count, f"{name} wrote {records} records of {count}"
            times[name].append(cpu)
    middle = {name: statistics.median(found) for name, found in times.items()}
    ratio = middle["meter"] / middle["bare SQL"]
    _say(words, f"\na pass that closes one hour, {count:,} live workloads, {10 * count:,} events (CPU seconds):")
    for name, found in times.items():
        _say(words, f"  {name:10} min {min(found):.2f}, median {middle[name]:.2f}")
    _say(words, f"  ratio of medians {ratio:.2f} (limit {MOST_CLOSING:g})")
    idle = {name: _idle(place, words.runs) for name, place in (("whole", path), ("a tenth", tenth))}
    growth = idle["whole"] / idle["a tenth"]
    _say(words, f"a pass with nothing new: {1000 * idle['whole']:.1f} ms; of a tenth of the history "
                f"{1000 * idle['a tenth']:.1f} ms, ratio {growth:.2f} (limit {MOST_GROWTH:g})")  # fmt: skip
    result["closing"] = {"cpu_seconds": middle, "ratio": round(ratio, 3)}
    result["nothing_new"] = {"seconds": idle, "ratio": round(growth, 3)}
    _broken(words, result, ratio > MOST_CLOSING, f"closing an hour takes {ratio:.2f} times bare SQL")
    _broken(words, result, growth > MOST_GROWTH, f"a pass with nothing new grows with history, {growth:.2f} times")


def _close_hour(place: Path) -> int:
    with Ledger.open(place, mode="append") as ledger:
        return len(meter(ledger, now_us=_before_us() + HOUR_US, writer="bench.meter").records)


def _idle(path: Path, runs: int) -> float:
    with Ledger.open(_copy(path, "idle.db"), mode="append") as ledger:
        found = [_timed(lambda: meter(ledger, now_us=_before_us(), writer="bench.meter")) for _ in range(4 * runs)]
    assert not any(len(report.records) for _, _, report in found), "there was something new"
    return statistics.median(cpu for cpu, _, _ in found)


def _transitions(folder: Path, words: argparse.Namespace, result: dict[str, Any]) -> None:
    """Transitions through the library against the same rows by bare statements into the ledger's own table."""
    singles, batches = 2000 // words.by, 20_000 // words.by
    for name, count, at_once, least in (("single", singles, 1, LEAST_SINGLE), ("batch", batches, 1000, LEAST_BATCH)):
        transitions = reserved_world.transitions(count, devices=min(1000, count // 4))  # whole lives
        place, bare = folder / "transitions.db", folder / "bare.db"
        for each in (place, bare):
            for suffix in ("", "-wal", "-shm"):
                each.with_name(each.name + suffix).unlink(missing_ok=True)
        spent: dict[str, list[float]] = {"library": [0.0, 0.0], "bare": [0.0, 0.0]}
        with Ledger.open(place, mode="append") as ledger, bare_metering.Inserting(bare) as inserting:
            for start in range(0, count, max(at_once, 100)):
                part = transitions[start : start + max(at_once, 100)]
                rows = inserting.rows(part)

                def ours(part: list[Any] = part, at_once: int = at_once) -> None:
                    for at in range(0, len(part), at_once):
                        record_transitions(ledger, part[at : at + at_once], writer="b.transition",
                                           now_us=reserved_world.BEGIN_US + DAY_US)  # fmt: skip

                def theirs(rows: list[Any] = rows, at_once: int = at_once) -> None:
                    for at in range(0, len(rows), at_once):
                        inserting.insert(rows[at : at + at_once])

                for whose, call in (("library", ours), ("bare", theirs)):
                    cpu, wall, _ = _timed(call)
                    spent[whose][0] += cpu
                    spent[whose][1] += wall
        rates = {whose: count / wall for whose, (_, wall) in spent.items()}
        rate = rates["library"] / rates["bare"]
        _say(words, f"\n{count:,} transitions, {at_once:,} in each commit:")
        for whose, (cpu, _) in spent.items():
            _say(words, f"  {whose:8} {rates[whose]:8.0f} a second, {1e6 * cpu / count:6.0f} us of CPU each")
        _say(words, f"  rate against bare {rate:.2f} (limit {least:.2f})")
        result[name] = {"a_second": rates, "rate": round(rate, 3),
                        "cpu_us": {whose: 1e6 * cpu / count for whose, (cpu, _) in spent.items()}}  # fmt: skip
        _broken(words, result, rate < least, f"{name} transitions run at {rate:.2f} of the bare rate")


def _jobs(folder: Path, words: argparse.Namespace, result: dict[str, Any]) -> None:
    """A month of finished jobs into hourly records, in a process of its own, and the same by bare SQL."""
    count = 100_000 // words.by
    path = reserved_world.jobs(folder / f"jobs-{count}.db", count=count)
    now_us = reserved_world.BEGIN_US + 32 * DAY_US
    script = (
        f"import json, sys, time; from pathlib import Path; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from process_cost import own_peak_mib\n"
        "from gpuledger.ledger.store import Ledger; from gpuledger.operations.meter import meter\n"
        "with Ledger.open(Path(sys.argv[1]), mode='append') as ledger:\n"
        "    wall, cpu = time.perf_counter(), time.process_time()\n"
        "    report = meter(ledger, now_us=int(sys.argv[2]), writer='bench.meter')\n"
        "    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall\n"
        "print(json.dumps([len(report.records), cpu, wall, own_peak_mib()]))\n"
    )
    place = _copy(path, "jobs-racing.db")
    answer = subprocess.run([sys.executable, "-c", script, str(place), str(now_us)], check=True, capture_output=True)
    records, cpu, wall, peak_mib = json.loads(answer.stdout)
    bare = _copy(path, "jobs-bare.db")
    bare_cpu, _, bare_records = _timed(lambda: bare_metering.history(bare, now_us))
    assert bare_records == records, f"bare SQL wrote {bare_records} records, the product {records}"
    times = SLURM_S / words.by / cpu
    _say(words, f"\n{count:,} jobs over {reserved_world.DAYS} days to {records:,} records: {cpu:.1f} s of CPU "
                f"({wall:.1f} s by the clock), {peak_mib} MiB at most; the same rule and insert by bare "
                f"SQL, without guards, chain and sums index {bare_cpu:.1f} s, ratio {cpu / bare_cpu:.2f}")  # fmt: skip
    _say(words, f"  Slurm's own rollup took {SLURM_S / words.by:g} s: {times:.1f} times as fast "
                f"(limit {LEAST_AGAINST_SLURM:g})")  # fmt: skip
    result["jobs"] = {"records": records, "cpu_seconds": cpu, "seconds": wall, "peak_mib": peak_mib,
                      "bare_cpu_seconds": bare_cpu, "times_slurm": round(times, 2)}  # fmt: skip
    sentence = (
        f"a month of jobs is metered {times:.1f} times as fast as Slurm's rollup, not {LEAST_AGAINST_SLURM:g} times"
    )
    _broken(words, result, times < LEAST_AGAINST_SLURM, sentence)
    with Ledger.open(place, mode="read") as ledger:
        assert ledger.count(UsageRecord) == records


def _import(folder: Path, words: argparse.Namespace, result: dict[str, Any]) -> None:
    """The import of the openb trace, where it is at hand."""
    if not TRACE.exists():
        _say(words, "\nimport of openb: left out, the trace is not there")
        return
    installed = shutil.which("gpuledger", path=str(Path(sys.executable).parent)) or "gpuledger"
    place = folder / "openb.db"
    found: list[float] = []
    for _ in range(3):
        for suffix in ("", "-wal", "-shm"):
            place.with_name(place.name + suffix).unlink(missing_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [installed, "import", "trace", str(TRACE), "--preset", "openb", "--ledger", str(place), "--quiet"]
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    spent = min(found)
    _say(words, f"\nimport of openb, the whole command: {spent:.2f} s of CPU (limit {MOST_IMPORT_S:g} s)")
    result["import"] = {"cpu_seconds": spent}
    _broken(words, result, spent > MOST_IMPORT_S, f"importing openb takes {spent:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
