"""The process connector as a source of events: exec, fork and exit, read by a process beside the agent.

In: frames of :mod:`gpuledger.sources.connector_process`. Out: :class:`ProcessEvent`. Where eBPF can be had it
is better: it loses exactly what it says, and sees devices opened.
"""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress

from gpuledger.clock import SystemClock
from gpuledger.errors import Unavailable
from gpuledger.sources.connector_frames import CaughtUp, Frame, FrameBuffer, Lost, Ready
from gpuledger.sources.connector_socket import BUFFER_BYTES
from gpuledger.sources.process_events import ProcessEvent

PIPE_BYTES = 1024 * 1024
"""What events may fill while the agent is busy: some 2,000 processes; Linux gives anyone so much (pipe(7))."""

_BEGUN_WITHIN_S = 20.0
"""Python starts in 0.2 s on an idle machine; a busy one gets a hundred times as long."""
_ENDED_WITHIN_S = 5.0
_CAUGHT_UP_WITHIN_US = 5_000_000
"""It is before all ordinary processes, and answers within a millisecond; only one that was stopped takes so long."""


class ConnectorSource:
    """Events of the process connector; see :class:`gpuledger.sources.process_events.EventSource`.

    Args:
        buffer_bytes: how much the kernel may keep for us.

    Attributes:
        is_urgent: the reading has real-time priority.

    Raises:
        Unavailable: there is no connector here: ``connector-library``, ``connector-forbidden``,
            ``connector-namespace``, ``connector-unsupported`` or ``connector-ended``.
    """

    method = "connector"
    sees_opens = False
    counts_losses = False
    pause_s = 0.2

    def __init__(self, *, buffer_bytes: int = BUFFER_BYTES) -> None:
        self._spells = self._late = 0
        self._asked = self._caught_up = 0
        self._clock = SystemClock()
        self._frames = FrameBuffer()
        command = [sys.executable, "-P", "-m", "gpuledger.sources.connector_process", str(buffer_bytes)]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        except OSError as error:  # no more processes or files for this user, or no interpreter at its path
            told = f"the process that reads the kernel's process connector cannot be started: {error.strerror or error}"
            hint = "ulimit -u -n   (what this user may have); or: gpuledger agent --watch poll"
            raise Unavailable("connector-ended", told, hint=hint) from error
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()
        with suppress(PermissionError):  # this user has filled many pipes (pipe-user-pages-soft): 64 KiB then
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.set_blocking(self._pipe, False)
        self._poll = _poll_of(self._pipe)
        self._caught = _poll_of(self._pipe)  # the reading thread may be in `wait` with the other
        self._early: list[ProcessEvent] = []
        try:
            self.is_urgent = self._begun()
        except BaseException:
            self.close()
            raise

    def begin(self) -> None:
        """Nothing: whoever reads is urgent already, where that is allowed."""

    def wait(self, timeout_s: float) -> bool:
        """Whether events are there, after this long at most."""
        return bool(self._early or self._poll.poll(timeout_s * 1000))

    def catch_up(self) -> None:
        """Have all until now passed on; where that takes too long it counts as a spell of loss."""
        assert self._process.stdin is not None
        self._asked += 1
        try:
            os.write(self._process.stdin.fileno(), b"\n")
        except BrokenPipeError:
            raise self._ended("has ended") from None
        until_us = self._clock.boot_us() + _CAUGHT_UP_WITHIN_US
        while self._caught_up < self._asked:
            left_us = until_us - self._clock.boot_us()
            if left_us <= 0 or not self._caught.poll(left_us / 1000):
                self._late += 1
                return
            self._sort(self._received(), self._early)

    def read(self) -> Sequence[ProcessEvent]:
        """What has happened, up to some 20 ms ago, or since :meth:`catch_up`."""
        events, self._early = self._early, []
        self._sort(self._received(), events)
        return events

    def lost(self) -> int:
        """Spells in which events were lost."""
        return self._spells + self._late

    def snapshot(self) -> Sequence[ProcessEvent]:
        """Nothing: the connector knows of no device."""
        return ()

    def close(self) -> None:
        """End the reading."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(_ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _begun(self) -> bool:
        """Wait for the first word: that it reads, and whether urgently, or why it cannot."""
        while self._poll.poll(_BEGUN_WITHIN_S * 1000):
            if frames := self._received():
                first, *others = frames
                if isinstance(first, Unavailable):
                    raise first
                assert isinstance(first, Ready)
                self._sort(others, self._early)
                return first.is_urgent
        raise self._ended("does not answer")

    def _sort(self, frames: Iterable[Frame], events: list[ProcessEvent]) -> None:
        for frame in frames:
            if isinstance(frame, ProcessEvent):
                events.append(frame)
            elif isinstance(frame, Lost):
                self._spells = frame.spells
            elif isinstance(frame, CaughtUp):
                self._caught_up = frame.times

    def _received(self) -> list[Frame]:
        frames: list[Frame] = []
        while True:
            try:
                chunk = os.read(self._pipe, PIPE_BYTES)
            except BlockingIOError:
                return frames
            if not chunk and frames:  # what it said last is heard first
                return frames
            if not chunk:
                raise self._ended("has ended")
            frames.extend(self._frames.feed(chunk))

    def _ended(self, what: str) -> Unavailable:
        return Unavailable(
            "connector-ended",
            f"the process that reads the kernel's process connector {what} (pid {self._process.pid})",
            hint="start the agent anew; or: gpuledger agent --watch poll",
        )


def _poll_of(descriptor: int) -> select.poll:
    made = select.poll()
    made.register(descriptor, select.POLLIN)
    return made
