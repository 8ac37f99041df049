"""Events for which a look should not wait for its time: a process that held a device becomes another program.

In: kernel events, by the thread that reads them. Out: an event to wait for. The driver keeps one finished row a
pid (gpu_acct.c): if the next program holds the device too, its end frees the row of the one before. A look in
between reads both. Without it the first is booked by events at best.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from gpuledger.sources.process_events import NVIDIA_MAJOR, Happened, ProcessEvent

LAST_DEVICE_MINOR = 253
"""Above it are ``nvidia-modeset`` (254) and ``nvidiactl`` (255), which are no device."""

MOST_HOLDERS = 65_536
"""Processes remembered that have a device open; beyond it none is urgent until they are gone."""


class UrgentEvents:
    """Notices what is urgent.

    Args:
        own_pid: the agent itself, which opens devices to look at them.
    """

    def __init__(self, *, own_pid: int) -> None:
        self.told = threading.Event()
        self._own_pid = own_pid
        self._holders: set[int] = set()

    def note(self, events: Iterable[ProcessEvent]) -> None:
        """Take up events, in the kernel's order."""
        holders = self._holders
        for event in events:
            happened = event.happened
            if happened is Happened.OPEN or happened is Happened.HOLD:
                is_device = event.major == NVIDIA_MAJOR and event.minor <= LAST_DEVICE_MINOR
                if is_device and event.pid != self._own_pid and len(holders) < MOST_HOLDERS:
                    holders.add(event.pid)
            elif event.pid in holders and happened is not Happened.FORK:
                holders.discard(event.pid)
                if happened is Happened.EXEC:
                    self.told.set()
