"""``gpuledger agent``: over a simulated driver, and over none."""

from __future__ import annotations

import os

import pytest

from gpuledger.clock import SystemClock
from gpuledger.errors import Unavailable
from gpuledger.ledger.store import Ledger
from gpuledger.model.rows import ProcessIdentity, Watch
from gpuledger.operations.agent import OneAgent
from gpuledger.sources.simulated import SimulatedDriver


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> SimulatedDriver:
    """One accounted GPU, held by this very process."""
    made = SimulatedDriver(SystemClock().now_us)
    made.add_gpu("GPU-0", accounting=True)
    made.start(os.getpid(), "GPU-0", 100)
    monkeypatch.setattr("gpuledger.operations.start_agent.load_binding", lambda: made)
    return made


def test_one_look_is_written_and_named(gpuledger, driver, tmp_path) -> None:
    """For cron: nothing on stdout, what it does on stderr; the interval is a minute."""
    done = gpuledger("agent", "--once")
    assert (done.status, done.out) == (0, "")
    assert "one look at box" in done.err
    with Ledger.open(tmp_path / "box.db", mode="read") as ledger:
        assert [row.pid for row in ledger.scan(ProcessIdentity)] == [os.getpid()]
        assert {row.interval_ms for row in ledger.scan(Watch)} == {60_000}
    assert gpuledger("usage", "--format", "json").json["rows"]


def test_quiet_says_nothing(gpuledger, driver) -> None:
    """Cron mails what is said."""
    assert gpuledger("agent", "--once", "--quiet") == (0, "", "")


def test_a_second_agent_is_status_4(gpuledger, driver, tmp_path) -> None:
    """Refused while the first holds the ledger."""
    with OneAgent(tmp_path / "box.db"):
        done = gpuledger("agent", "--once")
    assert (done.status, "agent-running" in done.err) == (4, True)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--interval", "soon"), "bad-span"),
        (("--flush", "1ms"), "bad-span"),
        (("--watch", "ebpf"), "unknown-watch"),
    ],
)
def test_what_cannot_be_run_is_status_2(gpuledger, driver, words: tuple[str, ...], code: str) -> None:
    """Before the first look."""
    done = gpuledger("agent", "--once", *words)
    assert (done.status, code in done.err) == (2, True)


def test_a_machine_without_a_driver_is_status_5(gpuledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what the library said and what helps."""

    def absent() -> None:
        raise Unavailable("driver-unreachable", "NVIDIA's library is not installed", hint="install it")

    monkeypatch.setattr("gpuledger.operations.start_agent.load_binding", absent)
    monkeypatch.setenv("PATH", "/nowhere")
    done = gpuledger("agent", "--once", "--format", "json")
    assert (done.status, done.error["code"]) == (5, "driver-unreachable")
