"""Many clients race for the last device of a quota: exactly one gets it, in every round.

On every store. ``GPULEDGER_RACE_ROUNDS`` and ``GPULEDGER_RACE_CLIENTS`` make the race longer;
``GPULEDGER_RACE_LEDGER`` names an empty ledger to race on instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.model.lifecycle import Placement
from gpuledger.model.moments import MINUTE_US
from gpuledger.model.quotas import AdmitRequest
from gpuledger.model.workload_rows import Hold
from gpuledger.operations.admit import admit
from quota_desk import MORNING_US, Desk

ROUNDS = int(os.environ.get("GPULEDGER_RACE_ROUNDS", "5"))
CLIENTS = int(os.environ.get("GPULEDGER_RACE_CLIENTS", "40"))
ROUND_US = 30 * MINUTE_US
EVERY_STORE = True
LEDGER = os.environ.get("GPULEDGER_RACE_LEDGER", "")

PROCESS = """
import json, sys
from gpuledger.ledger import Ledger
from gpuledger.model.lifecycle import Placement
from gpuledger.model.quotas import AdmitRequest
from gpuledger.operations.admit import admit
place, me, now_us = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Ledger.open(place, mode="append") as ledger:
    sys.stdout.write("ready\\n"); sys.stdout.flush()
    for turn, _ in enumerate(sys.stdin):
        request = AdmitRequest(workload=f"p{turn}-{me}", placement=Placement(class_name="L4"), user="al")
        report = admit(ledger, request, writer=f"box.{me}", now_us=now_us + turn * 1_800_000_000)
        sys.stdout.write(json.dumps(report.admitted) + "\\n"); sys.stdout.flush()
"""


@pytest.fixture
def place(new_place) -> str:
    """A ledger whose policy lets al hold one device; whoever holds it has its ten minutes, and then lapses."""
    where = LEDGER or str(new_place("race.db"))
    Desk(where, "{user: al, devices: 1}\n{team: vision, devices: 40}").ledger.close()
    return where


def test_of_many_threads_exactly_one_gets_the_last_device(place: str) -> None:
    """Each with a connection of its own, all at the same moment, round after round."""
    begin = Barrier(CLIENTS)

    def ask(me: int) -> list[bool]:
        answers = []
        with Ledger.open(place, mode="append", busy_timeout_ms=120_000) as ledger:
            for turn in range(ROUNDS):
                request = AdmitRequest(workload=f"t{turn}-{me}", placement=Placement(class_name="L4"), user="al")
                begin.wait(120)
                now_us = MORNING_US + turn * ROUND_US
                answers.append(admit(ledger, request, writer=f"box.t{me}", now_us=now_us).admitted)
        return answers

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(ask, range(CLIENTS)))
    assert [sum(of_round) for of_round in zip(*answers, strict=True)] == [1] * ROUNDS
    with Ledger.open(place, mode="read") as ledger:
        assert len([hold for hold in ledger.scan(Hold) if hold.change == "taken"]) == ROUNDS
        assert verify_ledger(ledger) == []


def test_of_many_processes_exactly_one_gets_the_last_device(place: str) -> None:
    """No memory is shared; each round begins for all of them at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, place, f"p{me}", str(MORNING_US)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for me in range(4)
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for turn in range(ROUNDS):
            for process in processes:
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            answers = [json.loads(process.stdout.readline()) for process in processes if process.stdout is not None]
            assert answers.count(True) == 1, f"round {turn}"
    finally:
        for process in processes:
            process.communicate(timeout=60)
    with Ledger.open(place, mode="read") as ledger:
        assert verify_ledger(ledger) == []
