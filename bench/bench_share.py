"""``make bench-share``: fair share of 5,000 users out of 200,000 hourly records; ``admit`` at 300 requests a second.

The answer of ``fairshare``, read from the ledger each time, against a limit in seconds; beside it its parts, the whole
command, and a hand-written loop over the same rows that decays them in floats and knows no policy. The ledger is built
once and kept under ``--work``. The second part is :mod:`admit_race`. Exit 1 when a limit is broken or the two sums of
usage differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import admit_race

from gpuledger.accounting.fairshare import standings
from gpuledger.ledger.schema import METADATA
from gpuledger.ledger.store import Ledger
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.moments import HOUR_US, SECOND_US, iso, parse_moment
from gpuledger.model.rows import UsageRecord
from gpuledger.operations.apply import apply
from gpuledger.operations.fairshare import fairshare
from gpuledger.operations.meter import meter
from gpuledger.operations.transition import record_transitions
from gpuledger.operations.usage import policy_of

MOST_S = 1.0
START_US = parse_moment("2026-10-01T00:00:00Z", now_us=0)
HOURS_EACH = 20
WORKLOADS_EACH = 2
CLASSES = ("L4", "A100-SXM4-40GB", "H100-80GB")
TEAMS = 50
HALF_LIFE_DAYS = 7


def main() -> int:
    """Build what is missing, time it, and print."""
    words = _arguments()
    told: dict[str, Any] = {
        "machine": f"{os.cpu_count()} x {platform.machine()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}",
        "broken": [],
    }
    _say(words, told["machine"])
    if words.only != "admit":
        _fair_share(words, told)
    if words.only != "share":
        admit_race.race(
            told, lambda line: _say(words, line),
            rate=words.rate, seconds=words.seconds, rounds=words.rounds, workers=words.workers,
        )  # fmt: skip
    for sentence in told["broken"] or ["all limits hold"]:
        _say(words, f"LIMIT BROKEN: {sentence}" if told["broken"] else sentence)
    if words.json:
        print(json.dumps(told, indent=1))
    return 1 if told["broken"] else 0


def _fair_share(words: argparse.Namespace, told: dict[str, Any]) -> None:
    words.work.mkdir(parents=True, exist_ok=True)
    place = words.work / f"share-{words.users}-{_recipe()}.db"
    if not place.exists():
        _build(place, words, told)
    with Ledger.open(place, mode="read") as ledger:
        told["records"] = ledger.count(UsageRecord)
        now_us = _now_us(words.users)
        found = fairshare(ledger, at_us=now_us, now_us=now_us, sized=False)
        first, again = list[float](), list[float]()
        for _ in range(words.runs):
            policy_of.cache_clear()  # else a process reads a policy once
            first.append(_timed(lambda: fairshare(ledger, at_us=now_us, now_us=now_us)))
            again.append(_timed(lambda: fairshare(ledger, at_us=now_us, now_us=now_us)))
        unsized = _timed(lambda: fairshare(ledger, at_us=now_us, now_us=now_us, sized=False))
    pure = [_timed(lambda: standings(found.shares, found.usage.by_place)) for _ in range(words.runs)]
    bare = [_timed(lambda: _bare(place, now_us)) for _ in range(words.runs)]
    command = [_command(place, now_us) for _ in range(3)]
    told |= {
        "users": words.users,
        "answer_seconds": round(statistics.median(first), 3),
        "asked_again_seconds": round(statistics.median(again), 3),
        "order_alone_seconds": round(unsized, 3),
        "standings_seconds": round(statistics.median(pure), 3),
        "command_seconds": round(statistics.median(command), 3),
        "hand_written_seconds": round(statistics.median(bare), 3),
        "ratio": round(statistics.median(first) / statistics.median(bare), 2),
    }
    _say(words, f"{told['records']} records of {words.users} users")
    for name in ("answer", "asked_again", "order_alone", "standings", "command", "hand_written"):
        _say(words, f"{name.replace('_', ' '):>28}  {told[f'{name}_seconds']:.3f} s")
    _say(words, f"{'answer / hand written':>28}  {told['ratio']:.2f}")
    total, by_hand = found.report.total, _bare(place, now_us)
    if abs(total - Fraction(by_hand)) > total / 10**9:
        told["broken"].append(f"usage is {float(total)}, and by hand {by_hand}")
    if told["answer_seconds"] >= MOST_S:
        told["broken"].append(f"the answer takes {told['answer_seconds']} s, the limit is {MOST_S} s")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "gpuledger-bench", help="kept here")
    parser.add_argument("--users", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=("share", "admit"), help="one part")
    parser.add_argument("--rate", type=int, default=300, help="admit: requests a second")
    parser.add_argument("--seconds", type=int, default=10, help="admit: of a round")
    parser.add_argument("--rounds", type=int, default=3, help="admit: of each side")
    parser.add_argument("--workers", type=int, default=4, help="admit: processes that ask")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, the talk on stderr")
    return parser.parse_args()


def _say(words: argparse.Namespace, line: str) -> None:
    print(line, file=sys.stderr if words.json else sys.stdout, flush=True)


def _recipe() -> str:
    tables = [(each.name, list(each.columns.keys())) for each in METADATA.sorted_tables]
    return hashlib.sha256(Path(__file__).read_bytes() + str(tables).encode()).hexdigest()[:12]


def _now_us(users: int) -> int:
    """Half past the hour after the last record."""
    return START_US + (WORKLOADS_EACH * HOURS_EACH + users % 97 + 100) * HOUR_US + HOUR_US // 2


def _build(place: Path, words: argparse.Namespace, told: dict[str, Any]) -> None:
    """Transitions of every user through the product, metered by it, and the policy that ranks them."""
    began = time.perf_counter()
    now_us = _now_us(words.users)
    fresh = place.with_suffix(f".{os.getpid()}")
    with Ledger.open(fresh, mode="append") as ledger:
        lines: list[Transition] = []
        for user in range(words.users):
            lines += _life(user)
            if len(lines) > 20_000:
                record_transitions(ledger, lines, writer="bench.import", now_us=now_us, imported=True)
                lines = []
        record_transitions(ledger, lines, writer="bench.import", now_us=now_us, imported=True)
        meter(ledger, now_us=now_us, writer="bench.meter")
    policy = place.with_suffix(".yaml")
    policy.write_text(_policy(words.users), encoding="utf-8")
    apply(lambda: Ledger.open(fresh, mode="append"), policy, now_us=now_us, writer="bench.policy")
    fresh.rename(place)
    told["build_seconds"] = round(time.perf_counter() - began, 1)
    _say(words, f"built in {told['build_seconds']} s")


def _life(user: int) -> list[Transition]:
    """Two workloads of twenty hours, one after the other."""
    found: list[Transition] = []
    placement = Placement(
        class_name=CLASSES[user % 3], machine=f"n{user % 40}", count=1 + user % 4, share=Fraction(1, 1 + user % 3)
    )
    for number in range(WORKLOADS_EACH):
        start_us = START_US + (user % 97 + number * HOURS_EACH) * HOUR_US
        for state, at_us in (
            ("provisioning", start_us),
            ("running", start_us),
            ("stopped", start_us + HOURS_EACH * HOUR_US - SECOND_US),
        ):
            workload = f"w{user}-{number}"
            found.append(
                Transition(
                    workload=workload, event_id=f"{workload}-{state}", state=State(state), at_us=at_us, source="bench",
                    user=f"u{user:05}", team=f"team{user % TEAMS}",
                    placement=placement if state == "provisioning" else None,
                )
            )  # fmt: skip
    return found


def _policy(users: int) -> str:
    lines = [
        "effective_from: 2026-01-01",
        "shares:",
        f"  half_life: {HALF_LIFE_DAYS}d",
        '  class_weights: {"H100*": 2}',
        "  tree:",
    ]
    for team in range(TEAMS):
        lines += [f"    team{team}:", f"      shares: {1 + team % 9}", "      users:"]
        lines += [f"        u{user:05}: {1 + user % 5}" for user in range(team, users, TEAMS)]
    return "\n".join(lines) + "\n"


def _timed(call: Any) -> float:
    """Seconds of this process's CPU: the box may have other work."""
    began = time.process_time()
    call()
    return time.process_time() - began


