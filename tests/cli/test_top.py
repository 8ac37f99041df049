"""``gpuledger top``, not on a terminal; on one it is played in ``e2e/test_top.py``."""

from __future__ import annotations

import csv
import io
import os
import time
from pathlib import Path

import pynvml
import pytest

from gpuledger.cli import top
from gpuledger.sources.nvml import NvmlSource
from gpuledger.sources.simulated import SimulatedDriver

GPU = "GPU-5a3c1f2e-1111-2222-3333-444455556666"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> SimulatedDriver:
    """One GPU, held by this very process."""
    made = SimulatedDriver(lambda: time.time_ns() // 1000)
    made.add_gpu(GPU, product="NVIDIA L4", memory_mib=23034, accounting=True)
    made.start(os.getpid(), GPU, 1234)
    monkeypatch.setattr(top, "choose_source", lambda talk: NvmlSource(made, method="simulated"))
    return made


def test_on_a_pipe_it_prints_once_and_ends(gpuledger, driver: SimulatedDriver) -> None:
    """With --once or without; a ledger is not needed, and none is made."""
    for words in ((), ("--once",)):
        done = gpuledger("top", *words)
        assert done.status == 0
        assert "1.2 GiB" in done.out
        assert "Not named  0 of 1 context" in done.out
        assert "without a ledger" in done.out
    assert not Path(os.environ["GPULEDGER_LEDGER"]).exists()


def test_json_and_csv_are_for_scripts(gpuledger, driver: SimulatedDriver) -> None:
    """In any grouping."""
    (row,) = gpuledger("top", "--by", "process", "--format", "json").json["rows"]
    assert (row["pids"], row["memory_mib"], row["devices"]) == ([os.getpid()], 1234, [GPU])
    (line,) = csv.DictReader(io.StringIO(gpuledger("top", "--by", "device", "--format", "csv").out))
    assert (line["device"], line["memory_mib"], line["unnamed"]) == (GPU, "1234", "0")


def test_what_was_imperfect_is_said_and_no_answer_is_status_3(gpuledger, driver: SimulatedDriver) -> None:
    """A device that does not answer is not one that nobody holds."""
    driver.fail("nvmlDeviceGetAccountingMode", pynvml.NVML_ERROR_GPU_IS_LOST)
    done = gpuledger("top", "--format", "json")
    assert (done.status, done.json["rows"]) == (3, [])
    assert done.json["devices"][0]["silence"]
    assert "[device-lost]" in done.err
    assert gpuledger("top", "--quiet").err == ""


@pytest.mark.parametrize(
    ("words", "code"),
    [(("--now", "today"), "now-refused"), (("--interval", "soon"), "bad-span"), (("--by", "planet"), "bad-usage")],
)
def test_what_cannot_be_asked_is_status_2(
    gpuledger, driver: SimulatedDriver, words: tuple[str, ...], code: str
) -> None:
    """The past is another verb's."""
    before = words if words[0] == "--now" else ()
    done = gpuledger(*before, "top", *(() if before else words))
    assert (done.status, code in done.err, done.out) == (2, True, "")


def test_a_machine_without_a_driver_is_status_5(gpuledger, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """With what to do."""
    monkeypatch.setenv("PATH", str(tmp_path))
    done = gpuledger("top")
    assert (done.status, done.out) == (5, "")
