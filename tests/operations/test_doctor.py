"""``doctor``: what is missing on this machine and what mends it. It changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.errors import Unavailable
from gpuledger.model.checks import Check, Verdict
from gpuledger.model.moments import SECOND_US
from gpuledger.operations import start_agent
from gpuledger.operations.agent import OneAgent
from gpuledger.operations.doctor import doctor
from gpuledger.operations.pulse import PulseTeller


def asked(place: Path, now_us: int = 0, host: str = "box") -> dict[str, Check]:
    return {check.name: check for check in doctor(host=host, place=place, now_us=now_us).checks}


@pytest.fixture(autouse=True)
def no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that lets nobody hear kernel events, whoever runs the tests."""

    def refused(name: str):
        def source():
            raise Unavailable(f"{name}-forbidden", f"{name} takes root", hint=f"sudo for {name}")

        return source

    monkeypatch.setattr(start_agent, "_EVENTS", {name: refused(name) for name in ("ebpf", "connector")})


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without NVIDIA's library and without nvidia-smi."""

    def absent():
        raise Unavailable("driver-unreachable", "NVIDIA's library is not installed", hint="install it")

    monkeypatch.setattr(start_agent, "load_binding", absent)
    monkeypatch.setenv("PATH", "/nowhere")


def test_a_machine_without_a_driver_is_told_what_to_do(no_driver, tmp_path: Path) -> None:
    """Found, with a hint; the other checks go on."""
    checks = asked(tmp_path / "ledger.db")
    assert checks["driver"].verdict is Verdict.FOUND
    assert "gpuledger demo" in checks["driver"].hint
    assert {"naming", "ledger"} <= set(checks)


def test_a_ledger_that_is_not_there_yet_is_a_note_and_is_not_made(no_driver, tmp_path: Path) -> None:
    """The agent makes it; doctor only looks."""
    place = tmp_path / "deep" / "ledger.db"
    check = asked(place)["ledger"]
    assert (check.verdict, check.hint) == (Verdict.NOTE, "gpuledger agent")
    assert not place.parent.exists()


def test_a_file_that_is_no_ledger_is_found(no_driver, tmp_path: Path) -> None:
    """With the ledger's own sentence and hint."""
    place = tmp_path / "ledger.db"
    place.write_bytes(b"this is no database at all, and long enough to be read as one" * 30)
    check = asked(place)["ledger"]
    assert check.verdict is Verdict.FOUND
    assert check.sentence


@pytest.mark.parametrize(("minute", "verdict"), [(65, Verdict.OK), (75, Verdict.FOUND)])
def test_an_agent_that_went_quiet_is_found(no_driver, box, minute: float, verdict: Verdict) -> None:
    """It writes every five minutes at least; ten without a word is trouble."""
    box.append(box.device(0), box.looking(0, 60), box.naming(0, 60))
    box.ledger.close()
    assert asked(box.place, now_us=box.at(minute))["agent"].verdict is verdict


@pytest.mark.parametrize(
    ("seconds", "stuck", "answered", "verdict", "told"),
    [
        (1, (), True, Verdict.OK, "it looks every 1 s, last at 2026-07-27T01:05:00Z"),
        (12, (), True, Verdict.OK, "it looks every 1 s"),
        (14, (), True, Verdict.FOUND, "none looks now: the last look was at 2026-07-27T01:05:00Z, 14 s ago"),
        (1, (), False, Verdict.FOUND, "the driver does not answer it"),
        (60, (1, 59), True, Verdict.FOUND, "since 2026-07-27T01:05:01Z it cannot write"),
        (60, (1, 30), True, Verdict.FOUND, "none looks now"),
    ],
)
def test_an_agent_is_heard_by_its_pulse(
    no_driver, box, seconds: int, stuck: tuple[int, ...], answered: bool, verdict: Verdict, told: str
) -> None:
    """That it looks, that it has ended though it wrote a minute ago, and that it looks and cannot write."""
    box.append(box.device(0), box.looking(0, 64), box.naming(0, 64))
    box.ledger.close()
    with OneAgent(box.place) as place:
        teller = PulseTeller(host=box.host, interval_us=SECOND_US, say=place.tell)
        teller.looked(box.at(65), answered)
        for second in stuck:
            teller.stuck(box.at(65) + second * SECOND_US)
        check = asked(box.place, now_us=box.at(65) + seconds * SECOND_US)["agent"]
        assert (check.verdict, told in check.sentence) == (verdict, True), check
        assert check.hint.startswith("df -h ") is bool(stuck and "write" in told)
        assert asked(box.place, now_us=box.at(66), host="elsewhere")["agent"].sentence.startswith("no agent has")


