"""Naming by events: who is told when, what a look costs, and what is said when the kernel was not heard."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gpuledger.clock import FixedClock
from gpuledger.errors import Unavailable
from gpuledger.model.missing import Missing
from gpuledger.model.readings import Named, NamesLook
from gpuledger.sources import event_watcher, procfs
from gpuledger.sources.event_watcher import EXIT_WITHIN_US, SNAPSHOT_US, TITLE_US, EventWatcher
from gpuledger.sources.process_events import Happened, ProcessEvent, Program
from gpuledger.sources.watchers import Watcher

NOW_US = 1_790_000_000_000_000
BOOT_US = 1_000_000_000
SECOND = 1_000_000
OWN_PID = 999
EXEC, FORK, EXIT, OPEN, HOLD = Happened


class FakeSource:
    """Events that a test puts there."""

    method = "ebpf"
    sees_opens = True
    counts_losses = True
    pause_s = 0.0

    def __init__(self) -> None:
        self.waiting: list[ProcessEvent] = []
        self.holders: list[ProcessEvent] = []
        self.losses = 0
        self.closed = 0
        self.snapshots = 0
        self.failure: Exception | None = None
        self.there = threading.Event()
        self.begun = threading.Event()

    def begin(self) -> None:
        self.begun.set()

    def wait(self, timeout_s: float) -> bool:
        return self.there.wait(timeout_s)

    def read(self) -> Sequence[ProcessEvent]:
        if self.failure is not None:
            raise self.failure
        self.there.clear()
        events, self.waiting = self.waiting, []
        return events

    def lost(self) -> int:
        return self.losses

    def catch_up(self) -> None: ...

    def snapshot(self) -> Sequence[ProcessEvent]:
        self.snapshots += 1
        return self.holders

    def close(self) -> None:
        self.closed += 1


class Spells(FakeSource):
    """A source like the connector: no opens, and losses counted by spells."""

    method = "connector"
    sees_opens = False
    counts_losses = False


class Machine:
    """A made-up ``/proc`` and its clock, and the events of it. A process is born a second before its first event."""

    def __init__(self, proc: Path, source: FakeSource, *, in_background: bool = False) -> None:
        self.proc = proc
        self.clock = FixedClock(NOW_US, BOOT_US)
        self.source = source
        self.in_background = in_background
        self._watcher: EventWatcher | None = None

    @property
    def watcher(self) -> EventWatcher:
        """Made when it is first needed: what is in ``/proc`` by then was there before."""
        if self._watcher is None:
            self._watcher = EventWatcher(
                self.source, clock=self.clock, proc=self.proc, own_pid=OWN_PID, in_background=self.in_background
            )
        return self._watcher

    def start(self, pid: int, *, ticks: int = 500, command: str = "python t.py", state: str = "S") -> None:
        """A process that /proc shows."""
        self.end(pid)
        folder = self.proc / str(pid)
        folder.mkdir()
        (folder / "status").write_text("Uid:\t0\t0\t0\t0\n", encoding="utf-8")
        (folder / "cgroup").write_text("0::/system.slice/x.service\n", encoding="utf-8")
        zeros = " ".join(["0"] * 18)
        (folder / "stat").write_text(f"{pid} (x) {state} {zeros} {ticks} 0\n", encoding="utf-8")
        self.become(pid, command)

    def become(self, pid: int, command: str) -> None:
        """Another program or title in the same process."""
        folder = self.proc / str(pid)
        (folder / "cmdline").write_bytes(command.replace(" ", "\0").encode() + b"\0")
        (folder / "exe").unlink(missing_ok=True)
        (folder / "exe").symlink_to("/usr/bin/" + command.split(maxsplit=1)[0])

    def end(self, pid: int) -> None:
        """The process is gone."""
        shutil.rmtree(self.proc / str(pid), ignore_errors=True)

    def event(
        self,
        what: Happened,
        pid: int = 7,
        ticks: int = 500,
        *,
        ago_us: int = 0,
        runs: str = "",
        parent: int = 0,
        minor: int = 0,
        major: int = 195,
    ) -> ProcessEvent:
        """What happens now, or so long ago."""
        return ProcessEvent(what, self.clock.boot_us() - ago_us, pid, ticks, parent, major, minor, program(runs))

    def tell(self, *events: ProcessEvent) -> None:
        """The kernel has these to tell."""
        self.source.waiting += events

    def look(self, *pids: int, after_us: int = SECOND, restarted: tuple[int, ...] = ()) -> NamesLook:
        """One look, a second after the last."""
        watcher = self.watcher
        self.clock.advance(after_us)
        return watcher.look(pids, self.clock.now_us(), restarted=restarted)


def program(command: str) -> Program | None:
    if not command:
        return None
    exe = "/usr/bin/" + command.split(maxsplit=1)[0]
    return Program(exe.encode(), command.replace(" ", "\0").encode() + b"\0", b"/", 0, b"0::/system.slice/x.service\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without processes, and a source that sees opens."""
    return Machine(tmp_path, FakeSource())


