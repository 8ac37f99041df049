"""The only place that asks the time.

Everything else receives a :class:`Clock` or a number. Two clocks are read: the wall clock, which the
driver also stamps its rows with and which people set back; and the boot-time clock, which never
steps and goes on through suspend, so that a difference between the two shows a step.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the agent and the verbs need to know about time."""

    def now_us(self) -> int:
        """Wall clock: microseconds since the Unix epoch, UTC."""
        ...

    def boot_us(self) -> int:
        """Boot-time clock: microseconds since the machine started, suspend included."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait this long, signals or not (PEP 475): who must hear of one waits in short pieces."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_us(self) -> int:
        """Wall clock: microseconds since the Unix epoch, UTC."""
        return time.time_ns() // 1000

    def boot_us(self) -> int:
        """Boot-time clock: microseconds since the machine started, suspend included."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000

    def boot_ahead_ns(self) -> int:
        """What the boot-time clock is ahead of the monotonic one, nanoseconds: the time spent in suspend.

        Some kernel events carry the monotonic clock. The two are read one after the other: a little is added.
        """
        monotonic_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - monotonic_ns

    def sleep(self, seconds: float) -> None:
        """Wait this long."""
        time.sleep(seconds)


class FixedClock:
    """A clock that stands where it was put: ``--now`` and tests.

    Args:
        now_us: wall clock in microseconds UTC; ``advance`` and ``step`` move it.
    """

    def __init__(self, now_us: int, boot_us: int = 1_000_000_000) -> None:
        self._now_us = now_us
        self._boot_us = boot_us

    def now_us(self) -> int:
        """Wall clock: where it was put, and moved to since."""
        return self._now_us

    def boot_us(self) -> int:
        """Boot-time clock: where it was put, and advanced to since."""
        return self._boot_us

    def sleep(self, seconds: float) -> None:
        """Let that much time pass at once."""
        self.advance(int(seconds * 1_000_000))

    def advance(self, us: int) -> None:
        """Let time pass: both clocks move together."""
        self._now_us += us
        self._boot_us += us

    def step(self, us: int) -> None:
        """Set the wall clock by this much; the boot-time clock does not move."""
        self._now_us += us
