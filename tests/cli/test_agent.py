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
        assert {row.interval_ms for row in ledger.scan(Watch) if row.readings} == {60_000}
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
        (("--watch", "guess"), "unknown-watch"),
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


@pytest.fixture
def no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that lets nobody hear kernel events."""

    def refused() -> None:
        raise Unavailable("ebpf-forbidden", "it takes root", hint="sudo gpuledger agent")

    monkeypatch.setattr("gpuledger.operations.start_agent._EVENTS", {"ebpf": refused, "connector": refused})


def test_one_look_polls_and_asks_for_no_events(gpuledger, driver, no_events, tmp_path) -> None:
    """What lived before is all that a single look can name; nothing is said of better ways."""
    done = gpuledger("agent", "--once")
    assert "not by" not in done.err
    with Ledger.open(tmp_path / "box.db", mode="read") as ledger:
        assert {row.method for row in ledger.scan(Watch) if row.source == "process"} == {"poll"}


def test_why_a_better_way_is_not_used_is_said_and_written(gpuledger, driver, no_events, tmp_path) -> None:
    """On the terminal with what grants it, in the watch for whoever reads the ledger later."""
    done = gpuledger("agent", "--once", "--watch", "auto")
    assert "note: not by ebpf: it takes root (sudo gpuledger agent)" in done.err
    with Ledger.open(tmp_path / "box.db", mode="read") as ledger:
        [watch] = [row for row in ledger.scan(Watch) if row.source == "process" and row.detail]
        assert watch.detail == "not by ebpf: it takes root; not by connector: it takes root"


def test_a_way_that_was_asked_for_and_is_refused_is_status_5(gpuledger, driver, no_events) -> None:
    """Never replaced by a worse one in silence."""
    done = gpuledger("agent", "--once", "--watch", "ebpf", "--format", "json")
    assert (done.status, done.error["code"], done.error["hint"]) == (5, "ebpf-forbidden", "sudo gpuledger agent")


def test_the_way_is_a_setting_too(gpuledger, driver, no_events, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which --watch overrides, and a single look does not heed."""
    monkeypatch.setenv("GPULEDGER_AGENT_WATCH", "connector")
    assert gpuledger("agent", "--format", "json").error["code"] == "ebpf-forbidden"
    assert gpuledger("agent", "--once").status == 0


class Deaf:
    """A watcher that hears nothing any more."""

    method = "ebpf"
    urgent = None
    closed = False

    def look(self, pids: object, now_us: int, *, restarted: object = ()) -> None:
        raise Unavailable("events-failed", "the kernel's process events (ebpf) can no longer be read", hint="again")

    def close(self) -> None:
        Deaf.closed = True


def test_an_agent_that_went_deaf_ends_with_a_sentence(gpuledger, driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 5 and no traceback, so that whoever restarts it does; and the kernel's side is let go."""
    monkeypatch.setattr("gpuledger.cli.agent.choose_watcher", lambda method, clock: (Deaf(), ()))
    done = gpuledger("agent", "--format", "json")
    assert (done.status, done.error["code"]) == (5, "events-failed")
    assert Deaf.closed
