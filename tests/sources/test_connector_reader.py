"""What datagrams mean: real processes, as root; and made-up datagrams where the kernel's cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from gpuledger.clock import SystemClock
from gpuledger.sources import procfs
from gpuledger.sources.connector_reader import MOST_AT_ONCE, ConnectorReader
from gpuledger.sources.connector_socket import EVENT, EVENT_AT, EXEC, EXIT, FORK, Connection
from gpuledger.sources.proc_files import TICKS_PER_SECOND, read_stat
from gpuledger.sources.process_events import Happened, ProcessEvent

LAST_THREAD = """
import ctypes, os, threading, time
threading.Thread(target=lambda: (time.sleep(0.3), os._exit(0))).start()
ctypes.CDLL(None).pthread_exit(None)
"""
EXECUTING_THREAD = """
import os, threading
threading.Thread(target=os.execv, args=("/bin/sleep", ["sleep", "0.1"])).start()
threading.Event().wait()
"""
MANY_THREADS = """
import os, threading
for _ in range(20): threading.Thread(target=threading.Event().wait, daemon=True).start()
os._exit(0)
"""
FORKING = """
import os, time
child = os.fork()
if not child: time.sleep(0.2); os._exit(0)
print(child, open(f"/proc/{child}/stat").read().rpartition(")")[2].split()[19], flush=True)
os.waitpid(child, 0)
"""


Said = tuple[int, int, int, int, int, int]


class Told:
    """A connection that says what a test wants said: what, seconds from now, and four words; None is a loss."""

    def __init__(self, *said: Said | None) -> None:
        self._said: list[bytes | None] = []
        self.overruns = 0
        self.told: list[bool] = []
        self.say(*said)

    def say(self, *said: Said | None) -> None:
        """More of it."""
        now_ns = SystemClock().boot_us() * 1000 - SystemClock().boot_ahead_ns()
        for one in said:
            if one is None:
                self._said.append(None)
            else:
                what, after_s, *words = one
                event = EVENT.pack(what, 0, now_ns + after_s * 1_000_000_000 + len(self._said), *words)
                self._said.append(bytes(EVENT_AT) + event)

    def receive(self) -> bytes | None:
        """The next datagram; None where there is none yet."""
        while self._said and self._said[0] is None:
            self._said.pop(0)
            self.overruns += 1
        return self._said.pop(0) if self._said else None

    def tell_of_threads(self, told: bool) -> None:
        """Remembered for the test."""
        self.told.append(told)


@pytest.fixture
def reader() -> Iterator[ConnectorReader]:
    """A reader of real events: as root, a skip elsewhere, a failure in CI."""
    if os.geteuid() != 0:
        if os.environ.get("CI"):
            pytest.fail("kernel events of processes are tested as root")
        pytest.skip("kernel events of processes are tested as root")
    execs, others = Connection(frozenset((EXEC,))), Connection(frozenset((FORK, EXIT)))
    yield ConnectorReader(execs, others)
    execs.close()
    others.close()


def follow(reader: ConnectorReader, pid: int, *, for_s: float = 5.0) -> list[ProcessEvent]:
    """Events of a process until it has ended."""
    events: list[ProcessEvent] = []
    until = time.monotonic() + for_s
    while time.monotonic() < until and not any(one.happened is Happened.EXIT for one in events):
        reader.read()
        events += [one for one in reader.take() if one.pid == pid]
        time.sleep(0.001)
    return events


def run(reader: ConnectorReader, code: str) -> list[ProcessEvent]:
    """The events of a Python program."""
    child = subprocess.Popen([sys.executable, "-c", code])
    events = follow(reader, child.pid)
    child.wait()
    return events


def shape(events: list[ProcessEvent]) -> list[str]:
    """What happened, in order."""
    return [one.happened.name for one in events]


def test_a_process_is_told_from_birth_to_end(reader: ConnectorReader) -> None:
    """With the start that /proc has, and times of the boot-time clock."""
    before_us = SystemClock().boot_us()
    child = subprocess.Popen(["/bin/sleep", "0.1"], cwd="/tmp")
    ticks = procfs.start_ticks(child.pid)
    events = follow(reader, child.pid)
    child.wait()
    assert shape(events) == ["FORK", "EXEC", "EXIT"]
    assert [one.start_ticks for one in events] == [ticks] * 3
    assert [one.parent for one in events] == [os.getpid(), os.getpid(), 0]
    assert before_us <= events[0].boot_us <= events[1].boot_us <= events[2].boot_us <= SystemClock().boot_us()
    assert 90_000 < events[2].boot_us - events[1].boot_us < 2_000_000
    program = events[1].program
    assert program is not None
    assert (program.args, program.cwd, program.uid) == (b"/bin/sleep\x000.1\0", b"/tmp", 0)


def test_a_child_that_never_execs_has_its_start(reader: ConnectorReader) -> None:
    """A worker forked by its parent: no program of its own, but a process of its own."""
    child = subprocess.Popen([sys.executable, "-c", FORKING], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    events: list[ProcessEvent] = []
    while not any(one.happened is Happened.EXIT and one.pid == child.pid for one in events):
        reader.read()
        events += reader.take()
    pid, ticks = map(int, child.communicate()[0].split())
    born, died = [one for one in events if one.pid == pid]
    assert (born.happened, born.start_ticks, born.parent, born.program) == (Happened.FORK, ticks, child.pid, None)
    assert (died.happened, died.start_ticks) == (Happened.EXIT, ticks)


def test_the_last_thread_ends_a_process(reader: ConnectorReader) -> None:
    """Its first thread may end long before: the process still holds its devices."""
    events = run(reader, LAST_THREAD)
    assert shape(events) == ["FORK", "EXEC", "EXIT"]
    assert events[2].boot_us - events[1].boot_us > 300_000


def test_all_threads_ending_at_once_is_one_end(reader: ConnectorReader) -> None:
    """Twenty threads of a job that exits."""
    events = run(reader, MANY_THREADS)
    assert shape(events) == ["FORK", "EXEC", "EXIT"]


def test_a_thread_that_execs_is_no_end(reader: ConnectorReader) -> None:
    """It takes its process over, and the end of the first thread is told on the way: programs in Go do so."""
    events = run(reader, EXECUTING_THREAD)
    assert shape(events) == ["FORK", "EXEC", "EXEC", "EXIT"]
    assert len({one.start_ticks for one in events}) == 1
    assert events[2].program is not None
    assert events[2].program.args == b"sleep\x000.1\0"


def test_another_users_process_is_read(reader: ConnectorReader) -> None:
    """By its real user id."""
    child = subprocess.Popen(["/bin/sleep", "0.05"], user=12345, group=12345)
    events = follow(reader, child.pid)
    child.wait()
    program = events[1].program
    assert program is not None
    assert program.uid == 12345


def test_the_dead_have_no_program() -> None:
    """An exec of a pid that is no more is told, and nothing else of it."""
    reader = ConnectorReader(Told((EXEC, 0, 2**30, 2**30, 0, 0)), Told())
    reader.read()
    (event,) = reader.take()
    assert (event.happened, event.pid, event.start_ticks, event.program) == (Happened.EXEC, 2**30, 0, None)


def test_a_reused_pid_lends_no_name() -> None:
    """Events from before the birth of the process that has the pid now: the test's own."""
    own, stat = os.getpid(), read_stat(os.getpid())
    assert stat is not None
    ago = stat.start_ticks // TICKS_PER_SECOND - SystemClock().boot_us() // 1_000_000 - 2
    execs = Told((EXEC, ago, own, own, 0, 0))
    reader = ConnectorReader(execs, Told((FORK, ago - 1, 1, 1, own, own), (EXIT, ago, own, own, 0, 17)))
    reader.read()
    assert [(one.happened.name, one.start_ticks, one.program) for one in reader.take()] == [
        ("FORK", 0, None),
        ("EXEC", 0, None),
        ("EXIT", 0, None),
    ]


