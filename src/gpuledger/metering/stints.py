"""The word between rows and contexts: one holding of one device by one pid, before it has a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from gpuledger.metering.spans import Span
from gpuledger.model.missing import Missing
from gpuledger.model.rows import DriverRecord, Sighting

SAME_START_US = 1_000
"""How far two readings of the driver's own start of one context may differ: it is stamped once and kept."""

STAMP_US = 5_000
"""How long before an open by event the driver can seem to stamp the start that it made."""

NO_START = Missing("the driver gave no start time")
"""The start of every context without one: one value, so that equal evidence gives equal contexts."""

NO_MEMORY = Missing("device memory was never readable")
"""The peak of every context whose memory nobody could read."""

ProcessKey = tuple[str, str, int, int]
"""(host, boot_id, pid, start_ticks): one process, told apart over pid reuse and reboots."""


class Lifetimes(Protocol):
    """What identities and looks prove of processes."""

    def born(self, key: ProcessKey) -> int | None:
        """When a process started; ``None`` where no identity says."""
        ...

    def died(self, key: ProcessKey) -> bool:
        """Whether a look found the process gone."""
        ...


@dataclass(slots=True)
class Stint:
    """One holding of one device by one pid.

    Args:
        host, device, pid: as in a context.
        started_us: the driver's start; ``None`` where it gave none.
        spans: sorted, disjoint; one span where ``settled`` or where the driver's start is known.
        settled: the driver has settled it.
        context_ms: the driver's figure where settled, else the length of the spans.
        placed: ``driver``, ``looks`` or ``latest``.
        rows: every driver row that says this, twins from other sources included.
        sightings: every look that belongs to it.
        read_us: for a settled stint the earliest reading of it: it had ended by then.
        over: a living context of the past: something proves that it has ended.
    """

    host: str
    device: str
    pid: int
    started_us: int | None
    spans: tuple[Span, ...]
    settled: bool
    context_ms: int
    placed: str
    rows: list[DriverRecord]
    sightings: list[Sighting] = field(default_factory=list)
    read_us: int = 0
    over: bool = False

    @property
    def span(self) -> Span:
        """From its first to its last moment."""
        return (self.spans[0][0], self.spans[-1][1])

    @property
    def last_look_us(self) -> int:
        """The last look that saw it alive. Needs a sighting."""
        return max(sighting.until_us for sighting in self.sightings)

    @property
    def processes(self) -> set[tuple[str, int]]:
        """(boot_id, start_ticks) of the processes its looks saw; empty where ``/proc`` was not readable."""
        return {(look.boot_id, look.start_ticks) for look in self.sightings if look.start_ticks}

    @property
    def missed_us(self) -> int | None:
        """The last look that missed it; ``None`` while none did."""
        return max((s.gone_at_us for s in self.sightings if not isinstance(s.gone_at_us, Missing)), default=None)


def look_span(sighting: Sighting) -> Span:
    """The span of a sighting. A clock set back inside it leaves no length, only its last look."""
    return (min(sighting.since_us, sighting.until_us), sighting.until_us)