def _bare(place: Path, now_us: int) -> float:
    """The usage of all by hand: one query, one loop, floats, and names as the events wrote them."""
    connection = sqlite3.connect(place)
    held = {
        f"placement:{key}": count * num / den * (2 if name.startswith("H100") else 1)
        for key, name, count, num, den in connection.execute(
            "SELECT placement, class_name, count, share_num, share_den FROM placement"
        )
    }
    names = {
        key: json.loads(text)["user"] for key, text in connection.execute("SELECT text_key, json FROM identity_text")
    }
    hour_now = now_us // HOUR_US
    usage: dict[str, float] = {}
    for subject, device, hour_us, quantity in connection.execute(
        "SELECT subject, device, hour_us, quantity FROM usage_record WHERE meter = 'gpu.reserved'"
    ):
        weight = 0.5 ** ((hour_now - hour_us // HOUR_US) / (24 * HALF_LIFE_DAYS))
        user = names[subject]
        usage[user] = usage.get(user, 0.0) + quantity * held[device] * weight
    connection.close()
    return sum(usage.values())


def _command(place: Path, now_us: int) -> float:
    """Seconds of CPU of the whole command, from its start to its last byte."""
    program = str(Path(sys.executable).with_name("gpuledger"))
    words = [program, "fairshare", "--ledger", str(place), "--now", iso(now_us), "--format", "json"]
    before = os.times()
    subprocess.run(words, check=True, capture_output=True, timeout=600)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    sys.exit(main())