@pytest.fixture
def deafer(tmp_path: Path) -> Machine:
    """The same with a source that does not."""
    return Machine(tmp_path, Spells())


def told(look: NamesLook) -> list[tuple[int, int, int, str]]:
    """(pid, ticks, exec number, command) of everything told, the unread with an empty one."""
    rows = [(one.pid, one.start_ticks, one.exec_number, one.text.command) for one in look.fresh]
    return sorted(rows + [(one.pid, one.start_ticks, one.exec_number, "") for one in look.unread])


def test_the_seam_fits(machine: Machine) -> None:
    """An event watcher is what the agent asks for."""
    watcher: Watcher = machine.watcher
    assert watcher.method == "ebpf"


def test_a_process_that_lived_and_died_between_two_looks_is_named(machine: Machine) -> None:
    """By its open alone, whether the driver lists it or not; with its birth, its end and its unit."""
    machine.look()
    machine.clock.advance(SECOND)
    machine.tell(
        machine.event(EXEC, ago_us=500_000, runs="python t.py"),
        machine.event(OPEN, ago_us=400_000),
        machine.event(EXIT, ago_us=300_000),
    )
    at_us = machine.clock.now_us()
    look = machine.look()
    [named] = look.fresh
    assert (named.pid, named.start_ticks, named.exec_number) == (7, 500, 0)
    assert (named.text.command, named.text.unit) == ("python t.py", "x.service")
    assert (named.started_at_us, named.seen_at_us) == (NOW_US - BOOT_US + 5 * SECOND, at_us - 300_000)
    [opened] = look.opened
    assert (opened.pid, opened.minor, opened.opened_at_us, opened.exited_at_us, opened.is_found) == (
        7, 0, at_us - 400_000, at_us - 300_000, False,
    )  # fmt: skip
    assert (look.exits, look.current, look.sees_opens, look.lost) == ({(7, 500): at_us - 300_000}, {}, True, "")
    again = machine.look()
    assert (again.fresh, again.opened, again.exits) == ((), (), {})


def test_only_what_is_asked_for_or_opened_a_device_is_told(deafer: Machine) -> None:
    """Most processes of a machine are nobody's business; the row of one may come three looks later."""
    deafer.look()
    for pid in (7, 8):
        deafer.tell(deafer.event(EXEC, pid, runs=f"job {pid}"), deafer.event(EXIT, pid))
    assert told(deafer.look()) == []
    assert told(deafer.look(7)) == [(7, 500, 0, "job 7")]
    assert told(deafer.look(7)) == []


