"""The process connector as an event source: real processes, as root."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuledger.errors import Unavailable
from gpuledger.sources import connector, procfs
from gpuledger.sources.connector import ConnectorSource
from gpuledger.sources.process_events import EventSource, Happened, ProcessEvent

JOBS = 40


@pytest.fixture(autouse=True)
def as_root() -> None:
    """Kernel events need root: a skip elsewhere, a failure in CI."""
    if os.geteuid() != 0:
        if os.environ.get("CI"):
            pytest.fail("kernel events of processes are tested as root")
        pytest.skip("kernel events of processes are tested as root")


@pytest.fixture
def source() -> Iterator[ConnectorSource]:
    """A source, begun."""
    made = ConnectorSource()
    made.begin()
    yield made
    made.close()


def listeners() -> int:
    """Sockets in the connector's group, of the whole machine."""
    lines = [line.split() for line in Path("/proc/net/netlink").read_text(encoding="ascii").splitlines()[1:]]
    return sum(protocol == "11" and int(groups, 16) & 1 for _, protocol, _, groups, *_ in lines)


def read_on(source: EventSource, *, until: int, for_s: float = 10.0) -> list[ProcessEvent]:
    """Events up to the end of a process."""
    events: list[ProcessEvent] = []
    give_up = time.monotonic() + for_s
    while time.monotonic() < give_up:
        if source.wait(0.05):
            events += source.read()
        if any(one.pid == until and one.happened is Happened.EXIT for one in events):
            break
    return events


@pytest.mark.parametrize("life_s", ["0.01", "0.1"])
def test_short_jobs_are_told_with_their_names(source: ConnectorSource, life_s: str) -> None:
    """Each one: birth, program and end, with the start that /proc has."""
    starts: dict[int, object] = {}
    children = []
    for number in range(JOBS):
        child = subprocess.Popen(["/bin/sleep", life_s, f"0.00000{number}"])
        starts[child.pid] = procfs.start_ticks(child.pid)
        children.append(child)
    for child in children:
        child.wait()
    subprocess.run(["/bin/true"], check=True)
    events = read_on(source, until=0, for_s=0.5)
    for number, child in enumerate(children):
        own = [one for one in events if one.pid == child.pid]
        assert [one.happened.name for one in own] == ["FORK", "EXEC", "EXIT"]
        assert {one.start_ticks for one in own} == {starts[child.pid]}
        assert own[1].program is not None
        assert own[1].program.args == f"/bin/sleep\0{life_s}\0{f'0.00000{number}'}\0".encode()
    assert source.lost() == 0


def test_the_shortest_are_told_with_or_without_their_name(source: ConnectorSource) -> None:
    """A process of a millisecond may be gone before it is read: then that it was is told, and nothing made up."""
    pids = []
    for _ in range(100):
        child = subprocess.Popen(["/bin/true", "short"])
        child.wait()
        pids.append(child.pid)
    events = read_on(source, until=pids[-1])
    told = {one.pid: one for one in events if one.happened is Happened.EXEC}
    for pid in pids:
        program = told[pid].program
        assert program.args == b"/bin/true\0short\0" if program is not None else told[pid].start_ticks == 0
    assert sum(told[pid].program is not None for pid in pids) > 50


def test_losses_are_told() -> None:
    """A reader that stands still and a buffer for a few events: one spell, and what comes after is told again."""
    source = ConnectorSource(buffer_bytes=1)
    source._process.send_signal(signal.SIGSTOP)
    for _ in range(100):
        subprocess.run(["/bin/true"], check=True)
    source._process.send_signal(signal.SIGCONT)
    time.sleep(0.2)
    child = subprocess.Popen(["/bin/sleep", "0.05"])
    child.wait()
    events = read_on(source, until=child.pid)
    assert source.lost() >= 1
    assert [one.happened.name for one in events if one.pid == child.pid] == ["FORK", "EXEC", "EXIT"]
    source.close()


