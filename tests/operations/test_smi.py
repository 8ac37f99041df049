"""``smi``: the machines at any past moment, out of a ledger."""

from __future__ import annotations

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.model.missing import Missing
from gpuledger.model.moments import MINUTE_US, SECOND_US
from gpuledger.model.rows import DeviceEvent
from gpuledger.model.snapshot import Snapshot, SnapshotProcess
from gpuledger.operations.agent import OneAgent
from gpuledger.operations.meter import meter
from gpuledger.operations.pulse import PulseTeller
from gpuledger.operations.smi import smi

DAY = 24 * 60
FAR = "GPU-99999999-1111-2222-3333-444455556666"
SLICE = "MIG-aaaaaaaa-1111-2222-3333-444455556666"


def at(box, minute: float, *, now: float = 130) -> Snapshot:
    """The machines at a minute of the day."""
    return smi(box.ledger, at_us=box.at(minute), now_us=box.at(now))


def shown(report: Snapshot, place: int = 0) -> list[tuple[int, str, str]]:
    """Pid, service and grade of what certainly held a device."""
    device = report.devices[place]
    return [(one.pid, one.service, one.grade.value) for one in device.processes if not one.doubt]


def only(report: Snapshot) -> SnapshotProcess:
    """The one process of the one device."""
    (device,) = report.devices
    (process,) = device.processes
    return process


CHAT, UNNAMED, TTS = (
    (7, "unit:chat.service", "settled"),
    (8, "unattributed:between-samples", "settled"),
    (9, "unit:tts.service", "observed"),
)


@pytest.mark.parametrize(
    ("minute", "reason", "processes"),
    [
        (5, "before-watch", []),
        (15, "", []),
        (20, "", [CHAT]),
        (40.005, "", [CHAT, UNNAMED]),
        (41, "", [CHAT]),
        (80, "", []),
        (90, "", [TTS]),
        (120, "", [TTS]),
        (125, "watch-gap", []),
    ],
)
def test_the_morning_moment_by_moment(box, minute: float, reason: str, processes: list) -> None:
    """Before the watch, before it, in its life, with a dead one beside, after death, and when nobody looked."""
    box.tell_a_morning()
    report = at(box, minute)
    assert report.devices[0].reason == reason
    assert shown(report) == processes
    assert report.answered == (not reason)


@pytest.mark.parametrize("minute", [40.005, 95])
def test_a_pass_changes_nothing(box, minute: float) -> None:
    """It is read from evidence, recorded or not."""
    box.tell_a_morning()
    before = at(box, minute)
    meter(box.ledger, now_us=box.at(126), writer="box.meter")
    assert at(box, minute) == before


def test_the_device_is_told_as_nvidia_smi_does(box) -> None:
    """Product, memory, driver; and the row to explain each process by."""
    box.append(box.device(0, driver_version="595.45.04"), box.looking(0, 10), box.settled(7, 1, 60_000, read=3))
    report = at(box, 1.5)
    (device,) = report.devices
    assert (device.product, device.memory_mib, device.driver_version) == ("NVIDIA L4", 23034, "595.45.04")
    assert box.ledger.get(device.processes[0].ref).pid == 7


def test_the_future_is_not_shown(box) -> None:
    """Nobody has looked there."""
    with pytest.raises(Misconfigured, match="lies ahead"):
        at(box, 131)


def test_an_empty_ledger_answers_nothing(box) -> None:
    """No device is known, so no device is idle."""
    report = smi(box.ledger, at_us=None, now_us=box.at(0))
    assert (report.devices, report.answered, report.at_us) == ((), False, box.at(0))


def test_memory_is_that_of_the_moment_and_the_peak_that_of_the_life(box) -> None:
    """From the span of looking that holds the moment; where none does it is absent, with its reason."""
    box.append(
        box.device(0), box.naming(0, 30), box.looking(0, 30), box.named(7, 0, "chat", seen=1),
        box.seen(7, 1, 1, start=0.5, samples=0),
        box.seen(7, 1, 6, start=0.5, memory_mib_ms=300_000 * 1000, memory_ms=300_000, peak_memory_mib=1200),
        box.seen(7, 6, 11, start=0.5, memory_mib_ms=300_000 * 4000, memory_ms=300_000, peak_memory_mib=4800),
        box.seen(7, 11, 12, start=0.5, samples=2, peak_memory_mib=4800),
    )  # fmt: skip
    found = {minute: only(at(box, minute, now=30)) for minute in (0.7, 2, 8, 11.5)}
    assert [found[minute].memory.mib for minute in (2, 8)] == [1000, 4000]
    assert [found[minute].memory.reason for minute in (0.7, 11.5)] == [
        "no memory sample covers this moment", "its memory could not be read",
    ]  # fmt: skip
    assert {one.peak_memory_mib for one in found.values()} == {4800}
    assert {one.since_us for one in found.values()} == {box.at(0.5)}


