"""Which driver source an agent gets on this machine, and what it says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuledger.clock import FixedClock
from gpuledger.errors import Unavailable
from gpuledger.operations import start_agent
from gpuledger.operations.start_agent import choose_source, describe, ready_source, start

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
        "enable_accounting": False, "talk": machine.said.append, "stopping": lambda: True,
        "looked": lambda at_us: None,
    }  # fmt: skip
    return start(machine.ledger, choose_source(machine.said.append), **base | words)


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
    told = describe(begin(machine, interval_us=500_000), machine.ledger)
    assert "every 0.5 s" in told
    assert str(machine.ledger.path) in told
    assert "gpuledger blind" in told
    assert describe(begin(machine, once=True), machine.ledger).startswith("one look at box")