def test_who_asks_for_all_until_now_gets_births_with_their_execs(source: ConnectorSource) -> None:
    """A look in between would take a child for its parent's program, and one that ended for nobody."""
    for number in range(20):
        child = subprocess.Popen(["/bin/sleep", "0.1" if number % 2 else "0"])
        if number % 2:
            time.sleep(0.05)  # a parent goes on a moment before the kernel tells of the exec (fs/exec.c, mm_release)
        else:
            child.wait()
        source.catch_up()
        told = [one.happened.name for one in source.read() if one.pid == child.pid]
        assert told == (["FORK", "EXEC"] if number % 2 else ["FORK", "EXEC", "EXIT"])
        child.wait()
    assert source.lost() == 0


def test_a_look_asks_while_the_reading_thread_waits(source: ConnectorSource) -> None:
    """The agent's thread and the reading one listen at the same time."""
    ended = threading.Event()

    def wait() -> None:
        while not ended.is_set():
            source.wait(0.2)

    reading = threading.Thread(target=wait)
    reading.start()
    try:
        for _ in range(20):
            source.catch_up()
            source.read()
    finally:
        ended.set()
        reading.join()
    assert source.lost() == 0


def test_a_reader_that_does_not_answer_is_a_loss(source: ConnectorSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look goes on without it, and says so; later it is heard again."""
    monkeypatch.setattr(connector, "_CAUGHT_UP_WITHIN_US", 200_000)
    source._process.send_signal(signal.SIGSTOP)
    source.catch_up()
    assert source.lost() == 1
    source._process.send_signal(signal.SIGCONT)
    monkeypatch.undo()
    source.catch_up()
    assert source.lost() == 1


def test_nothing_is_lost_while_the_agent_is_busy(source: ConnectorSource) -> None:
    """It computes, and holds the interpreter's lock: a thread beside would not have been heard."""
    script = "for n in 1 2 3 4 5 6 7 8 9 10; do /bin/sleep 0.01; done"
    child = subprocess.Popen(["/bin/sh", "-c", script])
    while child.poll() is None:
        sum(range(10_000))
    events = read_on(source, until=child.pid)
    named = [one for one in events if one.program is not None and one.program.args == b"/bin/sleep\x000.01\0"]
    assert len(named) == 10


def test_it_says_what_it_can() -> None:
    """The words by which its watcher knows it: an event source like the others, that sees no device."""
    source: EventSource = ConnectorSource()
    assert (source.method, source.sees_opens, source.counts_losses, source.pause_s) == ("connector", False, False, 0.2)
    assert list(source.snapshot()) == []
    assert isinstance(source, ConnectorSource)
    assert source.is_urgent
    source.close()


def test_closing_leaves_nothing() -> None:
    """Neither a listener in the kernel, of which there are two, nor a process."""
    before = listeners()
    source = ConnectorSource()
    pid = source._process.pid
    assert listeners() == before + 2
    source.close()
    assert listeners() == before
    assert not Path(f"/proc/{pid}").exists()


def test_a_reader_that_ended_is_said(source: ConnectorSource) -> None:
    """Silence would look like a machine on which nothing happens."""
    source._process.kill()
    source._process.wait()
    with pytest.raises(Unavailable, match="has ended") as caught:
        read_on(source, until=0)
    assert (caught.value.code, bool(caught.value.hint)) == ("connector-ended", True)


def test_a_reader_that_never_begins_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is not left behind."""
    monkeypatch.setattr(connector, "_BEGUN_WITHIN_S", 0.0)
    with pytest.raises(Unavailable, match="does not answer") as caught:
        ConnectorSource()
    assert caught.value.code == "connector-ended"


def test_a_refusal_reaches_the_agent() -> None:
    """With its code and its hint: here for want of the host's network."""
    code = (
        "from gpuledger.errors import Unavailable\n"
        "from gpuledger.sources.connector import ConnectorSource\n"
        "try: ConnectorSource()\n"
        "except Unavailable as refusal: print(refusal.code, bool(refusal.hint))\n"
    )
    command = ["unshare", "--net", sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["connector-namespace", "True"]
    assert not done.stderr


def test_a_reader_that_cannot_be_started_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more processes for this user: the next way of naming is taken, and doctor says why."""

    def none_left(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", none_left)
    with pytest.raises(Unavailable, match="cannot be started: Resource temporarily unavailable") as refused:
        ConnectorSource()
    assert (refused.value.code, "ulimit" in refused.value.hint) == ("connector-ended", True)
