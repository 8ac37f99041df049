"""One program's holding of one device, as opens tell it, and which of several made a row. Pure.

In: opens, execs and exits by event; starts by the driver. Out: :class:`Holding`. What it was, a context or a
mere open, is decided in :mod:`gpuledger.watching.opens`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.model.readings import FinishedRow

STAMP_US = 5_000
"""The driver stamps a start after the open that made it. Events have the boot-time clock, and the offset of the two
clocks is known as well as this, however busy the machine."""

Process = tuple[int, int]
"""(pid, start_ticks)."""


@dataclass(slots=True, kw_only=True)
class Holding:
    """One program that opened a device.

    Args:
        number: which of the holdings of its process; counted up.
        opened_us, exited_us: first open, or when it was found holding it, and its exit or exec; None before.
        is_found: it was found holding the device: it opened it earlier.
        became: it did not exit: its process became another program.
        begun: its first context was dated by its open; a later one is not.
        listed: the driver has listed a context of it, alive or finished.
        lost: the driver is known to have lost rows when this one's would have been written.
        followed: a later context of its pid has its row, which freed this one's if there was one.
        cleared: the list was read after it ended and before another context of its pid did, and had no row of it.
        looks: looks since its end.
    """

    number: int
    opened_us: int
    exited_us: int | None
    is_found: bool
    became: bool = False
    begun: bool = False
    listed: bool = False
    lost: bool = False
    followed: bool = False
    cleared: bool = False
    looks: int = 0

    def can_have_made(self, row: FinishedRow) -> bool:
        """Whether a finished row of its pid is a context of it."""
        return isinstance(row.started_at_us, Missing) or self.can_begin(row.started_at_us)

    def can_begin(self, started_us: int) -> bool:
        """Whether a context of its pid with this start can be of it."""
        ended_us = started_us if self.exited_us is None else self.exited_us
        is_late_enough = self.is_found or self.opened_us - CLOCK_TOLERANCE_US <= started_us
        return is_late_enough and started_us <= ended_us + CLOCK_TOLERANCE_US

    def held_since(self, at_us: int) -> bool:
        """Whether it can have had the device open at that moment or later."""
        return self.exited_us is None or self.exited_us >= at_us


def where(opener: Holding) -> tuple[int, int]:
    """Its place among the holdings of a pid."""
    return (opener.opened_us, opener.number)


def maker(openers: Iterable[Holding], started_us: int) -> Holding | None:
    """Which holding of a pid a context with this start is of: the last that was opened by then, else the next."""
    fit = [one for one in openers if one.can_begin(started_us)]
    begun = [one for one in fit if one.opened_us <= started_us + STAMP_US]
    return max(begun, key=where) if begun else min(fit, key=where, default=None)