def test_who_lives_already_is_read_once_and_told_when_asked_for(machine: Machine, monkeypatch) -> None:
    """An event never tells of them; a look reads no file of a process that it knows."""
    for pid in range(7, 27):
        machine.start(pid, ticks=500 + pid)
    assert machine.watcher.method == "ebpf"
    machine.clock.advance(SECOND)
    first = machine.watcher.look(range(7, 27), machine.clock.now_us())
    assert (len(first.fresh), len(first.current)) == (20, 20)
    machine.tell(machine.event(EXEC, 30, runs="x"), machine.event(OPEN, 30))
    read: list[int] = []
    monkeypatch.setattr(procfs, "read_stat", lambda pid, proc: read.append(pid))
    monkeypatch.setattr(procfs, "program_mark", lambda pid, proc: read.append(pid))
    second = machine.watcher.look(range(7, 27), machine.clock.now_us() + TITLE_US - 2 * SECOND)
    assert (told(second), len(second.current), read) == ([(30, 500, 0, "x")], 20, [])


def test_a_program_that_waited_to_be_read_is_told_with_its_own_time(machine: Machine) -> None:
    """An exec chain: each program from when it ran, so that a context's start finds the right one."""
    machine.look()
    machine.tell(
        machine.event(EXEC, ago_us=300_000, runs="env python t.py"),
        machine.event(EXEC, ago_us=200_000, runs="python t.py"),
        machine.event(OPEN, ago_us=100_000),
    )
    at_us = machine.clock.now_us()
    machine.start(7)
    look = machine.look(7)
    assert [(one.exec_number, one.text.command, one.seen_at_us) for one in look.fresh] == [
        (0, "env python t.py", at_us - 300_000),
        (1, "python t.py", at_us - 200_000),
        (1, "python t.py", at_us + SECOND),
    ]
    assert look.current[7].exec_number == 1
    machine.tell(machine.event(EXIT))
    assert [(one.exec_number, one.seen_at_us) for one in machine.look().fresh] == [(1, at_us + SECOND)]


def test_a_title_of_its_own_is_seen_at_the_next_check(machine: Machine) -> None:
    """No event tells it; at once where the context on the device is new."""
    machine.start(7)
    machine.look(7)
    machine.become(7, "python title")
    assert told(machine.look(7)) == []
    assert told(machine.look(7, restarted=(7,))) == [(7, 500, 1, "python title")] * 2
    machine.become(7, "python other")
    assert machine.look(7, after_us=TITLE_US).current[7].text.command == "python other"


def test_a_process_told_alive_is_told_again_when_it_ends_and_its_open_too(machine: Machine) -> None:
    """Until when it lived belongs to its name; the open says the exit."""
    machine.look()
    machine.start(7)
    machine.tell(machine.event(EXEC, runs="python t.py"), machine.event(OPEN, minor=1))
    first = machine.look(7)
    assert [isinstance(one.exited_at_us, Missing) for one in first.opened] == [True]
    assert machine.look(7).opened == ()
    machine.end(7)
    machine.tell(machine.event(EXIT))
    died_us = machine.clock.now_us()
    last = machine.look()
    assert [(one.minor, one.exited_at_us) for one in last.opened] == [(1, died_us)]
    assert [(one.exec_number, one.seen_at_us) for one in last.fresh] == [(0, died_us)]
    assert last.exits == {(7, 500): died_us}


def test_each_program_of_a_process_is_told_with_its_own_open(machine: Machine) -> None:
    """An exec ends a holding, and what it became can hold the device anew; each is told to its end, once."""
    machine.look()
    machine.start(7)
    machine.tell(
        machine.event(EXEC, runs="one", ago_us=900), machine.event(OPEN, ago_us=800),
        machine.event(EXEC, runs="two", ago_us=600), machine.event(OPEN, ago_us=500),
    )  # fmt: skip
    now_us = machine.clock.now_us()
    look = machine.look(7)
    assert [(one.number, one.opened_at_us - now_us, one.became) for one in look.opened] == [
        (0, -800, True),
        (1, -500, False),
    ]
    assert look.opened[0].exited_at_us == now_us - 600
    assert isinstance(look.opened[1].exited_at_us, Missing)
    machine.tell(machine.event(EXEC, runs="three"))
    execed_us = machine.clock.now_us()
    look = machine.look(7)
    assert [(one.number, one.exited_at_us, one.became) for one in look.opened] == [(1, execed_us, True)]
    machine.end(7)
    machine.tell(machine.event(EXIT))
    assert machine.look().opened == ()


