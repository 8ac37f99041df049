"""A batch of transitions killed with 9 at any point: all of a call or none, and the next run tells the rest."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.model.workload_rows import Hold, WorkloadEvent

CALL = 400
"""Transitions of one call."""
CALLS = 40

PROGRAM = f"""
import sys
from gpuledger.ledger import Ledger
from gpuledger.model.lifecycle import Placement, Transition
from gpuledger.operations.transition import record_transitions

def life(number):
    where = Placement(class_name="L4", devices=(f"GPU-{{number % 20}}",))
    start = number // 20 * 4_000_000
    for step, state in enumerate(("provisioning", "running", "stopping", "stopped")):
        yield Transition(workload=f"w{{number}}", event_id=state, state=state, at_us=start + step * 1_000_000,
                         source="ctl", user="al", placement=None if step else where)

told = [step for number in range({CALLS * CALL // 4}) for step in life(number)]
with Ledger.open(sys.argv[1], mode="append") as ledger:
    print("ready", flush=True)
    for start in range(0, len(told), {CALL}):
        record_transitions(ledger, told[start : start + {CALL}], writer="box.a", now_us=10**15)
print("done", flush=True)
"""


def test_a_killed_batch_is_whole_or_not_there(tmp_path: Path) -> None:
    """After each kill the ledger is sound, every hold is released with its stop, and a rerun adds what is missing."""
    place = tmp_path / "ledger.db"
    killed = 0
    for delay_ms in (5, 40, 110, 230):
        with subprocess.Popen([sys.executable, "-c", PROGRAM, str(place)], stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout is not None
            assert run.stdout.readline() == "ready\n"
            time.sleep(delay_ms / 1000)
            run.send_signal(signal.SIGKILL)
            killed += run.wait() == -signal.SIGKILL
        with Ledger.open(place, mode="append") as ledger:
            assert verify_ledger(ledger) == []
            assert ledger.count(WorkloadEvent) % CALL == 0
            assert ledger.count(Hold) == ledger.count(WorkloadEvent) // 2
    assert killed >= 2
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(place)], capture_output=True, text=True, check=True)
    assert done.stdout == "ready\ndone\n"
    with Ledger.open(place, mode="read") as ledger:
        assert verify_ledger(ledger) == []
        assert ledger.count(WorkloadEvent) == CALL * CALLS
