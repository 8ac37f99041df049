"""Looks at who holds what: named with and without a ledger, and nothing that is not known becomes a figure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pynvml
import pytest

from gpuledger.errors import Unavailable
from gpuledger.ledger.store import Ledger
from gpuledger.model.holders import Arrangement, Holding, Unnamed
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.readings import NamesLook
from gpuledger.operations.agent import OneAgent
from gpuledger.operations.apply import apply
from gpuledger.operations.pulse import Pulse
from gpuledger.operations.top import ASK_AGAIN_US, Looker, report
from gpuledger.sources.nvml import NvmlSource

SECOND_US = 1_000_000
OTHER = "GPU-66666666-7777-8888-9999-aaaaaaaaaaaa"


def no_ledger() -> Ledger:
    raise Unavailable("no-ledger", "there is no ledger at /nowhere", hint="gpuledger agent")


class Closed:
    """A watcher whose ``/proc`` is closed to this user, for the pids it is told."""

    method = "poll"
    urgent = None

    def __init__(self, names: Any, unreadable: Collection[int]) -> None:
        self._names = names
        self._unreadable = frozenset(unreadable)

    def look(self, pids: Collection[int], now_us: int, *, restarted: Collection[int] = ()) -> NamesLook:
        found = self._names.look(set(pids) - self._unreadable, now_us)
        return replace(found, unreadable=self._unreadable & frozenset(pids))

    def close(self) -> None:
        self._names.close()


def looking(machine: Any, open_ledger: Callable[[], Ledger] = no_ledger, *, closed: Collection[int] = ()) -> Looker:
    """A second pair of eyes on the same machine as its agent."""
    return Looker(
        source=NvmlSource(machine.driver, method="simulated"), watcher=Closed(machine.names, closed),
        clock=machine.clock, host=machine.host, boot_id="boot", open_ledger=open_ledger,
    )  # fmt: skip


def reading(machine: Any) -> Callable[[], Ledger]:
    """Opens the machine's ledger for reading."""
    return lambda: Ledger.open(machine.ledger.place, mode="read")


def by_pid(looker: Looker) -> dict[int, Holding]:
    return {one.pid: one for one in looker.look().holdings}


def unaccounted(machine: Any, pid: int, program: str) -> None:
    """A process opens the GPU while accounting is off: the driver gives no start."""
    handle = machine.driver.nvmlDeviceGetHandleByIndex(0)
    machine.driver.nvmlDeviceSetAccountingMode(handle, 0)
    machine.start(pid, program)
    machine.driver.nvmlDeviceSetAccountingMode(handle, 1)


def watch(machine: Any, looks: int) -> None:
    """An agent watches, and tells its pulse."""
    with OneAgent(machine.ledger.place) as place:
        agent = machine.agent(flush_us=SECOND_US)
        machine.watch(agent, looks)
        place.tell(Pulse(host=machine.host, looked_us=machine.clock.now_us(), interval_us=SECOND_US))


def test_without_a_ledger_it_is_named_and_held_since_the_drivers_start(machine: Any) -> None:
    """The driver and /proc are enough; the look says that no ledger helped, and why."""
    machine.start(7, "ollama", 14_300)
    machine.driver.work(7, machine.gpu, 45)
    machine.clock.advance(90 * SECOND_US)
    look = looking(machine).look()
    assert look.holdings == (
        Holding(
            device=machine.gpu, pid=7, service="ollama", user="al", team="-", program="ollama", held_us=90 * SECOND_US,
            memory_mib=14_300, busy_percent=45,
        ),
    )  # fmt: skip
    assert (look.host, look.method, look.answered) == ("box", "simulated", True)
    assert look.ledger == Missing("there is no ledger at /nowhere")
    assert [(device.uuid, device.class_name, device.memory_mib) for device in look.devices] == [
        (machine.gpu, "L4", 23034)
    ]
    assert [row.label for row in report(look, Arrangement()).rows] == ["ollama"]