def test_a_holder_is_found_by_snapshot_and_told_as_found(machine: Machine) -> None:
    """Whoever opened the device before we listened; asked every minute, not at every look."""
    machine.start(7)
    machine.source.holders = [machine.event(HOLD, runs="python t.py")]
    look = machine.look()
    assert [(one.pid, one.is_found) for one in look.opened] == [(7, True)]
    assert machine.look().opened == ()
    assert machine.source.snapshots == 1
    machine.look(after_us=SNAPSHOT_US)
    assert machine.source.snapshots == 2


def test_a_snapshot_has_the_time_of_the_snapshot_and_not_of_the_look(machine: Machine) -> None:
    """The driver was read in between, which can take a while."""
    look_us = machine.clock.now_us()
    watcher = machine.watcher
    machine.clock.advance(3 * SECOND)
    machine.source.holders = [machine.event(HOLD, runs="python t.py")]
    [opened] = watcher.look((), look_us).opened
    assert opened.opened_at_us == look_us + 3 * SECOND


def test_what_proc_hides_is_not_taken_from_a_program_that_is_over(machine: Machine) -> None:
    """An exec a moment ago, whose event is read only now: its command line does not go with the old executable."""
    machine.start(7, command="old job.py")
    machine.tell(machine.event(EXEC, runs="old job.py"), machine.event(OPEN))
    machine.look(7)
    machine.become(7, "new job.py")
    (machine.proc / "7" / "exe").unlink()  # a foreign process: not shown without CAP_SYS_PTRACE
    late = [[], [machine.event(EXEC, runs="new job.py")]]  # told between the look's begin and the reading of /proc
    machine.source.catch_up = lambda: machine.tell(*late.pop(0)) if late else None  # type: ignore[method-assign]
    found = machine.look(7, restarted=(7,))
    assert late == []
    assert [(one.text.exe, one.text.command) for one in found.fresh] == [("/usr/bin/new", "new job.py")] * 2


def test_a_fork_that_opens_without_exec_is_named_by_its_open(machine: Machine) -> None:
    """The event carries the program, since none was told."""
    machine.look()
    machine.tell(machine.event(OPEN, 8, 600, runs="python pool.py"), machine.event(EXIT, 8, 600))
    assert told(machine.look()) == [(8, 600, 0, "python pool.py")]


def test_a_reused_pid_is_told_for_each_of_its_processes(machine: Machine) -> None:
    """Three in one second: each with its own ticks, and nobody's name twice."""
    machine.look()
    for ticks in (500, 501, 502):
        machine.tell(
            machine.event(EXEC, ticks=ticks, runs=f"job {ticks}"),
            machine.event(OPEN, ticks=ticks),
            machine.event(EXIT, ticks=ticks),
        )
    look = machine.look(7)
    assert told(look) == [(7, ticks, 0, f"job {ticks}") for ticks in (500, 501, 502)]
    assert {key[1] for key in look.exits} == {500, 501, 502}
    assert look.current == {}


