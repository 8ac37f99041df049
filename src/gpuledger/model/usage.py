"""The answer to "who used how much": what ``usage`` computes and every rendering shows."""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem

BY: tuple[str, ...] = (
    "service", "user", "team", "project", "workload", "class", "device", "host", "host-owner",
    "hour", "day", "month", "subject",
)  # fmt: skip
"""What usage can be grouped by, in the order of the reference."""

TIME_BY: tuple[str, ...] = ("hour", "day", "month")
"""The groupings that are times; their rows are in the order of time."""

NO_NAME = "-"
"""The one word for "evidence and policy name none": no team, no project, no workload, no owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """What one group used. All quantities in the meter's unit.

    Args:
        key: the group, in the order of ``by``.
        quantity: settled + observed, or sampled.
        settled: the part that the driver has settled; 0 for sampled meters.
        observed: the part known from living processes only; 0 for sampled meters.
        provisional: the part of hours not recorded yet.
        busy_ms: SM activity beside context time; Missing where none was sampled or another meter is asked.
    """

    key: tuple[str, ...]
    quantity: int
    settled: int
    observed: int
    provisional: int
    busy_ms: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class UnattributedLine:
    """What no name could be given to, of one cause. Quantities as in :class:`UsageRow`.

    Args:
        cause: a ``Cause``.
        meaning: its sentence.
    """

    cause: str
    meaning: str
    quantity: int
    settled: int
    observed: int
    provisional: int
    busy_ms: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsettledRow:
    """A context still open: its time is in the rows already, and listed so that it is seen.

    Args:
        service: by policy, or ``unattributed:CAUSE``.
        pid, host, device: the process and where.
        since_us: start of the context, microseconds UTC; Missing when nothing gives it.
        quantity: ms of it inside the window; Missing when it cannot be known.
    """

    service: str
    pid: int
    host: str
    device: str
    since_us: int | Missing
    quantity: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverAccounted:
    """A living process that the driver's accounting does not hold: it opened the device before accounting was on.

    Args:
        service, subject, user: its names.
        pid, host, device: the process and where.
        uptime_ms: age of the process when last seen.
        memory_mib: memory held.
        quantity: ms observed inside the window, from first sight.
    """

    service: str
    subject: str
    user: str
    pid: int
    host: str
    device: str
    uptime_ms: int | Missing
    memory_mib: int | Missing
    quantity: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenOnce:
    """Contexts that one look saw alive and the next one missed, where the driver told no start and no end.

    They did hold a device, for less than two polls; for how long is UNKNOWN, so they have no quantity.

    Args:
        service: by policy, or ``unattributed:CAUSE``.
        contexts: how many.
    """

    service: str
    contexts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownSpan:
    """Time on one device that says nothing about its use. Time, not amount: never turned into one.

    Args:
        reason: an ``UnknownReason``.
        host, device: the physical GPU.
        since_us, until_us: half-open, microseconds UTC.
        seconds: its whole seconds, rounded so that watched and unknown add up to the window.
        detail: what the looks said beside their reason, such as whose open makes an empty list no proof; only
            ``blind`` asks for it.
    """

    reason: str
    host: str
    device: str
    since_us: int
    until_us: int
    seconds: int
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownSize:
    """All UNKNOWN time of one reason.

    Args:
        reason: an ``UnknownReason``; a status of a newer version keeps its own word.
        seconds: device-seconds; of naming host-seconds.
        spans, devices: how many of each; of naming hosts.
        meaning, command: the sentence and what helps.
    """

    reason: str
    seconds: int
    spans: int
    devices: int
    meaning: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """How much of the window was watched, in device-seconds: ``seconds`` of ``of``.

    ``idle`` of those ``seconds`` are proven idle: 0 with evidence, not for want of it.
    """

    seconds: int
    of: int
    idle: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """Who used how much of one meter between two moments, with the size of what cannot be seen.

    Args:
        meter, unit: the meter's name and the unit of every quantity.
        note: the meter's sentence, which every view prints.
        sampled: whether the meter is known by samples only; else quantities are settled + observed.
        since_us, until_us: the window, half-open, microseconds UTC.
        by: groupings, out of :data:`BY`.
        rows: most first; in the order of time where a grouping is a time.
        unattributed: by cause, most first. Never in the rows.
        unsettled: open contexts, most first; empty for sampled meters.
        unknown: spans, by host, device and time.
        sizes: the same time by reason, largest first.
        watched: device-seconds.
        never_accounted: by host, device and pid.
        problems: what was imperfect.
        seen_once: contexts without a length, by service, most first.
        unsampled: contexts were alive, and no sample of this meter covers any of them.
    """

    meter: str
    unit: str
    note: str
    sampled: bool
    since_us: int
    until_us: int
    by: tuple[str, ...]
    rows: tuple[UsageRow, ...]
    unattributed: tuple[UnattributedLine, ...]
    unsettled: tuple[UnsettledRow, ...]
    unknown: tuple[UnknownSpan, ...]
    sizes: tuple[UnknownSize, ...]
    watched: Watched
    never_accounted: tuple[NeverAccounted, ...]
    problems: tuple[Problem, ...]
    seen_once: tuple[SeenOnce, ...] = ()
    unsampled: bool = False

    @property
    def answered(self) -> bool:
        """Whether anything is known at all: a row, or a second that was watched (and sampled, for such a meter)."""
        if self.unsampled and not (self.rows or self.unattributed):
            return False
        measured = any(not isinstance(row.quantity, Missing) for row in self.unsettled)
        return bool(self.rows or self.unattributed or measured or self.watched.seconds)

    @property
    def unattributed_quantity(self) -> int | Missing:
        """Sum over the causes; Missing when nothing is known, so that no zero is printed without evidence."""
        if not self.answered:
            return self._nothing
        return sum(line.quantity for line in self.unattributed)

    @property
    def total(self) -> int | Missing:
        """Rows + unattributed, exactly; Missing when nothing is known."""
        if not self.answered:
            return self._nothing
        return sum(row.quantity for row in self.rows) + sum(line.quantity for line in self.unattributed)

    @property
    def _nothing(self) -> Missing:
        return _NOT_SAMPLED if self.unsampled else _NOTHING_KNOWN

    @property
    def unsettled_quantity(self) -> int | Missing:
        """Sum of what is known of the open contexts; Missing when of none of them anything is."""
        return known_sum(tuple(row.quantity for row in self.unsettled), answered=self.answered)

    @property
    def provisional(self) -> int:
        """The part of the total that lies in hours not recorded yet."""
        return sum(row.provisional for row in self.rows) + sum(line.provisional for line in self.unattributed)


_NOT_SAMPLED = Missing("contexts were alive, and no sample of this meter covers them")
_NOTHING_KNOWN = Missing("no row at all, and the time was not watched")


def known_sum(quantities: tuple[int | Missing, ...], *, answered: bool = True) -> int | Missing:
    """The sum of the known ones; Missing when there are some and none is known, or when nothing is known at all."""
    known = [quantity for quantity in quantities if not isinstance(quantity, Missing)]
    if quantities and not known:
        return Missing("no open context has a known start")
    return sum(known) if quantities or answered else _NOTHING_KNOWN
