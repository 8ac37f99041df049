"""The agent's pulse: what is not written yet is no gap while the agent looks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.rows import DeviceEvent, Sighting, Watch
from gpuledger.operations.pulse import (
    Pulse,
    PulseTeller,
    hear,
    pulse_path,
    tell,
    unwritten_sightings,
    unwritten_watches,
)
from gpuledger.operations.usage import usage, window

T0 = 1_790_000_000_000_000
SECOND = 1_000_000
GPU = "GPU-11111111-2222-3333-4444-555555555555"


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger whose agent wrote until second 10, with one context alive."""
    with Ledger.open(tmp_path / "ledger.db", mode="append") as ledger:
        rows = [
            DeviceEvent(host="box", device=GPU, at_us=T0, event="seen", class_name="L4", product="NVIDIA L4",
                        memory_mib=23034, method="nvml"),
            *(
                Watch(host="box", device=device, source=source, method=method, interval_ms=1000, since_us=T0,
                      until_us=T0 + 10 * SECOND, status="ok", readings=10)
                for device, source, method in ((GPU, "driver", "nvml"), ("", "process", "poll"))
            ),
            Sighting(host="box", device=GPU, pid=7, boot_id="", start_ticks=0, context_started_at_us=T0, since_us=T0,
                     until_us=T0 + 10 * SECOND, peak_memory_mib=1, gone_at_us=Missing("alive"), method="nvml"),
        ]  # fmt: skip
        ledger.append(rows, writer="box.agent", at_us=T0 + 10 * SECOND)
        yield ledger


def beat(ledger: Ledger, second: int) -> None:
    descriptor = os.open(pulse_path(ledger.place), os.O_RDWR | os.O_CREAT, 0o640)
    tell(descriptor, Pulse(host="box", looked_us=T0 + second * SECOND, interval_us=SECOND))
    os.close(descriptor)


def test_without_a_pulse_the_time_after_the_last_row_is_a_gap(told: Ledger) -> None:
    """An agent that is gone does not watch."""
    now_us = T0 + 100 * SECOND
    since_us, until_us = window(told, since=None, until=None, now_us=now_us)
    report = usage(told, meter="gpu.context", by=("service",), since_us=since_us, until_us=until_us, now_us=now_us)
    assert (report.total, report.watched.seconds, report.watched.of) == (10_000, 10, 100)


def test_while_the_agent_looks_its_silence_means_that_nothing_changed(told: Ledger) -> None:
    """A minute after the last written row the context is 70 s old and the whole time was watched."""
    beat(told, 70)
    now_us = T0 + 71 * SECOND
    since_us, until_us = window(told, since=None, until=None, now_us=now_us)
    report = usage(told, meter="gpu.context", by=("service",), since_us=since_us, until_us=until_us, now_us=now_us)
    assert until_us == T0 + 70 * SECOND
    assert (report.total, report.unsettled_quantity) == (70_000, 70_000)
    assert (report.watched.seconds, report.watched.of, report.unknown) == (70, 70, ())


def test_a_pulse_long_after_the_last_row_is_not_believed(told: Ledger) -> None:
    """No agent leaves an hour unwritten: what claims so is a leftover."""
    beat(told, 7200)
    pulse = hear(told, now_us=T0 + 7200 * SECOND)
    assert pulse is not None
    assert list(unwritten_watches(told, pulse)) == []
    assert list(unwritten_sightings(told, told.scan(Sighting), pulse)) == []


def test_a_pulse_from_the_future_of_the_question_is_cut(told: Ledger) -> None:
    """`--now` in the past asks what was known then."""
    beat(told, 70)
    pulse = hear(told, now_us=T0 + 30 * SECOND)
    assert pulse is not None
    assert pulse.looked_us == T0 + 30 * SECOND


@pytest.mark.parametrize("text", ["", "{", '{"host": "box"}', "[]", "\0\0"])
def test_a_pulse_that_cannot_be_read_is_none(told: Ledger, text: str) -> None:
    """It is no evidence, so a broken one costs nothing but its news."""
    pulse_path(told.place).write_text(text)
    assert hear(told, now_us=T0) is None


def test_an_agent_that_cannot_write_is_not_taken_for_none(told: Ledger) -> None:
    """The disk is full since second 70: until then its silence is watched, since then it is not-written, and no gap."""
    said: list[Pulse] = []
    teller = PulseTeller(host="box", interval_us=SECOND, say=said.append)
    teller.looked(T0 + 70 * SECOND, True)
    for second in (71, 72, 100):
        teller.stuck(T0 + second * SECOND)
    descriptor = os.open(pulse_path(told.place), os.O_RDWR | os.O_CREAT, 0o640)
    tell(descriptor, said[-1])
    os.close(descriptor)

    def seconds(now_s: int) -> dict[str, int]:
        now_us = T0 + now_s * SECOND
        report = usage(told, meter="gpu.context", by=("service",), since_us=T0, until_us=now_us, now_us=now_us)
        return {size.reason: size.seconds for size in report.sizes}

    assert seconds(100) == {"not-written": 30}
    until_us = T0 + 100 * SECOND
    assert window(told, since=None, until=None, now_us=until_us + SECOND // 2) == (T0, until_us), "now is its last look"
    assert seconds(200) == {"watch-gap": 130}
    teller.looked(T0 + 101 * SECOND, True)
    assert (said[-1].stuck_since_us, said[-1].stuck_us) == (0, 0)