def test_a_process_that_died_unread_is_told_as_such(deafer: Machine) -> None:
    """That it was there is known, and what it was before its exec: not what it was after."""
    deafer.look()
    deafer.tell(
        deafer.event(EXEC, 6, 400, ago_us=900_000, runs="bash"),
        deafer.event(FORK, 7, 0, ago_us=800_000, parent=6),
        deafer.event(EXEC, 7, 0, ago_us=700_000),
        deafer.event(EXIT, 7, 0, ago_us=600_000),
        deafer.event(EXEC, 8, 0, ago_us=500_000),
        deafer.event(EXIT, 8, 0, ago_us=400_000),
    )
    look = deafer.look(7, 8)
    assert told(look) == [(7, 0, 0, "bash"), (7, 0, 1, ""), (7, 0, 1, ""), (8, 0, 0, "")]
    at_us = deafer.clock.now_us() - SECOND
    assert [(one.pid, one.started_at_us, one.seen_at_us) for one in look.unread if one.pid == 8] == [
        (8, at_us - 500_000, at_us - 400_000)
    ]


def test_a_zombie_is_what_events_say(machine: Machine) -> None:
    """Its first thread can have ended while others go on; one that events know nothing of is dead."""
    machine.start(7)
    machine.start(8, state="Z")
    machine.look(7)
    machine.start(7, state="Z")
    look = machine.look(7, 8, restarted=(7,))
    assert list(look.current) == [7]
    machine.tell(machine.event(EXIT))
    look = machine.look(7, 8)
    assert (look.current, look.unreadable) == ({}, frozenset())


def test_a_process_that_cannot_be_read_is_alive(machine: Machine, monkeypatch) -> None:
    """Hidden from us: that is no death."""
    machine.start(7)
    machine.look(7)
    hidden = Missing("unreadable: permission denied")
    monkeypatch.setattr(procfs, "read_stat", lambda pid, proc: hidden)
    look = machine.look(7, 8, after_us=TITLE_US)
    assert (list(look.current), look.unreadable) == ([7], {8})


def test_an_alive_process_of_which_nothing_was_read_is_unreadable(deafer: Machine, monkeypatch) -> None:
    """So that nobody takes it for dead."""
    deafer.look()
    deafer.tell(deafer.event(EXEC))
    monkeypatch.setattr(procfs, "read_stat", lambda pid, proc: Missing("unreadable: permission denied"))
    look = deafer.look(7)
    assert (look.current, look.unreadable) == ({}, {7})


def test_an_exit_that_comes_late_is_no_loss(machine: Machine) -> None:
    """/proc forgets a process before its exit is read; meanwhile it is neither alive nor lost."""
    machine.start(7)
    machine.look(7)
    machine.end(7)
    look = machine.look(7, restarted=(7,))
    assert (look.current, look.unreadable, look.lost) == ({}, frozenset(), "")
    machine.tell(machine.event(EXIT, ago_us=SECOND))
    look = machine.look(7)
    assert (look.lost, list(look.exits.values())) == ("", [machine.clock.now_us() - 2 * SECOND])


def test_an_exit_that_never_comes_is_a_loss(machine: Machine) -> None:
    """Found where it is asked for, or by the round of every minute; it is alive until it was last seen, no longer."""
    machine.start(7)
    machine.start(8, ticks=600)
    machine.source.holders = [machine.event(HOLD, runs="python t.py"), machine.event(HOLD, 8, 600, runs="python t.py")]
    seen_us = machine.clock.now_us()
    machine.look(7)
    machine.source.holders = []
    machine.end(7)
    machine.end(8)
    assert machine.look(7, restarted=(7,)).lost == ""
    look = machine.look(after_us=EXIT_WITHIN_US)
    assert look.lost == "1 process ended without an event"
    assert [(one.pid, one.exited_at_us) for one in look.opened] == [(7, seen_us)]
    assert look.exits == {}
    assert machine.look(after_us=SNAPSHOT_US).lost == ""
    assert machine.look(after_us=EXIT_WITHIN_US).lost == "1 process ended without an event"
    assert machine.watcher._recent.all_living() == []


