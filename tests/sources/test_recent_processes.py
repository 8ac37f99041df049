"""The memory of processes: bounded, and never the life of one process given to another."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gpuledger.sources import recent_processes
from gpuledger.sources.process_events import NVIDIA_MAJOR, Happened, ProcessEvent, Program
from gpuledger.sources.process_lives import MOST_HOLDS, TICK_US, Life
from gpuledger.sources.recent_processes import KEPT_US, LOOKS_KEPT, RecentProcesses

OFFSET_US = 1_790_000_000_000_000
SECOND = 1_000_000
OWN_PID = 999


def program(command: str) -> Program:
    return Program(b"/usr/bin/" + command.encode(), command.encode() + b"\0", b"/", 0, b"0::/\n")


class Memory:
    """A memory, told one event after the other. Times are seconds since boot; a start in ticks is its second."""

    def __init__(self, *, sees_opens: bool = True) -> None:
        self.recent = RecentProcesses(own_pid=OWN_PID, sees_opens=sees_opens)
        self.number = 1

    def note(
        self,
        what: Happened,
        second: float,
        pid: int = 7,
        born: float = 1,
        *,
        runs: str = "",
        parent: int = 0,
        minor: int = 0,
        major: int = NVIDIA_MAJOR,
    ) -> None:
        ticks = int(born * SECOND) // TICK_US
        event = ProcessEvent(
            what, int(second * SECOND), pid, ticks, parent, major, minor, program(runs) if runs else None
        )
        self.recent.note(event, offset_us=OFFSET_US, look=self.number)

    def of(self, pid: int = 7) -> list[tuple[float, list[str], float | None]]:
        """Of each life of a pid its birth, its programs and its death."""
        return [
            (
                life.born_boot_us / SECOND,
                [text.command if (text := ran.as_text()) else "" for ran in life.ran],
                None if life.died_us is None else (life.died_us - OFFSET_US) / SECOND,
            )
            for life in self.recent.of(pid)
        ]

    def forget(self, second: float) -> None:
        """One look: what is due is forgotten."""
        self.number += 1
        self.recent.forget(boot_us=int(second * SECOND), look=self.number)


EXEC, FORK, EXIT, OPEN, HOLD = Happened


@pytest.fixture
def memory() -> Memory:
    """A memory of a source that sees opens."""
    return Memory()


def test_a_life_from_exec_to_exit(memory: Memory) -> None:
    """Its programs in order, and its birth from its ticks, not from the event."""
    memory.note(EXEC, 2, runs="env")
    memory.note(EXEC, 3, runs="python")
    assert memory.recent.living(7) is not None
    memory.note(EXIT, 4)
    assert memory.of() == [(1.0, ["env", "python"], 4.0)]
    assert memory.recent.living(7) is None
    assert memory.recent.all_living() == []


def test_a_fork_is_its_parents_program_until_it_execs(memory: Memory) -> None:
    """That of the moment of the fork, though the parent has become another program since."""
    memory.note(EXEC, 1, runs="sh")
    memory.note(EXEC, 5, runs="python")
    memory.note(FORK, 3, pid=8, born=3, parent=7)
    memory.note(FORK, 6, pid=9, born=6, parent=7)
    memory.note(FORK, 6, pid=10, born=6, parent=77)
    assert [memory.of(pid)[0][1] for pid in (8, 9, 10)] == [["sh"], ["python"], []]
    memory.note(FORK, 6, pid=9, born=6, parent=7)
    memory.note(EXEC, 7, pid=9, born=6, runs="true")
    assert memory.of(9) == [(6.0, ["python", "true"], None)]


def test_a_reused_pid_is_another_life(memory: Memory) -> None:
    """Each event goes to the process whose start it carries."""
    memory.note(EXEC, 2, runs="old")
    memory.note(EXIT, 3)
    memory.note(EXEC, 4, born=4, runs="new")
    memory.note(EXIT, 4)  # late, or told twice: of the first
    assert memory.of() == [(1.0, ["old"], 3.0), (4.0, ["new"], None)]


def test_an_exit_that_went_by_unseen_is_counted_and_ends_the_life_where_it_was_last_seen(memory: Memory) -> None:
    """The pid has another process: by its exec, its open or its exit."""
    memory.note(EXEC, 2, runs="old")
    memory.note(EXEC, 9, born=8, runs="new")
    assert memory.of() == [(1.0, ["old"], 2.0), (8.0, ["new"], None)]
    memory.note(EXIT, 20, born=15)  # of a third one that nothing else was told of
    assert memory.of()[1] == (8.0, ["new"], 9.0)
    assert memory.recent.vanished == 2
    assert [life.exit_seen for life in memory.recent.of(7)] == [False, False]


def test_an_exit_of_nobody_we_know_is_no_news(memory: Memory) -> None:
    """Most processes of a machine fork, do nothing of interest, and exit."""
    memory.note(EXIT, 3)
    assert memory.of() == []


def test_a_process_whose_start_could_not_be_read_gets_it_later(memory: Memory) -> None:
    """One process, not two: the fork died out of sight, or its exec says the ticks."""
    memory.note(FORK, 3, born=0, parent=1)
    memory.note(EXEC, 3.001, born=3, runs="python")
    assert memory.of() == [(3.0, ["python"], None)]
    memory.note(FORK, 5, pid=8, born=0, parent=7)
    memory.note(EXEC, 5.001, pid=8, born=0)
    memory.note(EXIT, 5.002, pid=8, born=5)
    assert memory.of(8) == [(5.0, ["python", ""], 5.002)]
    assert [life.start_ticks for life in memory.recent.of(8)] == [500]


def test_a_start_too_young_is_another_process(memory: Memory) -> None:
    """What is known by its first event only was born by then."""
    memory.note(EXEC, 3, born=0, runs="old")
    memory.note(EXEC, 9, born=8, runs="new")
    assert [(runs, died) for _, runs, died in memory.of()] == [(["old"], 3.0), (["new"], None)]
    memory.note(EXEC, 3, pid=8, born=0, runs="old")
    memory.note(EXIT, 9, pid=8, born=8)
    assert memory.of(8) == [(3.0, ["old"], 3.0)]


def test_a_fork_is_always_a_new_process_unless_it_was_met_meanwhile(memory: Memory) -> None:
    """Its ticks could not be read; the pid's earlier holder has ended without an event."""
    memory.note(EXEC, 2, runs="old")
    memory.note(FORK, 5, born=0, parent=1)
    memory.note(FORK, 5, born=0, parent=1)
    assert [died for _, _, died in memory.of()] == [2.0, None]
    met = memory.recent.add(Life(pid=8, start_ticks=400, born_us=0, born_boot_us=4 * SECOND, read_boot_us=6 * SECOND))
    memory.note(FORK, 4, pid=8, born=0, parent=1)
    assert memory.recent.of(8) == [met]


