"""Naming by polling: who is told, who has died, who became another program."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuledger.clock import FixedClock, SystemClock
from gpuledger.model.readings import NamesLook
from gpuledger.sources import watchers
from gpuledger.sources.watchers import MOST_TITLES, RECHECK_US, PollWatcher, Watcher

NOW_US = 1_790_000_000_000_000


class Machine:
    """A made-up ``/proc`` and its clock."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.clock = FixedClock(NOW_US)
        self.watcher = PollWatcher(clock=self.clock, proc=proc)

    def start(
        self,
        pid: int,
        *,
        ticks: int = 500,
        command: str = "python t.py",
        exe: str = "/usr/bin/python3",
        state: str = "S",
    ) -> None:
        """Begin a process; the folder is made anew, as the kernel does."""
        self.end(pid)
        folder = self.proc / str(pid)
        folder.mkdir()
        (folder / "status").write_text("Uid:\t0\t0\t0\t0\n", encoding="utf-8")
        (folder / "cgroup").write_text("0::/system.slice/x.service\n", encoding="utf-8")
        zeros = " ".join(["0"] * 18)
        (folder / "stat").write_text(f"{pid} (x) {state} {zeros} {ticks} 0\n", encoding="utf-8")
        self.become(pid, command=command, exe=exe)

    def become(self, pid: int, *, command: str, exe: str = "/usr/bin/python3") -> None:
        """Another program or title in the same process."""
        folder = self.proc / str(pid)
        (folder / "cmdline").write_bytes(command.replace(" ", "\0").encode() + b"\0")
        (folder / "exe").unlink(missing_ok=True)
        (folder / "exe").symlink_to(exe)

    def end(self, pid: int) -> None:
        """The process is gone."""
        shutil.rmtree(self.proc / str(pid), ignore_errors=True)

    def look(self, *pids: int, after_us: int = 1_000_000, restarted: tuple[int, ...] = ()) -> NamesLook:
        """One look, a second after the last."""
        self.clock.advance(after_us)
        return self.watcher.look(pids, self.clock.now_us(), restarted=restarted)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without processes."""
    return Machine(tmp_path)


def test_the_seam_fits() -> None:
    """The poll watcher is what the agent asks for."""
    watcher: Watcher = PollWatcher(clock=SystemClock())
    assert watcher.method == "poll"


def test_a_process_is_told_once_and_stays_known(machine: Machine) -> None:
    """The second look reads nothing new of it, and its start does not move with the clock."""
    machine.start(7)
    first, second = machine.look(7), machine.look(7)
    [named] = first.fresh
    assert (named.pid, named.start_ticks, named.exec_number) == (7, 500, 0)
    assert named.text.unit == "x.service"
    assert named.started_at_us == machine.clock.now_us() - machine.clock.boot_us() + 5_000_000
    assert first.current == second.current == {7: named}
    assert second.fresh == ()


def test_a_process_that_dies_is_forgotten(machine: Machine) -> None:
    """While it is listed, and once it is listed no more."""
    machine.start(7)
    machine.start(8)
    machine.look(7, 8)
    machine.end(7)
    machine.end(8)
    look = machine.look(7)
    assert (look.current, look.unreadable) == ({}, frozenset())
    assert not machine.watcher._known


def test_a_zombie_is_dead_once_the_driver_has_let_go_of_it(machine: Machine) -> None:
    """It has exited, and waits for its parent only."""
    machine.start(7)
    machine.look(7)
    machine.start(7, state="Z")
    machine.look()
    assert not machine.watcher._known


def test_a_process_that_only_let_go_of_its_devices_is_not_dead(machine: Machine) -> None:
    """It comes back under the name it has."""
    machine.start(7)
    [named] = machine.look(7).fresh
    machine.look()
    again = machine.look(7)
    assert (again.current[7], again.fresh) == (named, ())


def test_a_reused_pid_is_another_process(machine: Machine) -> None:
    """The new one is told at the look that finds it."""
    machine.start(7)
    machine.look(7)
    machine.start(7, ticks=900, command="bash")
    look = machine.look(7)
    assert [(named.start_ticks, named.text.command, named.exec_number) for named in look.fresh] == [(900, "bash", 0)]


def test_a_folder_made_anew_is_not_another_process(machine: Machine) -> None:
    """The kernel forgets inodes when memory is short; the start time decides."""
    machine.start(7)
    machine.look(7)
    machine.start(7)
    look = machine.look(7)
    assert (look.fresh, list(look.current)) == ((), [7])


def test_another_program_in_the_same_process_counts_up(machine: Machine) -> None:
    """Seen at the next check, and at once when the driver's context is new; the start is told as before."""
    machine.start(7)
    [first] = machine.look(7).fresh
    machine.become(7, command="serve", exe="/opt/serve")
    assert machine.look(7).fresh == ()
    machine.clock.step(3_600_000_000)
    [second] = machine.look(7, restarted=(7,)).fresh
    assert (second.exec_number, second.text.exe, second.started_at_us) == (1, "/opt/serve", first.started_at_us)
    machine.become(7, command="serve --again", exe="/opt/serve")
    [third] = machine.look(7, after_us=RECHECK_US).fresh
    assert (third.exec_number, machine.look(7).current[7]) == (2, third)