def test_a_daemon_of_months_keeps_its_first_look_and_its_last(box) -> None:
    """Without the driver's start a context begins with the first look, however far the moment lies from it."""
    first, last = -60 * DAY, 30 * DAY
    rows = [box.seen(7, day * DAY, (day + 1) * DAY, samples=9) for day in range(-60, 30)]
    box.append(
        box.device(first), box.naming(first, last), box.looking(first, last), box.named(7, first - 5, "ollama"), *rows,
        box.seen(7, last, last, gone=last + 1, samples=0), minute=last + 1,
    )  # fmt: skip
    one = only(at(box, 17, now=last + 60))
    assert (one.service, one.since_us, one.since_by) == ("ollama", box.at(first), "looks")
    assert one.until_us == box.at(last)


def test_a_long_context_is_named_and_settled_hours_after_the_moment(box) -> None:
    """What the driver settled ten hours later held the device all the time."""
    box.append(
        box.device(0), box.naming(0, 700), box.looking(0, 700), box.named(7, 0.5, "train", seen=1),
        box.settled(7, 1, 600 * 60_000, read=602), minute=700,
    )  # fmt: skip
    one = only(at(box, 300, now=700))
    assert (one.service, one.grade.value, one.until_us) == ("unit:train.service", "settled", box.at(601))


def test_in_a_gap_of_days_the_last_ones_seen_may_have_held_it(box) -> None:
    """The device is UNKNOWN, and what the last look saw alive is told with its doubt; what had ended is not."""
    box.append(
        box.device(0), box.naming(0, 60), box.looking(0, 60), box.named(7, 1, "ollama"), box.named(8, 1, "gone"),
        box.seen(7, 2, 60), box.seen(8, 2, 30, gone=30.1), minute=60,
    )  # fmt: skip
    report = at(box, 3 * DAY, now=4 * DAY)
    assert (report.devices[0].reason, report.answered) == ("watch-gap", False)
    assert report.devices[0].looked_us == box.at(60)
    one = only(report)
    assert (one.service, "nobody had looked again" in one.doubt) == ("ollama", True)


def test_what_an_agent_holds_back_is_not_written_and_hides_nobody(box) -> None:
    """Its disk is full: now is its last look all the same, and who was alive at the last written one may still be."""
    box.append(
        box.device(0), box.naming(0, 60), box.looking(0, 60), box.named(7, 1, "ollama"), box.seen(7, 2, 60), minute=60
    )
    with OneAgent(box.place) as place:
        teller = PulseTeller(host=box.host, interval_us=SECOND_US, say=place.tell)
        teller.looked(box.at(60), True)
        for minute in (60.1, 65):
            teller.stuck(box.at(minute))
        for asked_us in (None, box.at(65.01)):
            report = smi(box.ledger, at_us=asked_us, now_us=box.at(65.01))
            assert (report.at_us, report.devices[0].reason) == (box.at(65), "not-written")
            assert report.devices[0].looked_us == box.at(60)
            assert (only(report).service, "nobody had looked again" in only(report).doubt) == ("ollama", True)
        late = smi(box.ledger, at_us=None, now_us=box.at(70))  # by then it has ended, and what it held back is lost
        assert (late.at_us, late.devices[0].reason) == (box.at(70), "watch-gap")


def test_a_process_seen_before_and_after_a_gap_may_have_held_it_meanwhile(box) -> None:
    """Nothing proves it, and nothing else is as likely."""
    box.append(
        box.device(0), box.naming(0, 60), box.looking(0, 60), box.named(7, 1, "ollama"), box.seen(7, 2, 60), minute=60
    )
    back = 2 * DAY
    box.append(
        box.naming(back, back + 60), box.looking(back, back + 60), box.seen(7, back, back + 60), minute=back + 60
    )
    assert "and again at" in only(at(box, DAY, now=back + 60)).doubt


def test_accounting_off_lists_the_living_and_says_that_there_may_be_more(box) -> None:
    """The lists of the living are read all the same."""
    box.append(
        box.device(0), box.naming(0, 30), box.looking(0, 30, status="accounting-disabled"), box.named(7, 1, "ollama"),
        box.seen(7, 2, 30), minute=30,
    )  # fmt: skip
    report = at(box, 10, now=30)
    assert (report.devices[0].reason, shown(report)) == ("accounting-disabled", [(7, "ollama", "observed")])
    assert report.answered
    assert report.has_unknown_parts
    assert not at(box, 1, now=30).answered


