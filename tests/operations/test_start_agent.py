"""Which driver source an agent gets on this machine, and what it says of itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from gpuledger.clock import FixedClock
from gpuledger.errors import Misconfigured, Unavailable
from gpuledger.operations import start_agent
from gpuledger.operations.start_agent import (
    AUTO,
    METHODS,
    Refusal,
    best_method,
    choose_source,
    choose_watcher,
    describe,
    ready_source,
    start,
)
from gpuledger.sources.event_watcher import EventWatcher
from gpuledger.sources.watchers import PollWatcher

XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><timestamp>Mon Jul 27 10:00:00 2026</timestamp><driver_version>590.48.01</driver_version>
<attached_gpus>1</attached_gpus><gpu id="00000000:01:00.0"><product_name>NVIDIA L4</product_name>
<uuid>GPU-5a3c1f2e-1111-2222-3333-444455556666</uuid><accounting_mode>Enabled</accounting_mode>
<processes></processes></gpu></nvidia_smi_log>
"""


def absent() -> Any:
    raise Unavailable("driver-unreachable", "NVIDIA's library is not installed", hint="install it")


def begin(machine, **words: Any):
    base: dict[str, Any] = {
        "host": "box", "clock": FixedClock(0), "interval_us": 1_000_000, "flush_us": 1, "once": False,
        "enable_accounting": False, "naming_note": "", "talk": machine.said.append, "stopping": lambda: True,
        "looked": lambda at_us: None,
    }  # fmt: skip
    watcher = PollWatcher(clock=FixedClock(0))
    return start(machine.ledger, choose_source(machine.said.append), watcher, **base | words), watcher


class Quiet:
    """A source of events in which nothing happens."""

    sees_opens = True
    counts_losses = True
    pause_s = 0.0
    closed = 0

    def __init__(self, method: str) -> None:
        self.method = method

    def begin(self) -> None: ...

    def wait(self, timeout_s: float) -> bool:
        return time.sleep(min(timeout_s, 0.01)) is not None

    def read(self) -> tuple[()]:
        return ()

    def lost(self) -> int:
        return 0

    def catch_up(self) -> None: ...

    def snapshot(self) -> tuple[()]:
        return ()

    def close(self) -> None:
        Quiet.closed += 1


def refused(method: str):
    def source() -> Any:
        raise Unavailable(f"{method}-forbidden", f"{method} takes root", hint=f"sudo for {method}")

    return source


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch):
    """Lets a machine have these ways of naming by events, and no others; none of them is the kernel's."""

    def let(*methods: str) -> None:
        Quiet.closed = 0
        events = {name: (lambda name=name: Quiet(name)) if name in methods else refused(name) for name in METHODS[:-1]}
        monkeypatch.setattr(start_agent, "_EVENTS", events)

    return let


@pytest.mark.parametrize(
    ("lets", "asked", "method", "why_not"),
    [
        (("ebpf", "connector"), AUTO, "ebpf", ()),
        (("connector",), AUTO, "connector", ("ebpf",)),
        ((), AUTO, "poll", ("ebpf", "connector")),
        (("ebpf", "connector"), "connector", "connector", ()),
        (("ebpf", "connector"), "poll", "poll", ()),
    ],
)
def test_the_best_way_of_naming_that_a_machine_lets(machines, lets, asked: str, method: str, why_not) -> None:
    """Or the one asked for; with why each better one is not to be had."""
    machines(*lets)
    watcher, refusals = choose_watcher(asked, clock=FixedClock(0))
    assert isinstance(watcher, PollWatcher if method == "poll" else EventWatcher)
    assert watcher.method == method
    assert refusals == tuple(
        Refusal(method=name, message=f"{name} takes root", hint=f"sudo for {name}") for name in why_not
    )
    assert [str(refusal) for refusal in refusals] == [f"{name}: {name} takes root" for name in why_not]
    watcher.close()
    assert Quiet.closed == (method != "poll")


def test_a_way_that_was_asked_for_is_not_replaced(machines) -> None:
    """Whoever asks for it wants it, or to know why not."""
    machines("connector")
    with pytest.raises(Unavailable) as told:
        choose_watcher("ebpf", clock=FixedClock(0))
    assert (told.value.code, told.value.hint) == ("ebpf-forbidden", "sudo for ebpf")
    with pytest.raises(Misconfigured) as wrong:
        choose_watcher("guess", clock=FixedClock(0))
    assert (wrong.value.code, wrong.value.hint) == ("unknown-watch", "--watch auto|ebpf|connector|poll")


@pytest.mark.parametrize(("lets", "method"), [(("ebpf",), "ebpf"), (("connector",), "connector"), ((), "poll")])
def test_the_best_way_is_tried_and_let_go(machines, lets, method: str) -> None:
    """Doctor asks, and leaves nothing in the kernel."""
    machines(*lets)
    assert best_method()[0] == method
    assert Quiet.closed == len(lets)


def test_the_library_comes_first(machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML gives start times; nothing is said, because nothing is lost."""
    monkeypatch.setattr(start_agent, "load_binding", lambda: machine.driver)
    assert choose_source(machine.said.append).method == "nvml"
    assert machine.said == []


def test_nvidia_smi_is_the_fallback_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name that answers; what it cannot give is told at once."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{XML}END\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(start_agent, "load_binding", absent)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    said: list[str] = []
    assert choose_source(said.append).method == "nvidia-smi"
    assert "gives no start times" in said[0]


def test_a_machine_without_a_driver_says_what_the_library_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that nvidia-smi is missing: that is the consequence."""
    monkeypatch.setattr(start_agent, "load_binding", absent)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unavailable) as refused:
        choose_source(lambda sentence: None)
    assert refused.value.code == "driver-unreachable"


def test_only_root_is_asked_to_enable_accounting(machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before the loop begins, with the command that helps."""
    monkeypatch.setattr(start_agent, "load_binding", lambda: machine.driver)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Unavailable) as refused:
        ready_source(enable_accounting=True, talk=machine.said.append)
    assert refused.value.code == "needs-root"
    assert "sudo" in refused.value.hint


def test_an_agent_says_what_it_does_and_what_it_can_miss(machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval, the ledger, and where to read about the shorter ones."""
    monkeypatch.setattr(start_agent, "load_binding", lambda: machine.driver)
    agent, watcher = begin(machine, interval_us=500_000)
    told = describe(agent, machine.ledger, watcher)
    assert "every 0.5 s" in told
    assert str(machine.ledger.place) in told
    assert "gpuledger blind" in told
    agent, watcher = begin(machine, once=True)
    assert describe(agent, machine.ledger, watcher).startswith("one look at box")


@pytest.mark.parametrize(("method", "says"), [("ebpf", "however short"), ("connector", "opens a device is not seen")])
def test_an_agent_says_how_it_names(machine, machines, monkeypatch: pytest.MonkeyPatch, method: str, says: str) -> None:
    """What each way sees, and what it does not."""
    machines(method)
    monkeypatch.setattr(start_agent, "load_binding", lambda: machine.driver)
    watcher, _ = choose_watcher(method, clock=FixedClock(0))
    assert says in describe(begin(machine)[0], machine.ledger, watcher)
    watcher.close()
