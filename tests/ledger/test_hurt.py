"""Hurt: killed in the middle, out of room, out of file size; what was acknowledged is there, the rest is not."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.model.rows import DriverRecord, Seal

_WRITE_FOREVER = """
import itertools, sys
from gpuledger.ledger import Ledger
from gpuledger.model.identity import IdentityText
from gpuledger.model.rows import DriverRecord, ProcessIdentity

def rows(batch, key):
    for n in range(batch * 100, batch * 100 + 100):
        yield DriverRecord(host="h", device="GPU-a", pid=n, started_at_us=n, context_ms=1, peak_memory_mib=1,
                           gpu_percent=0, memory_percent=0, read_at_us=n + 5000, method="nvml")
    yield ProcessIdentity(host="h", boot_id="b", pid=batch, start_ticks=1, started_at_us=1, seen_at_us=1,
                          method="poll", grade="kernel", text_key=key)

with Ledger.open(sys.argv[1], mode="append") as ledger:
    print("open", flush=True)
    for batch in itertools.count(int(sys.argv[2])):
        key = ledger.key_of(IdentityText(exe=f"/bin/{batch}"))
        ledger.append(list(rows(batch, key)), writer="h.agent", at_us=batch)
        if batch % 7 == 0:
            ledger.seal(batch, writer="h.agent")
        print(batch, flush=True)
"""


@pytest.mark.parametrize("round_number", range(4))
def test_killed_in_the_middle(place: Path, round_number: int) -> None:
    """kill -9 at any moment: every acknowledged append is there, nothing half of it, and the chain goes on."""
    start = 0
    for delay in (0.05, 0.11):
        process = subprocess.Popen(
            [sys.executable, "-c", _WRITE_FOREVER, str(place), str(start)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        time.sleep(delay + round_number * 0.037)
        process.kill()
        output, _ = process.communicate()
        assert process.returncode == -signal.SIGKILL
        acknowledged = [int(line) for line in output.splitlines() if line]
        with Ledger.open(place, mode="read") as ledger:
            assert verify_ledger(ledger) == []
            batches = {row.pid // 100 for row in ledger.scan(DriverRecord)}
            assert ledger.count(DriverRecord) == 100 * len(batches)
            assert len(ledger.texts()) == len(batches)
            assert set(acknowledged) <= batches
            start = max(batches, default=-1) + 1
            assert batches == set(range(start))
            assert start - (acknowledged[-1] + 1 if acknowledged else 0) <= 1 or not acknowledged
    with Ledger.open(place, mode="append") as ledger:
        ledger.seal(1, writer="h.agent")
        assert ledger.count(Seal) >= 1
        assert verify_ledger(ledger) == []


_WRITE_UNTIL_FULL = """
import resource, sys
from gpuledger.errors import GpuledgerError
from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.model.rows import Watch

def rows(batch):
    return [Watch(host="h", device="", source="process", method="poll", interval_ms=1, since_us=n, until_us=n + 1,
                  status="ok", detail="x" * 50) for n in range(batch * 100, batch * 100 + 100)]

with Ledger.open(sys.argv[1], mode="append") as ledger:
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
    for batch in range(1000):
        try:
            ledger.append(rows(batch), writer="h.agent", at_us=batch)
        except GpuledgerError as error:
            print(error.code, batch, ledger.count(Watch), ledger.marks()["h.agent"], len(verify_ledger(ledger)))
            break
    try:
        ledger.append(rows(batch), writer="h.agent", at_us=batch)
    except GpuledgerError as error:
        print(error.code)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(len(ledger.append(rows(batch), writer="h.agent", at_us=batch).added), len(verify_ledger(ledger)))
"""


def test_out_of_room(place: Path) -> None:
    """A file that may not grow: said by name, nothing added, still whole, and with room it goes on."""
    output = subprocess.run(
        [sys.executable, "-c", _WRITE_UNTIL_FULL, str(place)], capture_output=True, text=True, check=True, timeout=120
    ).stdout.splitlines()
    code, batch, rows, mark, findings = output[0].split()
    assert (code, findings) == ("ledger-full", "0")
    assert int(batch) > 0
    assert int(rows) == int(mark) == int(batch) * 100
    assert output[1:] == ["ledger-full", "100 0"]
    with Ledger.open(place, mode="read") as ledger:
        assert verify_ledger(ledger) == []


def test_out_of_room_before_the_first_table(place: Path) -> None:
    """Creation that finds no room leaves no ledger, and the next try succeeds."""
    code = (
        "import resource, sys; from gpuledger.ledger import Ledger; from gpuledger.errors import GpuledgerError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))\n"
        "try:\n    Ledger.open(sys.argv[1], mode='append')\n"
        "except GpuledgerError as error:\n    print(error.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(place)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "ledger-full\n"
    with Ledger.open(place, mode="append") as ledger:
        assert verify_ledger(ledger) == []