@pytest.mark.parametrize("reason", ["ring-overflow", "device-lost", "driver-unreachable", "accounting-reset"])
def test_a_moment_that_is_unknown_is_never_empty(box, reason: str) -> None:
    """Each reason is told with what helps."""
    box.append(box.device(0), box.looking(0, 5), box.looking(5, 10, status=reason), box.looking(10, 15))
    assert [at(box, minute, now=15).devices[0].reason for minute in (3, 7, 12)] == ["", reason, ""]


def test_under_mig_processes_are_told_with_their_instance(box) -> None:
    """Observed on the instance's UUID, listed under the GPU it is a part of."""
    box.append(
        box.device(0, product="NVIDIA A100-SXM4-40GB"),
        box.device(0, device=SLICE, parent=box.gpu, profile="1g.5gb", memory_mib=4864),
        box.naming(0, 30), box.looking(0, 30, status="accounting-unsupported"), box.named(7, 1, "notebook"),
        box.seen(7, 2, 30, device=SLICE), minute=30,
    )  # fmt: skip
    report = at(box, 10, now=30)
    (device,) = report.devices
    assert [(part.device, part.profile, part.memory_mib) for part in device.slices] == [(SLICE, "1g.5gb", 4864)]
    one = only(report)
    assert (one.device, one.profile, one.since_us) == (SLICE, "1g.5gb", box.at(2))
    assert device.reason == "accounting-unsupported"


def test_two_hosts_stand_beside_each_other(box) -> None:
    """One watched and one that was not: each has its own answer."""
    box.tell_a_morning()
    box.append(
        box.device(50, host="far", device=FAR),
        box.settled(7, 30, 600_000, read=50, host="far", device=FAR),
        role="import",
    )
    report = at(box, 35)
    assert [(device.host, device.reason) for device in report.devices] == [("box", ""), ("far", "before-watch")]
    assert shown(report, 0) == [CHAT]
    assert [(pid, grade) for pid, _, grade in shown(report, 1)] == [(7, "settled")]


def test_now_is_unwatched_once_the_agent_has_ended(machine) -> None:
    """The device is UNKNOWN then; at the last look it was not."""
    agent = machine.agent(flush_us=300 * SECOND_US)
    machine.start(7, "chat", memory_mib=500)
    machine.watch(agent, 60)
    agent.stop()
    report = smi(machine.ledger, at_us=None, now_us=machine.clock.now_us() + 10 * MINUTE_US)
    assert report.devices[0].reason == "watch-gap"
    last_us = machine.clock.now_us()
    one = only(smi(machine.ledger, at_us=last_us, now_us=last_us))
    assert (one.program, one.doubt, one.memory.mib) == ("chat", "", 500)
    assert isinstance(one.until_us, Missing)


def test_what_lies_after_the_last_look_of_an_agent_that_looks_on_is_that_look(machine) -> None:
    """The next one is not made yet, and no gap; memory is that of the last sample written, with its time."""
    agent = machine.agent(flush_us=300 * SECOND_US)
    with OneAgent(machine.ledger.place) as place:
        teller = PulseTeller(host=machine.host, interval_us=SECOND_US, say=place.tell)
        agent._looked = teller.looked
        machine.start(7, "chat", memory_mib=500)
        machine.watch(agent, 60)
        looked_us = machine.clock.now_us()
        now_us = looked_us + SECOND_US // 2
        report = smi(machine.ledger, at_us=now_us, now_us=now_us)
        assert (report.at_us, report.devices[0].reason) == (looked_us, "")
        one = only(report)
        assert (one.program, one.doubt, one.memory.mib) == ("chat", "", 500)
        assert one.memory.until_us < looked_us - 50 * SECOND_US
        late_us = looked_us + 60 * SECOND_US
        assert smi(machine.ledger, at_us=late_us, now_us=late_us).devices[0].reason == "watch-gap"


def test_of_dumps_alone_now_is_the_last_of_them(box) -> None:
    """Nobody watches on, so the present is not asked about."""
    box.append(
        box.device(10, method="import"),
        box.seen(7, 10, 10, method="import", boot_id="", start_ticks=0, peak_memory_mib=321),
        box.looking(10, 10, every_ms=0), role="import",
    )  # fmt: skip
    report = smi(box.ledger, at_us=None, now_us=box.at(600))
    assert (report.at_us, report.devices[0].reason) == (box.at(10), "")
    assert only(report).memory.mib == 321


def test_a_device_first_seen_later_is_told_as_unwatched(box) -> None:
    """A GPU is not new because nobody had looked."""
    box.append(box.device(60), box.looking(60, 90))
    report = at(box, 10, now=90)
    assert [(device.product, device.reason) for device in report.devices] == [("NVIDIA L4", "before-watch")]
    assert box.ledger.count(DeviceEvent) == 1
