"""The agent's loop: what is new is written at once, what cannot be written is kept, what troubles is said once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pynvml
import pytest

from gpuledger.errors import Refused, Unavailable
from gpuledger.ledger.store import Ledger
from gpuledger.metering.contexts import contexts
from gpuledger.model.moments import MINUTE_US, SECOND_US
from gpuledger.model.quantities import Evidence
from gpuledger.model.rows import DriverRecord, Pass, ProcessIdentity, Seal, Sighting, UsageRecord, Watch
from gpuledger.operations.agent import OneAgent
from gpuledger.operations.usage import usage


def test_a_short_job_is_named_and_settled(machine) -> None:
    """Seen alive once, finished, read: its name and the driver's own figure stand in the ledger."""
    agent = machine.agent()
    machine.watch(agent, 2)
    machine.start(7, "whisper")
    machine.watch(agent, 2)
    machine.finish(7)
    machine.watch(agent, 2)
    agent.stop()
    assert [(row.pid, row.context_ms) for row in machine.rows(DriverRecord)] == [(7, 2000)]
    now_us = machine.clock.now_us()
    report = usage(
        machine.ledger,
        meter="gpu.context",
        by=("service",),
        since_us=now_us - MINUTE_US,
        until_us=now_us,
        now_us=now_us,
    )
    assert [(row.key, row.quantity, row.settled) for row in report.rows] == [(("whisper",), 2000, 2000)]


def test_what_cannot_be_written_is_kept_and_written_once(machine) -> None:
    """A full disk loses nothing: its rows are there afterwards, each once; the trouble is said once."""
    agent = machine.agent()
    machine.watch(agent, 1)
    machine.disk.is_full = True
    machine.start(7, "whisper")
    machine.watch(agent, 3)
    machine.finish(7)
    machine.watch(agent, 3)
    assert not machine.rows(DriverRecord)
    machine.disk.is_full = False
    machine.watch(agent, 1)
    assert len(machine.rows(DriverRecord)) == 1
    assert len(machine.rows(ProcessIdentity)) == 1
    told = [sentence for sentence in machine.said if "kept in memory" in sentence or "well again" in sentence]
    assert ["kept in memory" in sentence for sentence in told] == [True, False]


def test_a_disk_still_full_at_the_end_is_an_error(machine) -> None:
    """What was not written must not be thought written."""
    agent = machine.agent()
    machine.watch(agent, 1)
    machine.disk.is_full = True
    machine.start(7, "whisper")
    machine.watch(agent, 1)
    with pytest.raises(Unavailable):
        agent.stop()