def test_a_pid_that_another_process_has_is_not_the_one_we_knew(machine: Machine) -> None:
    """Its events are on their way; if they never come, that was a loss, and the new one is met in /proc."""
    machine.start(7)
    machine.look(7)
    machine.start(7, ticks=900, command="bash")
    assert machine.look(7, restarted=(7,)).current == {}
    look = machine.look(7, after_us=EXIT_WITHIN_US)
    assert [(one.start_ticks, one.text.command) for one in look.current.values()] == [(900, "bash")]
    assert look.lost


def test_losses_are_told_with_their_size(machine: Machine) -> None:
    """Exact where the source counts events; the next look is without."""
    machine.look()
    machine.source.losses = 12
    assert machine.look().lost == "12 events lost"
    assert machine.look().lost == ""


def test_spells_are_told_as_what_they_are(deafer: Machine) -> None:
    """How many events went by in them nobody knows."""
    deafer.look()
    deafer.source.losses = 2
    assert deafer.look().lost == "the kernel's buffer ran over 2 times; how many events were lost is not known"


def test_after_a_loss_nobodys_program_is_sure_until_it_is_seen(deafer: Machine) -> None:
    """Two shells fork; one child's exec is lost and it dies: it is not called by the shell's name."""
    deafer.start(6, ticks=400, command="bash")
    deafer.look(6)
    deafer.tell(deafer.event(EXEC, 5, 300, runs="quiet"))
    deafer.look(6)
    deafer.tell(deafer.event(FORK, 7, 700, parent=6), deafer.event(EXIT, 7, 700))
    deafer.start(8, ticks=800, command="python t.py")
    deafer.tell(deafer.event(FORK, 8, 800, parent=6))
    deafer.source.losses = 1
    look = deafer.look(6, 7, 8)
    assert told(look) == [
        (7, 700, 0, "bash"), (7, 700, 1, ""), (7, 700, 1, ""),
        (8, 800, 0, "bash"), (8, 800, 1, ""), (8, 800, 2, "python t.py"), (8, 800, 2, "python t.py"),
    ]  # fmt: skip
    assert look.current[6].exec_number == 0
    assert look.current[8].text.command == "python t.py"


def test_after_a_loss_it_is_asked_at_once_who_holds_a_device(machine: Machine) -> None:
    """An open that was lost is found again, so that no device is called idle over it."""
    machine.look()
    machine.source.losses = 1
    machine.source.holders = [machine.event(HOLD, 8, 600, runs="python t.py")]
    look = machine.look()
    assert (look.lost, [one.pid for one in look.opened]) == ("1 event lost", [8])


def test_a_storm_that_is_too_large_is_told(deafer: Machine, monkeypatch) -> None:
    """Ended processes let go before their rows can come are a loss too."""
    monkeypatch.setattr("gpuledger.sources.recent_processes.MOST_DEAD", 3)
    deafer.look()
    for pid in range(100, 105):
        deafer.tell(deafer.event(EXEC, pid, runs="true"), deafer.event(EXIT, pid))
    assert deafer.look().lost == "2 processes forgotten early, there were too many"


def test_a_clock_that_is_set_does_not_mix_up_who_was_what(machine: Machine) -> None:
    """Events keep their order by the boot-time clock; what follows the step has the new time, by one offset."""
    machine.look()
    machine.tell(machine.event(EXEC, 6, 400, runs="bash"))
    machine.look()
    machine.clock.step(-3600 * SECOND)
    machine.tell(machine.event(FORK, 8, 800, parent=6), machine.event(OPEN, 8, 800), machine.event(EXIT, 8, 800))
    at_us = machine.clock.now_us()
    look = machine.look(6)
    assert told(look)[-1] == (8, 800, 0, "bash")
    assert [(one.opened_at_us, one.exited_at_us) for one in look.opened] == [(at_us, at_us)]
    for _ in range(20):
        machine.look()
    assert machine.watcher._recent.of(8) == []


