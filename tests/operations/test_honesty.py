"""What a reader must never be told: faults that a review found, each as the right answer."""

from __future__ import annotations

from typing import Any

import pynvml
import pytest

from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, MINUTE_US, SECOND_US
from gpuledger.model.rows import Pass, UsageCorrection, Watch
from gpuledger.operations import meter as metering
from gpuledger.operations.agent import OneAgent
from gpuledger.operations.blind import blind
from gpuledger.operations.meter import meter
from gpuledger.operations.pulse import Pulse
from gpuledger.operations.usage import usage, window
from gpuledger.operations.verify import verify


def asked(ledger: Ledger, now_us: int, *, name: str = "gpu.context", since: int | None = None) -> Any:
    since_us, until_us = window(ledger, since=since, until=None, now_us=now_us)
    return usage(ledger, meter=name, by=("service",), since_us=since_us, until_us=until_us, now_us=now_us)


def test_an_agent_whose_driver_does_not_answer_does_not_beat_for_its_contexts(machine) -> None:
    """Ten good looks, then silence for two minutes: ten seconds were watched, and the context is no older."""
    with OneAgent(machine.ledger.place) as place:
        agent = machine.agent()
        agent._looked = lambda at_us, answered: place.tell(
            Pulse(host="box", looked_us=at_us, interval_us=SECOND_US, answered=answered)
        )
        machine.start(7, "whisper")
        machine.watch(agent, 11)
        machine.driver.fail("nvmlDeviceGetCount", pynvml.NVML_ERROR_UNKNOWN)
        machine.watch(agent, 120)
        report = asked(machine.ledger, machine.clock.now_us())
    assert report.total == 11_000
    assert report.watched.seconds == 10
    assert {span.reason for span in report.unknown if span.seconds > 1} == {"driver-unreachable"}


def test_a_status_is_written_by_the_look_that_found_it(machine) -> None:
    """A reader in the first minute is not told that accounting is off when it is on."""
    machine.driver.reload()
    agent = machine.agent(enable_accounting=True)
    machine.watch(agent, 4)
    rows = sorted(machine.rows(Watch), key=lambda row: (row.until_us, row.number))
    driver = [row.status for row in rows if row.source == "driver" and row.readings]
    assert driver == ["accounting-disabled", "empty-ledger"]


def test_a_list_that_cannot_be_read_is_not_watched(machine) -> None:
    """Accounting is on and the list does not come: that is neither empty nor well."""
    machine.driver.fail("nvmlDeviceGetAccountingPids", pynvml.NVML_ERROR_NOT_SUPPORTED)
    machine.watch(machine.agent(flush_us=SECOND_US), 5)
    report = asked(machine.ledger, machine.clock.now_us())
    assert report.watched.seconds == 0
    assert {size.reason for size in report.sizes} >= {"accounting-unread"}


def test_a_device_that_refuses_accounting_does_not_end_the_agent(machine) -> None:
    """One GPU without it must not leave the others unwatched."""
    machine.driver.reload()
    machine.driver.fail("nvmlDeviceSetAccountingMode", pynvml.NVML_ERROR_NOT_SUPPORTED)
    machine.watch(machine.agent(enable_accounting=True), 3)
    assert len([sentence for sentence in machine.said if "could not be enabled" in sentence]) == 1


@pytest.mark.parametrize("name", ["gpu.memory", "gpu.busy"])
def test_no_sample_is_not_zero(box, name: str) -> None:
    """Contexts were alive and nothing could be sampled: UNKNOWN, though the time was watched."""
    box.append(box.device(), box.looking(0, 10), box.naming(0, 10), box.seen(7, 0, 10, start=0), minute=10)
    report = asked(box.ledger, box.at(10), name=name)
    assert isinstance(report.total, Missing)
    assert not report.answered


@pytest.mark.parametrize(
    ("name", "covered"), [("gpu.memory", {"memory_ms": 600_000}), ("gpu.busy", {"busy_covered_ms": 600_000})]
)
def test_samples_of_nothing_are_zero(box, name: str, covered: dict[str, int]) -> None:
    """The driver was asked and said none: that is known."""
    box.append(box.device(), box.looking(0, 10), box.naming(0, 10), box.seen(7, 0, 10, start=0, **covered), minute=10)
    assert asked(box.ledger, box.at(10), name=name).total == 0


