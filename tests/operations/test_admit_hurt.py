"""Whoever asks is killed with 9 at any point: a yes is whole or not there, and asked again it is answered the same."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.model.workload_rows import ExpectedEnd, Hold, WorkloadEvent
from quota_desk import Desk

ASKED = 300
ALLOWED = 200

PROGRAM = f"""
import sys
from gpuledger.ledger import Ledger
from gpuledger.model.lifecycle import Placement
from gpuledger.model.moments import HOUR_US, parse_moment
from gpuledger.model.quotas import AdmitRequest
from gpuledger.operations.admit import admit
now_us = parse_moment("2026-07-27T10:00:00Z", now_us=0)
with Ledger.open(sys.argv[1], mode="append") as ledger:
    print("ready", flush=True)
    told = []
    for number in range({ASKED}):
        request = AdmitRequest(
            workload=f"w{{number}}", placement=Placement(class_name="L4", machine=f"n{{number % 7}}"), user="al",
            span_us=HOUR_US,
        )
        told.append(admit(ledger, request, writer="box.a", now_us=now_us).admitted)
print(told.count(True), flush=True)
"""


EVERY_STORE = True


def test_a_killed_asker_leaves_whole_answers(new_place) -> None:
    """Each event has its hold and its end; the quota is kept, and a rerun fills it and no more."""
    place = new_place("ledger.db")
    Desk(place, f"{{user: al, devices: {ALLOWED}}}").ledger.close()
    killed = 0
    for delay_ms in (5, 30, 60, 90):
        with subprocess.Popen([sys.executable, "-c", PROGRAM, str(place)], stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout is not None
            assert run.stdout.readline() == "ready\n"
            time.sleep(delay_ms / 1000)
            run.send_signal(signal.SIGKILL)
            killed += run.wait() == -signal.SIGKILL
        with Ledger.open(place, mode="append") as ledger:
            assert verify_ledger(ledger) == []
            events = {event.workload for event in ledger.scan(WorkloadEvent)}
            assert {hold.workload for hold in ledger.scan(Hold)} == events
            assert {end.workload for end in ledger.scan(ExpectedEnd)} == events
            assert ledger.count(Hold) == len(events) <= ALLOWED
    assert killed
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(place)], capture_output=True, text=True, check=True)
    assert done.stdout == f"ready\n{ALLOWED}\n"
    with Ledger.open(place, mode="read") as ledger:
        assert verify_ledger(ledger) == []
        assert ledger.count(Hold) == ALLOWED