def test_a_title_that_always_changes_is_not_a_new_program_for_ever(machine: Machine) -> None:
    """Ray writes each task into its title; the ledger must not grow by it."""
    machine.start(7)
    machine.look(7)
    fresh = 0
    for turn in range(3 * MOST_TITLES):
        machine.become(7, command=f"ray::task{turn}")
        fresh += len(machine.look(7, after_us=RECHECK_US).fresh)
    assert fresh == MOST_TITLES
    machine.become(7, command="bash", exe="/bin/bash")
    assert len(machine.look(7, after_us=RECHECK_US).fresh) == 1


def test_a_clock_set_back_does_not_stop_the_checks(machine: Machine) -> None:
    """A process read in what is now the future is checked."""
    machine.start(7)
    machine.look(7)
    machine.become(7, command="other")
    machine.clock.step(-3_600_000_000)
    assert len(machine.look(7).fresh) == 1


def test_what_cannot_be_read_is_unreadable_and_what_is_gone_is_not(machine: Machine) -> None:
    """A pid of another namespace is simply not there."""
    machine.start(7)
    (machine.proc / "7" / "stat").write_text("nonsense", encoding="utf-8")
    look = machine.look(7, 8)
    assert (look.unreadable, look.current) == ({7}, {})


def test_a_known_process_that_can_no_longer_be_read_keeps_its_name(machine: Machine) -> None:
    """It lives, and was read once."""
    machine.start(7)
    machine.look(7)
    machine.start(7)
    (machine.proc / "7" / "stat").write_text("nonsense", encoding="utf-8")
    look = machine.look(7, after_us=RECHECK_US)
    assert list(look.current) == [7]


def test_memory_is_bounded(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest unseen are forgotten, those asked for never."""
    monkeypatch.setattr(watchers, "MOST_REMEMBERED", 3)
    for pid in range(1, 9):
        machine.start(pid)
        machine.look(pid)
    assert sorted(machine.watcher._known) == [6, 7, 8]
    assert len(machine.look(*range(1, 9)).current) == 8
    machine.watcher.close()
    assert not machine.watcher._known


def test_real_processes_are_named_and_buried() -> None:
    """A child that lives, becomes another program, and dies."""
    code = "import os, sys; sys.stdin.readline(); os.execv('/bin/sleep', ['sleep', '60'])"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    clock = SystemClock()
    watcher = PollWatcher(clock=clock)
    try:
        deadline = time.monotonic() + 10
        while b"execv" not in Path(f"/proc/{child.pid}/cmdline").read_bytes() and time.monotonic() < deadline:
            time.sleep(0.01)
        [first] = watcher.look([child.pid], clock.now_us()).fresh
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.close()
        while b"execv" in Path(f"/proc/{child.pid}/cmdline").read_bytes() and time.monotonic() < deadline:
            time.sleep(0.01)
        [second] = watcher.look([child.pid], clock.now_us(), restarted=[child.pid]).fresh
    finally:
        child.kill()
        child.wait()
    assert (second.exec_number, second.text.command, second.start_ticks) == (1, "sleep 60", first.start_ticks)
    assert not watcher.look([child.pid], clock.now_us()).current
