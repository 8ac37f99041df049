"""The answer to "what can the ledger not see": what ``blind`` computes and every rendering shows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.model.reserved import ReservedGap
from gpuledger.model.usage import (
    NeverAccounted,
    SeenOnce,
    UnattributedLine,
    UnknownSize,
    UnknownSpan,
    UnsettledRow,
    Watched,
    known_sum,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """The chance that polling names a job of one length: a poll must fall into its life.

    Args:
        length_ms: how long the job holds the device.
        interval_ms: time between two polls.
        chance: exact, 0 to 1.
    """

    length_ms: int
    interval_ms: int
    chance: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindReport:
    """What cannot be seen between two moments, with sizes and reasons.

    Args:
        since_us, until_us: the window, half-open, microseconds UTC.
        total_ms: all context time of the window, named or not; Missing when nothing is known.
        sizes: UNKNOWN time by reason, largest first.
        unknown: its spans, by host, device and time.
        watched: device-seconds.
        nameless: time of hosts in which names can be missing, by reason, largest first.
        named: host-seconds in which names were taken.
        unattributed: context ms by cause, most first.
        unsettled, never_accounted: as in usage.
        seen_once: contexts without a length, by service, most first.
        chances: by interval, then length; empty when nothing polled.
        looked_once: whether some look had no interval, so that no chance can be given for it.
        problems: what was imperfect.
        reserved: what reservations do not tell, largest first.
        is_told: whether any lifecycle transition is known.
    """

    since_us: int
    until_us: int
    total_ms: int | Missing
    sizes: tuple[UnknownSize, ...]
    unknown: tuple[UnknownSpan, ...]
    watched: Watched
    nameless: tuple[UnknownSize, ...]
    named: Watched
    unattributed: tuple[UnattributedLine, ...]
    unsettled: tuple[UnsettledRow, ...]
    never_accounted: tuple[NeverAccounted, ...]
    seen_once: tuple[SeenOnce, ...]
    chances: tuple[Chance, ...]
    looked_once: bool
    problems: tuple[Problem, ...]
    reserved: tuple[ReservedGap, ...] = ()
    is_told: bool = False

    @property
    def unattributed_ms(self) -> int | Missing:
        """Sum over the causes; Missing when nothing is known."""
        if isinstance(self.total_ms, Missing):
            return self.total_ms
        return sum(line.quantity for line in self.unattributed)

    @property
    def unsettled_ms(self) -> int | Missing:
        """Sum of what is known of the open contexts."""
        return known_sum(tuple(row.quantity for row in self.unsettled), answered=not isinstance(self.total_ms, Missing))
