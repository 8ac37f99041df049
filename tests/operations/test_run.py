"""``run`` as an operation, in a process of its own: it takes signals and orphans over for good."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import contextlib, json, sys
from pathlib import Path
from gpuledger.clock import SystemClock
from gpuledger.errors import GpuledgerError, Unavailable
from gpuledger.operations.own_watch import OwnWatch, WatchPlan
from gpuledger.operations.run import RunPlan, run
from gpuledger.reports.receipt_report import to_json
from gpuledger.sources.nvml import NvmlSource
from gpuledger.sources.simulated import SimulatedDriver

def find(talk):
    if sys.argv[2] == "none":
        raise Unavailable("driver-unreachable", "no driver here", hint="")
    driver = SimulatedDriver(SystemClock().now_us)
    driver.add_gpu("GPU-1", product="NVIDIA L4", memory_mib=23034, accounting=True)
    driver.start(999_999, "GPU-1", 100, 1_700_000_000_000_000)
    driver.finish(999_999, "GPU-1", 1_700_000_000_005_000)
    return NvmlSource(driver, method="simulated")

said = []
@contextlib.contextmanager
def waiting(sentence):
    said.append(sentence)
    yield

plan = WatchPlan(ledger=Path(sys.argv[1]), host="box", interval_us=50_000, flush_us=60_000_000, method="poll")
own = OwnWatch(plan, clock=SystemClock(), find_source=find)
try:
    made = run(RunPlan(words=tuple(sys.argv[3:]), place="", watch=plan), clock=SystemClock(), waiting=waiting, own=own)
except GpuledgerError as error:
    print(json.dumps({"error": error.code, "exits": error.exit_status, "told": error.message}))
else:
    receipt = getattr(made.receipt, "reason", None) or to_json(made.receipt)
    print(json.dumps({"status": made.status, "receipt": receipt, "notes": made.notes, "said": said}))
"""


def ran(ledger: Path, driver: str, *words: str) -> dict[str, Any]:
    """What a run came to."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ledger), driver, *words], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_command_without_gpu_reads_zero_and_why(tmp_path: Path) -> None:
    """The driver's list has a row, so that it proves itself; the receipt waits for two looks after the end."""
    made = ran(tmp_path / "box.db", "simulated", "sh", "-c", "exit 3")
    receipt = made["receipt"]
    assert (made["status"], receipt["status"], receipt["context_ms"], receipt["at_least"]) == (3, 3, 0, False)
    assert (receipt["watched_by"], receipt["naming"], receipt["doubts"]) == ("run", "poll", [])
    assert receipt["devices"][0]["why"]
    assert (made["notes"], made["said"]) == ([], ["waiting for the agent's next look"])


def test_without_a_driver_it_runs_and_the_receipt_says_unknown(tmp_path: Path) -> None:
    """Its status is the command's own."""
    made = ran(tmp_path / "box.db", "none", "sh", "-c", "exit 4")
    assert (made["status"], made["receipt"]["context_ms"], made["said"]) == (4, None, [])
    assert [one["doubt"] for one in made["receipt"]["doubts"]] == ["not-watched"]
    assert not (tmp_path / "box.db").exists()


@pytest.mark.parametrize(
    ("word", "code", "status"), [("no-such", "no-command", 127), ("/", "command-not-executable", 126)]
)
def test_what_cannot_begin(tmp_path: Path, word: str, code: str, status: int) -> None:
    """An error with the status of shells."""
    made = ran(tmp_path / "box.db", "simulated", word)
    assert (made["error"], made["exits"]) == (code, status)
    assert made["told"].endswith("; nothing was run")


def test_a_ledger_that_cannot_be_used_stops_the_command_before_it_begins(tmp_path: Path) -> None:
    """Nothing has run."""
    (tmp_path / "box.db").write_bytes(b"junk" * 2000)
    mark = tmp_path / "mark"
    made = ran(tmp_path / "box.db", "simulated", "touch", str(mark))
    assert made["error"] == "ledger-damaged"
    assert made["told"].endswith("; nothing was run")
    assert not mark.exists()


def test_secrets_of_the_command_are_not_in_its_receipt(tmp_path: Path) -> None:
    """As everywhere."""
    made = ran(tmp_path / "box.db", "none", "true", "--api-key", "hunter2-c0rrect-h0rse")
    assert made["receipt"]["command"] == "true --api-key [redacted]"
