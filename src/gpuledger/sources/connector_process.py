"""The process that reads the connector, beside the agent: ``python -m gpuledger.sources.connector_process``.

In: datagrams of the kernel, and on standard input a byte for each time that all until now is asked for, or its
end. Out: frames on standard output. It is
a process of its own because whoever names the short-lived must never wait: within the agent it would wait for
the interpreter's lock whenever the agent works, 5 ms and more each time that it is asked for. Measured beside a
thread that only computes, at real-time priority: 46 % of processes of 10 ms were read in time there, all here.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import ExitStack, closing

from gpuledger.clock import SystemClock
from gpuledger.errors import Unavailable
from gpuledger.sources.connector_frames import CaughtUp, Frame, Lost, Ready, to_bytes
from gpuledger.sources.connector_reader import ConnectorReader
from gpuledger.sources.connector_socket import EXEC, EXIT, FORK, Connection

PASSED_ON_US = 20_000
"""What was read is passed on this late at most: one waking of the agent for many events."""

_PRIORITY = 1
"""The least of the real-time priorities: before every ordinary process, behind all that is truly real-time."""


def main(buffer_bytes: int) -> None:
    """Read until standard input ends, as it does with the agent; a signal to the agent's group is not for us.

    Args:
        buffer_bytes: how much the kernel may keep for us.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        with ExitStack() as opened:
            execs, others = (
                opened.enter_context(closing(Connection(kinds, buffer_bytes=buffer_bytes)))
                for kinds in (frozenset((EXEC,)), frozenset((FORK, EXIT)))
            )
            _write([Ready(become_urgent())])
            _pass_on(execs, others)
    except Unavailable as refusal:
        _write([refusal])
    except BrokenPipeError:  # the agent is gone
        return


def become_urgent() -> bool:
    """Put this process before all ordinary ones; False where that is not allowed (CAP_SYS_NICE)."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except PermissionError:
        return False
    return True


def _pass_on(execs: Connection, others: Connection) -> None:
    """Wake for each exec; for births and ends only when it is time to pass something on, or nothing has begun to be."""
    reader, clock = ConnectorReader(execs, others), SystemClock()
    anything, urgent = select.poll(), select.poll()
    end = sys.stdin.fileno()
    for poll, awaited in ((anything, (execs, others, end)), (urgent, (execs, end))):
        for one in awaited:
            poll.register(one, select.POLLIN)
    due_us, spells, asked = clock.boot_us(), 0, 0
    while True:
        left_us = due_us - clock.boot_us()
        ready = urgent.poll(max(0, left_us) / 1000) if due_us else anything.poll()
        times = 0
        if any(descriptor == end for descriptor, _ in ready):
            times = len(os.read(end, select.PIPE_BUF))
            if not times:
                return
        reader.read()
        now_us = clock.boot_us()
        if not due_us and not times:
            due_us = now_us + PASSED_ON_US
        elif now_us >= due_us or times:
            frames: list[Frame] = list(reader.take())
            if reader.spells != spells:
                spells = reader.spells
                frames.append(Lost(spells))
            if times:
                asked += times
                frames.append(CaughtUp(asked))
            _write(frames)
            due_us = now_us + PASSED_ON_US if reader.holds_back else 0


def _write(frames: list[Frame]) -> None:
    """While the agent does not take them, this waits and the kernel keeps what happens: its buffer is the larger."""
    left = memoryview(b"".join(map(to_bytes, frames)))
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]


if __name__ == "__main__":
    main(int(sys.argv[1]))