def test_a_snapshot_that_meets_a_process_while_it_ends_does_not_bring_it_back(memory: Memory) -> None:
    """The kernel tells an exit before the files are closed: the open counts, the process is dead."""
    memory.note(EXEC, 2, runs="python")
    memory.note(EXIT, 3)
    memory.note(HOLD, 3.1, runs="python")
    [life] = memory.recent.of(7)
    assert life.died_us == OFFSET_US + 3 * SECOND
    assert [(hold.minor, hold.opened_us, hold.is_found) for hold in life.holds] == [(0, OFFSET_US + 3_100_000, True)]
    assert list(memory.recent.touched.values()) == [life]


def test_an_exec_proves_that_an_exit_was_none(memory: Memory) -> None:
    """A first thread can end before the others, one of which becomes another program in its place."""
    memory.note(EXEC, 2, runs="sh")
    memory.note(EXIT, 3)
    memory.note(EXEC, 4, runs="python")
    assert memory.of() == [(1.0, ["sh", "python"], None)]
    memory.forget(999)
    assert memory.recent.living(7) is not None


def test_only_a_devices_node_is_touched_and_not_by_monitors(memory: Memory) -> None:
    """Not the control node, not another driver's, not by nvidia-smi and not by this agent."""
    memory.note(OPEN, 2, runs="python", minor=255)
    memory.note(OPEN, 2, runs="python", minor=0, major=234)
    memory.note(OPEN, 2, pid=8, runs="nvidia-smi")
    memory.note(OPEN, 2, pid=OWN_PID, runs="python")
    assert not memory.recent.touched
    memory.note(OPEN, 3, minor=1)
    memory.note(OPEN, 4, minor=1)
    [life] = memory.recent.touched.values()
    assert life.pid == 7
    assert [(hold.minor, hold.opened_us, hold.is_found) for hold in life.holds] == [(1, OFFSET_US + 3 * SECOND, False)]
    memory.note(EXEC, 4, pid=8, runs="python")
    memory.note(OPEN, 5, pid=8)
    assert len(memory.recent.touched) == 2