def test_without_a_start_it_is_held_for_at_least_as_long_as_it_is_seen(machine: Any) -> None:
    """Seen once says that it lives, not for how long; a look that misses it begins anew."""
    unaccounted(machine, 7, "notebook")
    looker = looking(machine)
    assert isinstance(by_pid(looker)[7].held_us, Missing)
    machine.clock.advance(5 * SECOND_US)
    seen = by_pid(looker)[7]
    assert (seen.held_us, seen.is_at_least) == (5 * SECOND_US, True)
    machine.clock.step(3600 * SECOND_US)  # somebody sets the clock
    assert by_pid(looker)[7].held_us == 5 * SECOND_US
    machine.driver.finish(7, machine.gpu)
    looker.look()
    machine.driver.start(7, machine.gpu, 100)
    machine.driver.reload()
    assert isinstance(by_pid(looker)[7].held_us, Missing)


def test_another_process_under_the_same_pid_begins_anew(machine: Any) -> None:
    """The pid was used again between two looks."""
    unaccounted(machine, 7, "notebook")
    looker = looking(machine)
    looker.look()
    machine.clock.advance(5 * SECOND_US)
    machine.names.alive[7] = replace(machine.names.alive[7], start_ticks=8)
    assert isinstance(by_pid(looker)[7].held_us, Missing)


def test_a_start_in_the_future_is_no_start(machine: Any) -> None:
    """The clock was set back after the driver stamped it."""
    machine.start(7, "ollama")
    machine.clock.step(-60 * SECOND_US)
    assert isinstance(by_pid(looking(machine))[7].held_us, Missing)


def test_a_running_agents_first_sight_reaches_further_back(machine: Any) -> None:
    """Since the ledger saw it, without a break up to now; marked as at least."""
    unaccounted(machine, 7, "notebook")
    watch(machine, 30)
    seen = by_pid(looking(machine, reading(machine)))[7]
    assert (seen.held_us, seen.is_at_least) == (29 * SECOND_US, True)


def test_the_unnamed_keep_their_reason(machine: Any) -> None:
    """Alive and closed to us, or not in /proc at all."""
    machine.start(7, "ollama")
    machine.start(8, "secret")
    machine.driver.start(9, machine.gpu, 900)
    found = by_pid(looking(machine, closed={8}))
    assert (found[7].cause, found[7].service) == ("", "ollama")
    assert (found[8].cause, found[8].service, found[8].user) == (
        Unnamed.UNREADABLE, "unattributed:identity-unreadable", "-",
    )  # fmt: skip
    assert (found[9].cause, found[9].memory_mib) == (Unnamed.NOT_IN_PROC, 900)


def test_the_ledger_names_whom_this_user_cannot_read(machine: Any) -> None:
    """root's agent could; nobody is named so who is not in it."""
    machine.start(8, "secret")
    watch(machine, 3)
    machine.start(9, "later")
    found = by_pid(looking(machine, reading(machine), closed={8, 9}))
    assert (found[8].service, found[8].program, found[8].cause) == (
        "script:/usr/bin/secret by al", "secret", "",
    )  # fmt: skip
    assert found[9].cause == Unnamed.UNREADABLE


def test_the_ledger_completes_what_could_be_read_only_in_part(machine: Any) -> None:
    """A foreign process shows its command line but neither its executable nor its folder."""
    machine.start(7, "train")
    own = machine.names.alive[7]
    machine.names.alive[7] = replace(
        own, text=IdentityText(exe="/usr/bin/python3", command="python3 train.py", cwd="/home/al/p1", user="al")
    )  # fmt: skip
    watch(machine, 2)
    machine.names.alive[7] = replace(own, text=IdentityText(command="python3 train.py", user="al"))
    assert by_pid(looking(machine))[7].service == "script:train.py by al"
    looker = looking(machine, reading(machine))
    assert by_pid(looker)[7].service == "script:/home/al/p1/train.py by al"
    machine.names.alive[7] = replace(own, text=IdentityText(command="python3 other.py", user="al"))
    assert by_pid(looker)[7].service == "script:other.py by al"