def test_a_driver_that_goes_away_is_said_once_and_its_time_is_unknown(machine) -> None:
    """All is well again only when the driver answers again, whatever could be written meanwhile."""
    agent = machine.agent()
    machine.watch(agent, 3)
    for call in ("nvmlDeviceGetAccountingMode", "nvmlInit"):
        machine.driver.fail(call, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    machine.watch(agent, 5)
    assert ["did not answer" in sentence for sentence in machine.said] == [True]
    for call in ("nvmlDeviceGetAccountingMode", "nvmlInit"):
        machine.driver.fail(call, 0)
    machine.watch(agent, 2)
    agent.stop()
    assert ["did not answer" in sentence for sentence in machine.said] == [True, False]
    assert "well again" in machine.said[-1]
    lost = [row for row in machine.rows(Watch) if row.status == "driver-unreachable"]
    assert sum(row.until_us - row.since_us for row in lost) == 5 * SECOND_US


def test_an_imperfect_reading_is_said_and_written_once_while_it_holds(machine) -> None:
    """A thousand looks at one broken device are one note; when it comes back it is news again."""
    agent = machine.agent()
    machine.watch(agent, 1)
    machine.driver.fail("nvmlDeviceGetComputeRunningProcesses", pynvml.NVML_ERROR_UNKNOWN)
    machine.driver.fail("nvmlDeviceGetComputeRunningProcesses_v2", pynvml.NVML_ERROR_UNKNOWN)
    machine.watch(agent, 5)
    notes = [sentence for sentence in machine.said if "note:" in sentence]
    assert notes
    assert len(notes) == len(set(notes))
    remarks = [row for row in machine.rows(Watch) if row.source == "driver" and row.detail and not row.interval_ms]
    assert len(remarks) == len(notes)


def test_a_ring_that_fills_quickly_is_looked_at_more_often(machine) -> None:
    """And less often again, once it fills slowly: never beyond what was asked for."""
    agent = machine.agent()
    machine.watch(agent, 1)
    for pid in range(100, 180):
        machine.driver.start(pid, machine.gpu, 1)
        machine.driver.finish(pid, machine.gpu)
    machine.watch(agent, 1)
    assert agent._interval_us < SECOND_US
    fastest = agent._interval_us
    machine.watch(agent, 1)
    assert agent._interval_us == min(SECOND_US, 2 * fastest)
    machine.watch(agent, 5)
    assert agent._interval_us == SECOND_US
    agent.stop()
    assert {row.interval_ms for row in machine.rows(Watch) if row.source == "driver"} >= {1000, fastest // 1000}


class SlowLists:
    """The driver's list of the living takes three seconds, in which the world goes on.

    Args:
        machine: whose driver and clock.
        before, after: what happens once, before the list is read and after it.
    """

    def __init__(self, machine, before: Callable[[], None], after: Callable[[], None] = lambda: None) -> None:
        self._machine = machine
        self._read = machine.driver.nvmlDeviceGetComputeRunningProcesses
        self._meanwhile = [before, after]

    def __call__(self, handle) -> object:
        self._happens()
        self._machine.clock.advance(3 * SECOND_US)
        found = self._read(handle)
        self._happens()
        return found

    def _happens(self) -> None:
        if self._meanwhile:
            self._meanwhile.pop(0)()


@pytest.mark.parametrize("hides_start", [False, True])
@pytest.mark.parametrize("outlives_look", [False, True])
def test_a_context_that_began_while_a_look_was_reading_is_told_once(
    machine, monkeypatch, hides_start: bool, outlives_look: bool
) -> None:
    """A look on a busy machine takes seconds: its time is that of its begin, and what began meanwhile is in a list.

    The driver's own start ties the list to the row; where it is hidden behind an older row of the pid, the look says
    nothing of a context that it did not know.
    """
    agent = machine.agent()
    if hides_start:
        machine.start(7, "whisper")
        machine.clock.advance(SECOND_US)
        machine.driver.finish(7, machine.gpu)
    machine.watch(agent, 2)

    def begins() -> None:
        machine.clock.advance(3 * SECOND_US)
        machine.start(7, "whisper")

    def ends() -> None:
        machine.clock.advance(10_000)
        machine.finish(7)

    name = "nvmlDeviceGetComputeRunningProcesses"
    slow = SlowLists(machine, begins) if outlives_look else SlowLists(machine, begins, ends)
    monkeypatch.setattr(machine.driver, name, slow, raising=False)
    machine.watch(agent, 1)
    monkeypatch.undo()
    if outlives_look:
        ends()
    machine.watch(agent, 3)
    agent.stop()
    report = usage(
        machine.ledger, meter="gpu.context", by=("subject",), since_us=machine.clock.now_us() - MINUTE_US,
        until_us=machine.clock.now_us(), now_us=machine.clock.now_us(),
    )  # fmt: skip
    rows = machine.rows(DriverRecord)
    evidence = Evidence(
        driver_records=tuple(rows), sightings=tuple(machine.rows(Sighting)),
        identities=tuple(machine.rows(ProcessIdentity)), watches=tuple(machine.rows(Watch)),
    )  # fmt: skip
    assert [one.settled for one in contexts(evidence)] == [True] * len(rows)
    assert (report.total, report.seen_once) == (sum(row.context_ms for row in rows), ())


def test_accounting_is_enabled_where_it_is_off_and_again_after_a_reload(machine) -> None:
    """Each time it says so, and writes it down; the gap is UNKNOWN, not idle."""
    machine.driver.reload()
    agent = machine.agent(enable_accounting=True)
    machine.start(7, "whisper")
    machine.watch(agent, 3)
    machine.driver.reload()
    machine.watch(agent, 3)
    agent.stop()
    enabled = [sentence for sentence in machine.said if "accounting enabled" in sentence]
    assert ["again (the driver was reloaded)" in sentence for sentence in enabled] == [False, True]
    written = [row.detail for row in machine.rows(Watch) if "accounting enabled" in row.detail]
    assert len(written) == 2
    assert {"accounting-disabled", "accounting-reset"} <= {row.status for row in machine.rows(Watch)}


def test_accounting_is_left_alone_without_being_told(machine) -> None:
    """An agent that only watches changes nothing on the machine."""
    machine.driver.reload()
    agent = machine.agent()
    machine.watch(agent, 3)
    assert machine.driver.nvmlDeviceGetAccountingMode(machine.driver.nvmlDeviceGetHandleByIndex(0)) == 0


def test_a_driver_that_is_gone_while_accounting_is_enabled_does_not_end_the_agent(machine) -> None:
    """It is the same trouble as a driver that does not answer: said once, and tried again."""
    machine.driver.reload()
    machine.driver.fail("nvmlDeviceSetAccountingMode", pynvml.NVML_ERROR_UNKNOWN, times=2)
    agent = machine.agent(enable_accounting=True)
    machine.watch(agent, 4)
    assert len([sentence for sentence in machine.said if "accounting" in sentence and "not" in sentence]) == 1
    assert machine.driver.nvmlDeviceGetAccountingMode(machine.driver.nvmlDeviceGetHandleByIndex(0)) == 1


def test_a_closed_hour_is_recorded_and_sealed_by_the_agent_itself(machine) -> None:
    """Five minutes after the hour, once."""
    agent = machine.agent(interval_us=60 * SECOND_US)
    machine.start(7, "whisper")
    machine.watch(agent, 64, every_s=60)
    assert not machine.rows(UsageRecord)
    machine.watch(agent, 10, every_s=60)
    assert [(row.meter, row.quantity) for row in machine.rows(UsageRecord) if row.meter == "gpu.context"] == [
        ("gpu.context", 3_600_000)
    ]
    assert len(machine.rows(Pass)) == 1
    assert len(machine.rows(Seal)) == 1


def test_one_look_writes_all_it_saw(machine) -> None:
    """``--once`` for cron: the living, the span, no seal of its own."""
    machine.start(7, "whisper")
    machine.clock.advance(SECOND_US)
    agent = machine.agent(once=True, interval_us=60 * SECOND_US)
    agent.run()
    assert [row.pid for row in machine.rows(Sighting)][-1] == 7
    assert not machine.rows(Seal)


def test_looks_keep_to_the_beat_and_stop_when_told(machine) -> None:
    """The time a look takes is no part of the wait, and a long wait hears of the end within a second."""
    agent = machine.agent(interval_us=3600 * SECOND_US)
    began_us = machine.clock.now_us()
    agent._stopping = lambda: machine.clock.now_us() >= began_us + 5 * SECOND_US
    agent.run()
    assert machine.clock.now_us() - began_us <= 6 * SECOND_US
    assert len(machine.rows(Seal)) == 1


def test_a_look_comes_before_its_time_where_something_is_urgent(machine) -> None:
    """The next one is due when it was: the beat is kept. Nothing is looked at more often than ten times a second."""
    urgent = threading.Event()
    machine.names.urgent = urgent
    looked: list[int] = []
    agent = machine.agent()
    agent._stopping = lambda: len(looked) == 4
    agent._looked = lambda at_us, answered: (looked.append(at_us), urgent.set())
    urgent.wait = lambda seconds: machine.clock.advance(20_000) is None  # type: ignore[method-assign]
    agent.run()
    apart = [later - earlier for earlier, later in pairwise(looked)]
    assert apart == [100_000] * 3


def test_a_second_agent_of_a_ledger_is_refused(tmp_path: Path) -> None:
    """Two would watch the same things twice; the lock dies with its process."""
    place = tmp_path / "ledger.db"
    with OneAgent(place):
        with pytest.raises(Refused) as refused, OneAgent(place):
            pass
        assert refused.value.code == "agent-running"
        with OneAgent(tmp_path / "other.db"):
            pass
    with OneAgent(place):
        pass


def test_a_lock_that_cannot_be_made_is_no_bug(tmp_path: Path) -> None:
    """A folder that is not there, or not writable: what and where."""
    with pytest.raises(Unavailable) as refused, OneAgent(tmp_path / "none" / "ledger.db"):
        pass
    assert refused.value.code == "ledger-permission"


def test_a_lock_that_is_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    """Root's agent would write where whoever laid the link wants; it is told what to remove."""
    (tmp_path / "precious").write_text("theirs", encoding="utf-8")
    (tmp_path / "precious").chmod(0o644)
    (tmp_path / "ledger.db.agent").symlink_to(tmp_path / "precious")
    with pytest.raises(Unavailable) as refused, OneAgent(tmp_path / "ledger.db"):
        pass
    assert refused.value.code == "ledger-permission"
    assert "symbolic link" in refused.value.message
    assert f"rm {tmp_path / 'ledger.db.agent'}" in refused.value.hint
    assert (tmp_path / "precious").stat().st_mode & 0o777 == 0o644


def test_what_the_agent_writes_can_be_read_while_it_runs(machine) -> None:
    """A reader beside the writer sees what was acknowledged."""
    agent = machine.agent()
    machine.start(7, "whisper")
    machine.watch(agent, 1)
    with Ledger.open(machine.ledger.place, mode="read") as beside:
        assert beside.count(Sighting) == machine.ledger.count(Sighting) > 0
