"""What accounting counts: amounts of a meter, and contexts still open. An operation brings them, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from gpuledger.model.meters import METERS, Grade, Meter
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US

METERS_BY_NAME: dict[str, Meter] = {meter.name: meter for meter in METERS}
"""Every meter of this version by its name."""

_GRADED = frozenset(meter.name for meter in METERS if Grade.SETTLED in meter.grades)


class Grain(StrEnum):
    """The span that one amount stands for: it lies within one UTC hour, one UTC day, or anywhere in the window."""

    HOUR = "hour"
    DAY = "day"
    WINDOW = "window"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What one subject used of one meter on one device in one span: records, corrections and derived hours alike.

    Args:
        meter: name of the meter.
        subject: key of an identity text, or ``unattributed:CAUSE``.
        host, device: where.
        at_us: start of the hour, the day, or the window, microseconds UTC, by ``grain``.
        grain: the span it stands for; as coarse as :func:`grain_for` allows.
        quantity: whole units of the meter; negative for a correction that takes away.
        settled: the part of it that the driver has settled; 0 for sampled meters.
        observed: the rest of it; 0 for sampled meters.
        provisional: whether it is of hours not recorded yet.
    """

    meter: str
    subject: str
    host: str
    device: str
    at_us: int
    grain: Grain = Grain.HOUR
    quantity: int
    settled: int = 0
    observed: int = 0
    provisional: bool = False

    def __post_init__(self) -> None:
        if self.settled + self.observed != (self.quantity if self.meter in _GRADED else 0):
            raise ValueError(
                f"{self.meter}: settled {self.settled} and observed {self.observed} do not make {self.quantity}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenContext:
    """A context that the driver has not settled and that is not known to be gone.

    Args:
        host, device, pid: the process and where.
        subject: key of an identity text, or ``unattributed:CAUSE``.
        since_us: start of the context; Missing when neither the driver nor a look gives one.
        quantity: ms of it inside the window; Missing when it cannot be known.
        accounted: ``yes``, ``no`` (never-accounted) or ``unknown``.
        process_started_at_us: start of the process; Missing when not read.
        seen_at_us: last look that saw it alive.
        memory_mib: memory held; Missing when not readable.
    """

    host: str
    device: str
    pid: int
    subject: str
    since_us: int | Missing
    quantity: int | Missing
    accounted: str
    process_started_at_us: int | Missing
    seen_at_us: int
    memory_mib: int | Missing


def grain_for(*, by: Iterable[str], changes_us: Iterable[int], since_us: int, until_us: int) -> Grain:
    """The coarsest grain in which amounts may be added up before they are named.

    Args:
        by: the groupings asked for.
        changes_us: moments at which owners change (``Naming.changes_us``).
        since_us, until_us: the window.
    """
    asked = set(by)
    owned = asked & {"team", "project", "host-owner"}
    inside = [change_us for change_us in changes_us if owned and since_us < change_us < until_us]
    if "hour" in asked or any(change_us % DAY_US for change_us in inside):
        return Grain.HOUR
    return Grain.DAY if inside or asked & {"day", "month"} else Grain.WINDOW