def test_the_policys_rules_and_teams_hold(machine: Any, tmp_path: Any) -> None:
    """As in usage."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("services:\n  - {service: thumbs, team: photos, match: {exe: thumb}}\n")
    apply(
        lambda: Ledger.open(machine.ledger.place, mode="append"), policy, now_us=machine.clock.now_us(),
        writer="box.policy",
    )  # fmt: skip
    machine.start(7, "thumb")
    look = looking(machine, reading(machine)).look()
    assert [(one.service, one.team) for one in look.holdings] == [("thumbs", "photos")]
    assert look.ledger == str(machine.ledger.place)


def test_the_ledger_is_asked_for_newcomers_and_now_and_then(machine: Any) -> None:
    """Not at every look: nothing changes in between."""
    asked: list[int] = []

    def counting() -> Ledger:
        asked.append(machine.clock.now_us())
        return Ledger.open(machine.ledger.place, mode="read")

    machine.start(7, "ollama")
    looker = looking(machine, counting)
    for _ in range(3):
        looker.look()
        machine.clock.advance(SECOND_US)
    assert len(asked) == 1
    machine.start(8, "whisper")
    looker.look()
    assert len(asked) == 2
    machine.clock.advance(ASK_AGAIN_US)
    looker.look()
    assert len(asked) == 3


def test_what_the_ledger_told_stands_while_it_cannot_be_read(machine: Any) -> None:
    """It is only busy; the look says so."""
    machine.start(8, "secret")
    watch(machine, 3)
    places = [reading(machine), no_ledger]

    def one_after_the_other() -> Ledger:
        return places.pop(0)()

    looker = looking(machine, one_after_the_other, closed={8})
    assert by_pid(looker)[8].program == "secret"
    machine.clock.advance(ASK_AGAIN_US)
    look = looker.look()
    assert [one.program for one in look.holdings] == ["secret"]
    assert isinstance(look.ledger, Missing)


def test_a_device_that_does_not_answer_is_listed_with_its_reason(machine: Any) -> None:
    """And never read as one that nobody holds; one that nobody holds is listed too."""
    machine.driver.add_gpu(OTHER, product="NVIDIA L4", memory_mib=23034)
    machine.driver.fail("nvmlDeviceGetAccountingMode", pynvml.NVML_ERROR_GPU_IS_LOST, device=machine.gpu)
    look = looking(machine).look()
    assert [(device.uuid, bool(device.silence)) for device in look.devices] == [(OTHER, False), (machine.gpu, True)]
    assert [problem.code for problem in look.problems] == ["device-lost"]
    machine.driver.remove_gpu(OTHER)
    assert not looking(machine).look().answered


def test_a_device_without_a_list_of_processes_does_not_read_as_idle(machine: Any) -> None:
    """Only its accounting list shows who is alive, without memory."""
    calls = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2")
    for call in calls:
        machine.driver.fail(call, pynvml.NVML_ERROR_NOT_SUPPORTED)
    look = looking(machine).look()
    assert look.devices[0].silence
    assert not look.answered
    machine.start(7, "ollama")
    (seen,) = looking(machine).look().holdings
    assert (seen.service, isinstance(seen.memory_mib, Missing)) == ("ollama", True)


def test_under_mig_each_instance_is_a_device_and_busy_is_not_known(machine: Any) -> None:
    """The driver samples no process there; the whole GPU is no row beside its parts."""
    machine.driver.add_instance(machine.gpu, "MIG-1", profile="1g.6gb", memory_mib=5888, gpu_instance=1)
    machine.driver.add_instance(machine.gpu, "MIG-2", profile="2g.12gb", memory_mib=11776, gpu_instance=2)
    machine.names.alive = {}
    machine.driver.start(7, "MIG-1", 1000)
    look = looking(machine).look()
    assert [(device.uuid, device.class_name) for device in look.devices] == [
        ("MIG-1", "L4/1g.6gb"), ("MIG-2", "L4/2g.12gb"),
    ]  # fmt: skip
    (seen,) = look.holdings
    assert (seen.device, seen.memory_mib, isinstance(seen.busy_percent, Missing)) == ("MIG-1", 1000, True)


def test_a_driver_that_is_gone_is_an_error_and_the_next_look_may_find_it_again(machine: Any) -> None:
    """The view goes on; a look does not invent."""
    looker = looking(machine)
    machine.driver.fail("nvmlDeviceGetCount", pynvml.NVML_ERROR_UNINITIALIZED, times=1)
    with pytest.raises(Unavailable):
        looker.look()
    assert looker.look().answered
    looker.close()