def test_a_context_seen_once_is_named_and_has_no_length(box) -> None:
    """Accounting was off: it held the device for less than two polls, and nobody knows how long."""
    box.append(
        box.device(), box.looking(0, 10, status="accounting-disabled"), box.naming(0, 10), box.named(7, 4, "tts"),
        box.seen(7, 5, 5), box.seen(7, 5, 5, gone=5.02, samples=0), minute=10,
    )  # fmt: skip
    report = asked(box.ledger, box.at(10))
    assert [(line.service, line.contexts) for line in report.seen_once] == [("unit:tts.service", 1)]
    assert isinstance(report.total, Missing)
    spots = blind(box.ledger, since_us=box.at(0), until_us=box.at(10), now_us=box.at(10))
    assert spots.seen_once == report.seen_once


def test_late_evidence_is_seen_before_any_pass_books_it(box) -> None:
    """A row that arrives late for a recorded hour is in the next answer, and in the next pass: once."""
    box.tell_a_morning()
    meter(box.ledger, now_us=box.at(120), writer="box.meter")
    before = asked(box.ledger, box.at(120)).total
    box.append(box.settled(99, 10, 5000, read=115), minute=115)
    assert asked(box.ledger, box.at(120)).total == before + 5000
    meter(box.ledger, now_us=box.at(120), writer="box.meter")
    assert asked(box.ledger, box.at(120)).total == before + 5000


def test_a_pass_that_another_overtook_begins_anew(box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another pass books while this one derives: what it derived is old, and nothing of it is written."""
    box.tell_a_morning()
    derive = metering.derive
    overtaken: list[bool] = []

    def overtake(*arguments: Any, **words: Any) -> Any:
        if not overtaken:
            overtaken.append(True)
            with Ledger.open(box.place, mode="append") as other:
                meter(other, now_us=box.at(66), writer="box.other")
            box.append(box.settled(99, 10, 5000, read=70), minute=70)
        return derive(*arguments, **words)

    monkeypatch.setattr(metering, "derive", overtake)
    meter(box.ledger, now_us=box.at(130), writer="box.meter")
    monkeypatch.undo()
    meter(box.ledger, now_us=box.at(130), writer="box.meter")
    assert verify(box.ledger, now_us=box.at(130)).ok
    assert len({row.writer for row in box.ledger.scan(Pass)}) == 2


def test_passes_in_any_order_of_time_leave_nothing_out(box) -> None:
    """A pass for an earlier time than the last (`--now`, a clock set back) still books what is late."""
    box.tell_a_morning()
    meter(box.ledger, now_us=box.at(120 + 70), writer="box.meter")
    box.append(box.settled(99, 10, 5000, read=115), minute=191)
    meter(box.ledger, now_us=box.at(66), writer="box.meter")
    assert [row.delta for row in box.ledger.scan(UsageCorrection)] == [5000]
    assert verify(box.ledger, now_us=box.at(200)).ok


def test_a_watch_row_that_waits_for_the_next_pass_is_no_difference(box) -> None:
    """Verify derives from what the passes had seen, watches included."""
    box.append(box.device(), box.naming(0, 20), box.looking(0, 120), box.settled(9, 30, 500, read=31), minute=60)
    meter(box.ledger, now_us=box.at(70), writer="box.meter")
    box.append(box.naming(20, 60), minute=71)
    assert verify(box.ledger, now_us=box.at(72)).ok


def test_a_clock_set_back_has_a_size(machine) -> None:
    """The hour that was lived twice is UNKNOWN for an hour, not for nothing."""
    agent = machine.agent(flush_us=SECOND_US)
    machine.start(7, "whisper")
    machine.watch(agent, 90, every_s=60)
    machine.clock.step(-HOUR_US)
    machine.watch(agent, 100, every_s=60)
    report = asked(machine.ledger, machine.clock.now_us())
    steps = sum(size.seconds for size in report.sizes if size.reason == "clock-step")
    assert HOUR_US - MINUTE_US <= steps * SECOND_US <= HOUR_US + 2 * MINUTE_US
