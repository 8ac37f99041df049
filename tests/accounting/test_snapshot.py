"""The machines at a moment: devices as they stood, their processes by name."""

from __future__ import annotations

from gpuledger.accounting.owners import Naming
from gpuledger.accounting.snapshot import snapshot, standing
from gpuledger.model.identity import IdentityText
from gpuledger.model.meters import Grade
from gpuledger.model.missing import Missing
from gpuledger.model.quantities import Context
from gpuledger.model.rows import DeviceEvent
from gpuledger.model.snapshot import Held

ABSENT = Missing("test: not given")
TEXTS = {"k": IdentityText(exe="/usr/bin/chat", command="/usr/bin/chat --port 1", user="al", unit="chat.service")}


def event(at_us: int, what: str = "seen", device: str = "GPU-0", **words) -> DeviceEvent:
    row = {"host": "box", "class_name": "L4", "product": "NVIDIA L4", "memory_mib": 23034, "method": "nvml"}
    return DeviceEvent(device=device, at_us=at_us, event=what, **row | words)


def held(subject: str = "k", device: str = "GPU-0", **words) -> Held:
    row = {
        "host": "box", "pid": 7, "process": ("b", 1), "spans": ((100, 200),), "settled": False, "context_ms": 0,
        "open": True, "started_at_us": 100, "placed": "driver", "accounted": "yes", "peak_memory_mib": 5,
        "last_seen_us": 200, "evidence": (),
    }  # fmt: skip
    doubt = words.pop("doubt", "")
    context = Context(subject=subject, device=device, **row | words)
    until_us = ABSENT if context.open else context.last_seen_us
    return Held(
        context=context,
        since_us=context.spans[0][0],
        until_us=until_us,
        memory=ABSENT,
        doubt=doubt,
        ref="sighting:box.agent/1",
    )


def ask(*found: Held, events: list[DeviceEvent], at_us: int = 150, verdict: str = ""):
    places = {(one.host, one.device) for one in events if not one.parent}
    return snapshot(
        at_us=at_us, held=found, events=events, verdicts=dict.fromkeys(places, verdict), looked_us={},
        naming=Naming(texts=TEXTS), texts=TEXTS,
    )  # fmt: skip


def test_a_device_stands_as_it_was_last_read() -> None:
    """The latest event by the moment; before the first one as it was first read; a lost one stays in sight."""
    rows = [event(10, product="old"), event(20, "changed", product="new"), event(30, "lost", product="new")]
    found = [standing(rows, at_us=at_us)["box", "GPU-0"] for at_us in (5, 15, 25, 35)]
    assert [(one.product, one.event) for one in found] == [
        ("old", "seen"), ("old", "seen"), ("new", "changed"), ("new", "lost"),
    ]  # fmt: skip


def test_instances_are_those_that_were_there() -> None:
    """Made and destroyed while the machine runs; one that a context held is told of in any case."""
    rows = [
        event(10),
        event(10, device="MIG-1", parent="GPU-0", profile="1g.5gb"),
        event(50, "lost", device="MIG-1", parent="GPU-0", profile="1g.5gb"),
        event(60, device="MIG-2", parent="GPU-0", profile="2g.10gb"),
    ]
    (whole,) = ask(events=rows, at_us=20).devices
    assert [part.device for part in whole.slices] == ["MIG-1"]
    (whole,) = ask(events=rows, at_us=70).devices
    assert [part.device for part in whole.slices] == ["MIG-2"]
    (whole,) = ask(held(device="MIG-1"), events=rows, at_us=70).devices
    assert [part.device for part in whole.slices] == ["MIG-1", "MIG-2"]
    assert [(one.device, one.profile) for one in whole.processes] == [("MIG-1", "1g.5gb")]


def test_a_process_has_its_names() -> None:
    """Program, service, user and subject; the doubtful ones come last."""
    (device,) = ask(held(pid=9, doubt="who knows"), held(pid=10), events=[event(0)]).devices
    first, second = device.processes
    assert (first.pid, first.program, first.service, first.user) == (10, "chat", "unit:chat.service", "al")
    assert (first.subject, first.cause, first.grade) == ("unit:chat.service", "", Grade.OBSERVED)
    assert (second.pid, second.doubt) == (9, "who knows")


def test_the_unnamed_say_why_and_the_forgotten_say_so() -> None:
    """No name is made up."""
    found = (held("unattributed:between-samples", settled=True, open=False), held("dropped", pid=8))
    (device,) = ask(*found, events=[event(0)]).devices
    unnamed, forgotten = device.processes
    assert (unnamed.program, unnamed.service) == ("-", "unattributed:between-samples")
    assert unnamed.cause == "lived and died between two polls"
    assert (unnamed.grade, unnamed.until_us) == (Grade.SETTLED, 200)
    assert (forgotten.program, forgotten.service, forgotten.cause) == ("forgotten", "forgotten", "")


def test_an_open_context_has_no_end_and_a_zero_peak_is_none() -> None:
    """The driver says 0 MiB where it knows nothing."""
    (device,) = ask(held(peak_memory_mib=0), events=[event(0)]).devices
    (one,) = device.processes
    assert isinstance(one.until_us, Missing)
    assert isinstance(one.peak_memory_mib, Missing)


def test_an_unwatched_moment_has_its_reason_and_what_helps() -> None:
    """As blind tells it."""
    (device,) = ask(events=[event(0)], verdict="watch-gap").devices
    assert (device.reason, device.meaning) == ("watch-gap", "no agent was looking")
    assert device.command
    assert isinstance(device.looked_us, Missing)