def test_a_dump_is_no_look_of_an_agent(no_driver, box) -> None:
    """Its rows are in the ledger, and nobody watches on."""
    box.append(box.device(0, method="import"), box.looking(60, 60, every_ms=0), role="import")
    box.ledger.close()
    assert asked(box.place, now_us=box.at(61))["agent"].verdict is Verdict.FOUND


def test_another_machines_agent_is_not_ours(no_driver, box) -> None:
    """A ledger copied from elsewhere has no look at this host."""
    box.append(box.device(0), box.looking(0, 60), box.naming(0, 60))
    box.ledger.close()
    check = asked(box.place, now_us=box.at(61), host="mine")["agent"]
    assert (check.verdict, check.sentence) == (Verdict.FOUND, "no agent has looked at mine yet")


@pytest.mark.parametrize(
    ("is_on", "is_mig", "verdict"),
    [(True, False, Verdict.OK), (False, False, Verdict.FOUND), (False, True, Verdict.NOTE)],
)
def test_the_accounting_of_each_device_is_looked_at(
    machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_on: bool, is_mig: bool, verdict: Verdict
) -> None:
    """Off is found, with the command that enables it; under MIG nothing enables it, and that is a note."""
    if is_mig:
        machine.driver.add_instance(machine.gpu, "MIG-1", profile="1g.5gb", memory_mib=5, gpu_instance=7)
    elif not is_on:
        machine.driver.reload()
    monkeypatch.setattr(start_agent, "load_binding", lambda: machine.driver)
    checks = asked(tmp_path / "ledger.db", now_us=machine.clock.now_us())
    assert checks["driver"].verdict is Verdict.OK
    assert checks["driver"].sentence.startswith("1 device, ")
    check = checks["accounting"]
    assert check.verdict is verdict
    assert machine.gpu in check.sentence
    assert ("nvidia-smi -am 1" in check.hint) is (verdict is Verdict.FOUND)


class Open:
    """A source of events that is to be had."""

    def __init__(self, method: str) -> None:
        self.method = method

    def close(self) -> None: ...


def test_the_way_of_naming_is_told_with_what_grants_a_better_one(no_driver, tmp_path: Path) -> None:
    """Polling misses the short; why each better way is not to be had, and the command for the best."""
    check = asked(tmp_path / "ledger.db")["naming"]
    assert (check.verdict, check.hint) == (Verdict.NOTE, "sudo for ebpf")
    assert check.sentence.startswith("by polling")
    assert check.findings == ("not by ebpf: ebpf takes root", "not by connector: connector takes root")


@pytest.mark.parametrize(
    ("method", "verdict", "says"),
    [("ebpf", Verdict.OK, "however short it lives"), ("connector", Verdict.NOTE, "opens of a GPU are not seen")],
)
def test_naming_by_events_says_what_it_sees(
    no_driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, verdict: Verdict, says: str
) -> None:
    """The best way is fine; the second says what it lacks."""
    monkeypatch.setitem(start_agent._EVENTS, method, lambda: Open(method))
    check = asked(tmp_path / "ledger.db")["naming"]
    assert check.verdict is verdict
    assert says in check.sentence
