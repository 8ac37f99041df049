"""Reserved time: what the metering rule gives for an hour, what a pass makes of it, and what it cannot book.

Pure. Amounts are microseconds until they are rounded down, once, to the whole seconds of a record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from gpuledger.model.lifecycle import CPU
from gpuledger.model.meters import CPU_RESERVED, GPU_RESERVED, MIG_MEMORY, Meter
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.reasons import ReservedReason
from gpuledger.model.rows import UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import PlacementRow

RESERVED = "reserved"
"""Context of every record of reserved time: what tells it from those of processes."""

PLACED = "placement:"
"""Prefix of a record's device: a record of reserved time names its placement, and that the devices."""

_PROFILE = re.compile(r"/(?:\d+c\.)?\d+g\.(\d+)gb(?:\+.*)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedTime:
    """What one workload held on one placement in one hour, or in its beginning.

    Args:
        workload: the control plane's id.
        hour_us: start of the UTC hour.
        placement: key of the placement; empty where no event had named one.
        subject: key of the identity text of the admission.
        source: who says so; of several the one of the first interval.
        is_declared: whether an importer declares it as history.
        amount_us: microseconds.
        evidence: references of the events behind it.
    """

    workload: str
    hour_us: int
    placement: str
    subject: str
    source: str
    is_declared: bool
    amount_us: int
    evidence: tuple[str, ...]

    @property
    def seconds(self) -> int:
        """Whole seconds, rounded down."""
        return self.amount_us // SECOND_US


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A recorded hour that its events now contradict, and which is final: booked by ``correct`` alone.

    Args:
        meter, hour_us, host, device, subject: the key of the record.
        workload: whose it is.
        recorded, derived: seconds as they stand, and as the events say.
    """

    meter: str
    hour_us: int
    host: str
    device: str
    subject: str
    workload: str
    recorded: int
    derived: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """What a pass makes of reserved time.

    Args:
        records, corrections: rows to append.
        late: differences in final hours, which it does not book.
    """

    records: tuple[UsageRecord, ...] = ()
    corrections: tuple[UsageCorrection, ...] = ()
    late: tuple[Difference, ...] = ()


def meters_of(class_name: str) -> tuple[Meter, ...]:
    """The meters that count time on a class: ``cpu`` its own, a MIG profile two, of which one is priced."""
    if class_name == CPU:
        return (CPU_RESERVED,)
    return (GPU_RESERVED, MIG_MEMORY) if _PROFILE.search(class_name) else (GPU_RESERVED,)


def factor(meter: str, placement: PlacementRow) -> Fraction:
    """What a second on a placement counts: device-seconds, seconds on ``cpu``, GiB-seconds of MIG memory."""
    if meter == CPU_RESERVED.name:
        return Fraction(1)
    held = placement.count * Fraction(placement.share_num, placement.share_den)
    if meter == MIG_MEMORY.name:
        profile = _PROFILE.search(placement.class_name)
        return held * int(profile[1]) if profile else Fraction(0)
    return held


RESERVED_BY: tuple[str, ...] = (
    "user", "team", "project", "workload", "service", "class", "region", "device", "host", "host-owner",
    "hour", "day", "month", "subject",
)  # fmt: skip
"""What reserved time can be grouped by, beside ``label:NAME`` for each label of a transition."""

LABEL = "label:"
"""Prefix of a grouping by the value of one label."""

PRODUCTS: dict[str, tuple[str, int]] = {
    GPU_RESERVED.name: ("device-seconds", 1),
    CPU_RESERVED.name: ("seconds", 1),
    MIG_MEMORY.name: ("GiB-hours", 3600),
}
"""Of each meter the unit of its product, and how many of :func:`factor`'s seconds make one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedAmount:
    """Seconds of one subject on one placement in one span: recorded, or derived at once.

    Args:
        subject: key of the identity text.
        placement: what was held.
        at_us: start of the hour, the day or the window that it stands for.
        seconds: signed where a correction takes away.
        provisional: whether it is of hours not recorded yet.
    """

    subject: str
    placement: PlacementRow
    at_us: int
    seconds: int
    provisional: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedTime:
    """A physical device that was known on a machine, over a span.

    Args:
        host, device, class_name: which.
        since_us, until_us: half-open, microseconds UTC.
    """

    host: str
    device: str
    class_name: str
    since_us: int
    until_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedRow:
    """What one group held.

    Args:
        key: the group, in the order of ``by``.
        seconds: whole seconds, whatever was held.
        quantity: the product, in the report's unit.
        provisional: the part of the product that lies in hours not recorded yet.
        owned: the product of the devices known there over the same time; Missing where none are.
    """

    key: tuple[str, ...]
    seconds: int
    quantity: Fraction
    provisional: Fraction
    owned: Fraction | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedGap:
    """One thing that reservations do not tell, sized.

    Args:
        reason: what kind.
        what: the workload, the source, or the device.
        seconds: its size in whole seconds; signed for a difference that only ``correct`` books.
        since_us, until_us: between which moments it lies.
        detail: in a clause.
    """

    reason: ReservedReason
    what: str
    seconds: int
    since_us: int
    until_us: int
    detail: str


NO_TRANSITION = Missing("no lifecycle transition is known")
"""Of the moment of the first, where there is none."""

NOT_TOLD = Missing("no lifecycle transition is known, so nobody told what was reserved")
"""Why there is no figure at all."""

OWNERS_HOLD = Missing("owners hold for all of it, or none were asked for or applied")
"""Why no moment is told from which owners hold."""

NOT_OWNED = Missing("no device is known there, or the grouping is not one of places")
"""Why nothing stands beside a reserved amount."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedReport:
    """Who held how much between two moments.

    Args:
        meter, unit, note: the meter, the unit of its product, the meter's sentence.
        since_us, until_us: the window, half-open, microseconds UTC.
        by: groupings, out of :data:`RESERVED_BY`, or ``label:NAME``.
        rows: most first; in the order of time where a grouping is a time.
        gaps: what reservations do not tell in this window, largest first.
        told: whether any transition is known at all.
        idle: groups of places with known devices of which nothing was reserved, and their device-seconds, most first.
        owned: device-seconds of all known devices, reserved or not; Missing where none is, or groups are no places.
        owners_from_us: from when on the first policy says whose things are; Missing where it does for the whole window.
        looked_for_gaps: whether anybody looked for gaps; else that there are none is not known.
    """

    meter: str
    unit: str
    note: str
    since_us: int
    until_us: int
    by: tuple[str, ...]
    rows: tuple[ReservedRow, ...]
    gaps: tuple[ReservedGap, ...]
    told: bool
    idle: tuple[tuple[tuple[str, ...], Fraction], ...] = ()
    owned: Fraction | Missing = NOT_OWNED
    owners_from_us: int | Missing = OWNERS_HOLD
    looked_for_gaps: bool = True

    @property
    def answered(self) -> bool:
        """Whether anything is known: without one transition nothing held is no zero."""
        return self.told

    @property
    def total(self) -> Fraction | Missing:
        """The sum of the rows; Missing where no transition is known."""
        return sum((row.quantity for row in self.rows), Fraction(0)) if self.told else NOT_TOLD

    @property
    def provisional(self) -> Fraction:
        """The part of the total that lies in hours not recorded yet."""
        return sum((row.provisional for row in self.rows), Fraction(0))
