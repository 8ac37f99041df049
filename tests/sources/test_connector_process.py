"""The process beside the agent: it begins with a word, and ends with the agent. As root, with real events."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from gpuledger.errors import Unavailable
from gpuledger.sources.connector_frames import Frame, FrameBuffer, Ready
from gpuledger.sources.process_events import Happened, ProcessEvent

COMMAND = [sys.executable, "-P", "-m", "gpuledger.sources.connector_process", str(1024 * 1024)]


@pytest.fixture(autouse=True)
def as_root() -> None:
    """Kernel events need root: a skip elsewhere, a failure in CI."""
    if os.geteuid() != 0:
        if os.environ.get("CI"):
            pytest.fail("kernel events of processes are tested as root")
        pytest.skip("kernel events of processes are tested as root")


def begin() -> tuple[subprocess.Popen[bytes], FrameBuffer, list[Frame]]:
    """The process, after its first words."""
    process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None
    buffer = FrameBuffer()
    return process, buffer, list(buffer.feed(process.stdout.read(65536)))


def end(process: subprocess.Popen[bytes]) -> int:
    """Its exit status after its standard input has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    status = process.wait(timeout=10)
    process.stdout.close()
    return status


def test_it_is_urgent_and_says_so() -> None:
    """Before all ordinary processes, so that a busy machine does not keep it from the short-lived."""
    process, _, (first, *_) = begin()
    assert first == Ready(True)
    assert os.sched_getscheduler(process.pid) == os.SCHED_FIFO
    assert end(process) == 0


def test_events_follow_within_a_moment() -> None:
    """An exec is in the pipe a few hundredths of a second later."""
    process, buffer, _ = begin()
    assert process.stdout is not None
    child = subprocess.Popen(["/bin/sleep", "0.01"])
    child.wait()
    told: list[Frame] = []
    until = time.monotonic() + 5
    while time.monotonic() < until and len(told) < 3:
        told += [one for one in buffer.feed(process.stdout.read(65536))
                 if isinstance(one, ProcessEvent) and one.pid == child.pid]  # fmt: skip
    assert [one.happened for one in told if isinstance(one, ProcessEvent)] == [
        Happened.FORK, Happened.EXEC, Happened.EXIT,
    ]  # fmt: skip
    assert end(process) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_agents_group_is_not_for_it(number: signal.Signals) -> None:
    """Ctrl-C and a stopped service reach both; the agent looks once more, and needs what is still told."""
    process, _, _ = begin()
    process.send_signal(number)
    time.sleep(0.1)
    assert process.poll() is None
    assert end(process) == 0


def test_an_agent_that_is_killed_takes_it_along() -> None:
    """The pipes end with the agent, however it ended; also while nobody reads."""
    process, _, _ = begin()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    subprocess.run(["/bin/true"], check=True)
    assert process.wait(timeout=10) == 0
    process.stdin.close()


def test_a_refusal_is_its_only_word() -> None:
    """Passed on with code and hint; here for want of the host's network."""
    done = subprocess.run(["unshare", "--net", *COMMAND], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    (frame,) = FrameBuffer().feed(done.stdout)
    assert isinstance(frame, Unavailable)
    assert frame.code == "connector-namespace"
    assert not done.stderr


def test_without_the_capability_it_reads_all_the_same() -> None:
    """Real-time priority is taken where it is given, and missed otherwise."""
    command = ["setpriv", "--inh-caps=-sys_nice", "--bounding-set=-sys_nice", *COMMAND]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None
    first, *_ = FrameBuffer().feed(process.stdout.read(65536))
    assert first == Ready(False)
    assert end(process) == 0