def test_each_program_opens_a_device_anew(memory: Memory) -> None:
    """An exec closes what its program had open, told twice or not; a look-alike of the same program does not."""
    memory.note(EXEC, 2, runs="one")
    memory.note(OPEN, 2.1)
    memory.note(OPEN, 2.2)
    memory.note(EXEC, 3, runs="two")
    memory.note(OPEN, 3.1)
    memory.note(EXEC, 3, runs="two")
    [life] = memory.recent.touched.values()
    assert [(hold.number, hold.opened_boot_us, hold.let_go_us) for hold in life.holds] == [
        (0, 2_100_000, OFFSET_US + 3 * SECOND),
        (1, 3_100_000, None),
    ]


def test_one_that_opens_and_execs_for_ever_has_an_end(memory: Memory) -> None:
    """What is let go untold is counted."""
    for second in range(2, 2 + MOST_HOLDS + 3):
        memory.note(EXEC, second, runs="again")
        memory.note(OPEN, second + 0.5)
    [life] = memory.recent.touched.values()
    assert (len(life.holds), life.held, memory.recent.dropped) == (MOST_HOLDS, MOST_HOLDS + 3, 3)


def test_events_that_were_lost_leave_no_program_sure(memory: Memory) -> None:
    """Whoever lived since then can have become another program; an open said which one it was then."""
    for pid in (7, 8, 9, 10):
        memory.note(EXEC, 2, pid=pid, runs="sh")
    memory.note(EXIT, 3, pid=7)
    memory.note(OPEN, 6, pid=9)
    memory.note(EXIT, 7, pid=10)
    memory.note(FORK, 7, pid=11, born=7, parent=1)
    memory.recent.doubt(OFFSET_US + 5 * SECOND, 5 * SECOND)
    memory.recent.doubt(OFFSET_US + 5 * SECOND, 5 * SECOND)
    assert [memory.of(pid)[0][1] for pid in (7, 8, 9, 10, 11)] == [["sh"], ["sh", ""], ["sh", ""], ["sh", ""], []]
    assert [memory.recent.of(pid)[0].ran[-1].since_us - OFFSET_US for pid in (8, 9)] == [5 * SECOND, 6_100_000]


def test_the_dead_are_kept_for_so_many_looks_and_so_long(memory: Memory) -> None:
    """Rows come late; the boot-time clock decides, which nobody sets."""
    memory.note(EXEC, 2, runs="python")
    memory.note(EXIT, 3)
    for _ in range(LOOKS_KEPT):
        memory.forget(3)
    assert memory.of()
    memory.number = 1
    memory.forget(3 + KEPT_US / SECOND)
    assert memory.of()
    memory.number = LOOKS_KEPT
    memory.forget(3 + KEPT_US / SECOND)
    assert memory.of() == []
    assert memory.recent.dropped == 0


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """A memory for three."""
    monkeypatch.setattr(recent_processes, "MOST_DEAD", 3)
    monkeypatch.setattr(recent_processes, "MOST_TOUCHED", 3)
    return 3


@pytest.mark.parametrize("sees_opens", [True, False])
def test_a_storm_between_two_looks_does_not_grow_the_memory(small: int, sees_opens: bool) -> None:
    """The oldest go at once, and are counted where one of them can be the process of a row."""
    memory = Memory(sees_opens=sees_opens)
    for pid in range(100, 110):
        memory.note(EXEC, 2, pid=pid, runs="true")
        memory.note(EXIT, 3, pid=pid)
    assert sum(len(memory.recent.of(pid)) for pid in range(100, 110)) == small
    assert memory.recent.dropped == (0 if sees_opens else 7)


def test_openers_that_wait_to_be_told_have_an_end_too(small: int, memory: Memory) -> None:
    """The oldest is let go, counted, and can be found again by a snapshot."""
    for pid in range(100, 105):
        memory.note(OPEN, 2, pid=pid, runs="python")
    assert (len(memory.recent.touched), memory.recent.dropped) == (small, 2)
    memory.note(HOLD, 3, pid=100)
    assert 100 in {life.pid for life in memory.recent.touched.values()}