@pytest.mark.parametrize("is_lossy", [False, True])
def test_a_loss_makes_starts_unsure(is_lossy: bool) -> None:
    """An exit may have been among what was lost, and the pid another process' since."""
    child = subprocess.Popen(["/bin/sleep", "30"])
    ticks = procfs.start_ticks(child.pid)
    others = Told()
    reader = ConnectorReader(Told((EXEC, 0, child.pid, child.pid, 0, 0)), others)
    reader.read()
    assert [one.start_ticks for one in reader.take()] == [ticks]
    child.kill()
    child.wait()
    others.say(*([None] if is_lossy else []), (EXIT, 0, child.pid, child.pid, 0, 17))
    assert [one.start_ticks for one in reader.take()] == [0 if is_lossy else ticks]
    assert reader.spells == is_lossy


def test_threads_are_asked_for_while_they_matter() -> None:
    """A first thread has ended and the process goes on: from then on each end is told, and no longer than needed."""
    own = os.getpid()
    execs, others = Told(), Told((EXIT, 0, own, own, 0, 17), (EXIT, 0, own + 1, own, 0, 0))
    reader = ConnectorReader(execs, others)
    assert reader.take() == []
    assert others.told == [True]
    execs.say((EXEC, 0, own, own, 0, 0))
    assert [one.happened for one in reader.take()] == [Happened.EXEC]
    assert others.told == [True, False]


def test_a_thread_by_itself_is_nothing() -> None:
    """Its end is told only where the first thread of its process has ended before; its birth never."""
    own = os.getpid()
    reader = ConnectorReader(Told(), Told((FORK, 0, own, own, own + 1, own), (EXIT, 0, own + 1, own, 0, 0)))
    assert reader.take() == []


def test_what_comes_in_meanwhile_waits() -> None:
    """An exec whose birth was not received yet would come before it."""
    own = os.getpid()
    execs = Told((EXEC, 1, own, own, 0, 0))
    reader = ConnectorReader(execs, Told((EXIT, 0, 2**30, 2**30, 0, 17)))
    assert [one.happened for one in reader.take()] == [Happened.EXIT]
    assert reader.holds_back
    time.sleep(1)
    assert [one.happened for one in reader.take()] == [Happened.EXEC]
    assert not reader.holds_back


def test_two_connections_make_one_order() -> None:
    """The kernel's, whichever was received first."""
    gone = 2**30
    execs = Told((EXEC, -3, gone, gone, 0, 0), (EXEC, -1, gone, gone, 0, 0))
    reader = ConnectorReader(execs, Told((FORK, -4, 1, 1, gone, gone), (EXIT, 0, gone, gone, 0, 17)))
    assert reader.read()
    assert shape(reader.take()) == ["FORK", "EXEC", "EXEC", "EXIT"]


def test_a_long_queue_is_read_in_parts() -> None:
    """So that what was read of a storm is passed on while it lasts."""
    reader = ConnectorReader(Told(*[(EXEC, -1, 2**30, 2**30, 0, 0)] * (MOST_AT_ONCE + 1)), Told())
    assert reader.read()
    assert reader.read()
    assert not reader.read()
    assert len(reader.take()) == MOST_AT_ONCE + 1