def test_a_month_leaves_nothing_behind(machine: Machine) -> None:
    """Whoever ended and was told is forgotten, whoever opened a device too."""
    for number in range(200):
        machine.tell(
            machine.event(EXEC, 100 + number, runs="true"),
            machine.event(OPEN, 100 + number),
            machine.event(EXIT, 100 + number),
        )
        machine.look(100 + number)
    assert sum(len(machine.watcher._recent.of(pid)) for pid in range(400)) < 30
    assert not machine.watcher._recent.touched
    assert not machine.watcher._missed


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[Machine]:
    """A machine whose events are taken up by the thread."""
    machine = Machine(tmp_path, FakeSource(), in_background=True)
    yield machine
    machine.watcher.close()


def test_the_thread_reads_while_no_look_is_near(heard: Machine) -> None:
    """Events leave the kernel's buffer soon; a look finds them read."""
    watcher = heard.watcher
    assert heard.source.begun.wait(10)
    heard.tell(heard.event(EXEC, runs="x"), heard.event(OPEN))
    heard.source.there.set()
    for _ in range(1000):
        if watcher._events_waiting:
            break
        threading.Event().wait(0.01)
    assert heard.source.waiting == []
    assert told(heard.look()) == [(7, 500, 0, "x")]


def test_the_thread_remembers_where_too_much_waits(heard: Machine, monkeypatch) -> None:
    """An agent that looks once a minute does not keep a minute of raw events."""
    monkeypatch.setattr(event_watcher, "MOST_WAITING", 1)
    watcher = heard.watcher
    heard.tell(heard.event(EXEC, runs="x"), heard.event(OPEN))
    heard.source.there.set()
    for _ in range(1000):
        if watcher._recent.touched:
            break
        threading.Event().wait(0.01)
    assert (watcher._events_waiting, told(heard.look())) == (0, [(7, 500, 0, "x")])


@pytest.mark.parametrize("in_background", [True, False])
def test_a_watcher_that_went_deaf_ends_the_agent(tmp_path: Path, in_background: bool) -> None:
    """Said in a sentence, with what to type; never a silent agent that names nobody."""
    machine = Machine(tmp_path, FakeSource(), in_background=in_background)
    watcher = machine.watcher
    machine.source.failure = OSError(5, "Input/output error")
    machine.source.there.set()
    watcher._thread.join(10) if in_background else None
    with pytest.raises(Unavailable) as deaf:
        machine.look()
    assert deaf.value.code == "events-failed"
    assert "Input/output error" in deaf.value.message
    assert "gpuledger agent" in deaf.value.hint
    watcher.close()


@pytest.mark.parametrize("error", [Unavailable("connector-ended", "gone", hint="again"), ZeroDivisionError("a bug")])
def test_what_the_source_says_itself_is_passed_on(tmp_path: Path, error: Exception) -> None:
    """Its own refusal as it is, and a bug as a bug."""
    machine = Machine(tmp_path, FakeSource(), in_background=True)
    machine.watcher.method  # noqa: B018 - begins
    machine.source.failure = error
    machine.source.there.set()
    machine.watcher._thread.join(10)
    with pytest.raises(type(error)):
        machine.look()


def test_closing_twice_closes_once(machine: Machine) -> None:
    """Whoever is last to leave need not know who left before."""
    machine.watcher.close()
    machine.watcher.close()
    assert machine.source.closed == 1


def test_a_name_is_the_same_by_event_and_by_proc(machine: Machine) -> None:
    """So that a process seen both ways is one program."""
    machine.start(7)
    machine.look(7)
    machine.tell(machine.event(EXEC, 8, 600, runs="python t.py"), machine.event(OPEN, 8, 600))
    machine.start(8, ticks=600)
    by_event = machine.look(8, restarted=(8,)).current[8]
    by_proc: Named = machine.look(7).current[7]
    assert by_event.exec_number == by_proc.exec_number == 0
    assert (by_event.text.exe, by_event.text.command) == (by_proc.text.exe, by_proc.text.command)