class Machine(RuleBasedStateMachine):
    """A machine with four pids beside what its events tell, some of them lost or told twice.

    The truth is kept by (pid, start): what ran when. A memory may know less, and never something else.
    """

    @initialize(sees_opens=st.booleans())
    def begin(self, sees_opens: bool) -> None:
        """Nothing runs yet."""
        self.memory = Memory(sees_opens=sees_opens)
        self.second = 10
        self.alive: dict[int, int] = {}
        self.truth: dict[tuple[int, int], list[tuple[int, str]]] = {}
        self.died: dict[tuple[int, int], int] = {}
        self.heard_us = 0
        self.is_lossy = False

    def tell(self, what: Happened, pid: int, *, lost: bool, twice: bool, runs: str = "", parent: int = 0) -> None:
        """One event on its way to the memory."""
        if lost:
            self.is_lossy = True
            return
        if self.is_lossy:  # as a watcher does with the first batch after a loss
            self.is_lossy = False
            self.memory.recent.doubt(OFFSET_US + self.heard_us, self.heard_us)
        for _ in range(1 + twice):
            self.memory.note(what, self.second, pid, self.alive[pid], runs=runs, parent=parent)
        self.heard_us = self.second * SECOND

    @rule(pid=st.integers(1, 4), parent=st.integers(1, 4), lost=st.booleans(), twice=st.booleans())
    def forks(self, pid: int, parent: int, lost: bool, twice: bool) -> None:
        """A process is born of another."""
        if pid in self.alive or parent not in self.alive:
            return
        self.second += 1
        self.alive[pid] = self.second
        self.truth[pid, self.second] = [(self.second, self.truth[parent, self.alive[parent]][-1][1])]
        self.tell(FORK, pid, lost=lost, twice=twice, parent=parent)

    @rule(pid=st.integers(1, 4), name=st.sampled_from("abc"), lost=st.booleans(), twice=st.booleans())
    def execs(self, pid: int, name: str, lost: bool, twice: bool) -> None:
        """A process becomes another program; one that was not there is born with it."""
        self.second += 1
        born = self.alive.setdefault(pid, self.second)
        self.truth.setdefault((pid, born), []).append((self.second, name))
        self.tell(EXEC, pid, lost=lost, twice=twice, runs=name)

    @rule(pid=st.integers(1, 4), lost=st.booleans(), twice=st.booleans())
    def exits(self, pid: int, lost: bool, twice: bool) -> None:
        """A process ends."""
        if pid not in self.alive:
            return
        self.second += 1
        self.died[pid, self.alive[pid]] = self.second
        self.tell(EXIT, pid, lost=lost, twice=twice)
        del self.alive[pid]

    @rule(pid=st.integers(1, 4), minor=st.integers(0, 1), lost=st.booleans())
    def opens(self, pid: int, minor: int, lost: bool) -> None:
        """A process opens a device; the event carries its program."""
        if pid not in self.alive or not self.memory.recent._sees_opens:
            return
        self.second += 1
        if lost:
            self.is_lossy = True
            return
        self.tell(OPEN, pid, lost=False, twice=False, runs=self.truth[pid, self.alive[pid]][-1][1])

    @rule(seconds=st.integers(1, 30))
    def looks(self, seconds: int) -> None:
        """A look: time has passed, what is old is forgotten."""
        self.second += seconds
        self.memory.forget(self.second)

    @invariant()
    def no_process_has_two_lives(self) -> None:
        """And every life is one of a process that was."""
        if not hasattr(self, "memory"):
            return
        for pid in range(1, 5):
            lives = self.memory.recent.of(pid)
            keys = [(pid, life.start_ticks * TICK_US // SECOND) for life in lives]
            assert len(set(keys)) == len(keys)
            assert all(key in self.truth for key in keys)
            assert sum(life.died_us is None for life in lives) <= 1

    @invariant()
    def no_program_at_a_time_when_it_did_not_run(self) -> None:
        """At every moment what is known of a process is what it ran, or nothing; and it is no longer alive than it was.

        Only what was told before the last loss is known, so the moments up to it are looked at.
        """
        if not hasattr(self, "memory"):
            return
        for pid in range(1, 5):
            for life in self.memory.recent.of(pid):
                key = (pid, life.start_ticks * TICK_US // SECOND)
                if life.died_us is not None:
                    assert (life.died_us - OFFSET_US) // SECOND <= self.died.get(key, self.second)
                until = min(self.heard_us // SECOND, self.died.get(key, self.second))
                for second in range(key[1], until + 1):
                    by_then = [ran for ran in life.ran if (ran.since_us - OFFSET_US) // SECOND <= second]
                    if not by_then or (text := by_then[-1].as_text()) is None:
                        continue
                    ran = [name for since, name in self.truth[key] if since <= second]
                    assert text.command == ran[-1]


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
