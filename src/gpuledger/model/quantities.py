"""What measuring makes of evidence: contexts, hourly quantities, and coverage."""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.model.missing import Missing
from gpuledger.model.rows import DeviceEvent, DriverRecord, ProcessIdentity, Sighting, Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence rows that touch one window, in any order, duplicates allowed.

    ``identities`` must hold every identity of the pids that the other rows name (on their hosts), and
    ``watches`` the spans that touch the window plus, for each host, the first ``process`` watch ever.
    A sighting touches every moment from its context's driver start (its own start where there is none)
    to its end; a driver row without a start every moment before it was read. More rows than needed
    change nothing that is known, so a margin of an hour on both sides is good practice: it holds the
    looks that prove when a pid's earlier life ended, and the watches of contexts that reach out.
    """

    driver_records: tuple[DriverRecord, ...] = ()
    sightings: tuple[Sighting, ...] = ()
    identities: tuple[ProcessIdentity, ...] = ()
    watches: tuple[Watch, ...] = ()
    devices: tuple[DeviceEvent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One process on one device from its first open to its last close: the process side's interval.

    Args:
        host, device, pid: where and who by number.
        subject: key of the identity text, or ``unattributed:CAUSE``.
        process: (boot_id, start_ticks) of the identity, or of the process that was seen but could not be
            named; ("", 0) where neither is known.
        spans: half-open spans in microseconds UTC, sorted, disjoint. One span for a settled context or
            one whose driver start is known; several where looking was interrupted.
        settled: the driver has settled it; its duration is then exactly ``context_ms``.
        context_ms: for a settled context the driver's figure; else the spans' length in whole ms.
        open: not settled and not known to be gone.
        started_at_us: the driver's start; Missing when it gave none.
        placed: how its place in time is known: ``driver`` (start from the driver), ``looks`` (first and
            last look), ``latest`` (no start time: the latest span it can have had).
        accounted: ``yes``, ``no`` (never-accounted), ``unknown``.
        peak_memory_mib: highest known; Missing when never readable.
        last_seen_us: last look that saw it alive; for a settled context its end.
        evidence: references of the rows behind it, sorted.
    """

    host: str
    device: str
    pid: int
    subject: str
    process: tuple[str, int]
    spans: tuple[tuple[int, int], ...]
    settled: bool
    context_ms: int
    open: bool
    started_at_us: int | Missing
    placed: str
    accounted: str
    peak_memory_mib: int | Missing
    last_seen_us: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """An amount of one meter, of one subject, on one device, in one span of at most an hour.

    Args:
        meter: name of the meter.
        hour_us: start of the UTC hour it lies in.
        host, device, subject: as in a usage record.
        context: ``settled``, ``gone``, ``PID@START_US``, ``PID@?TICKS`` or ``sampled``, as in a usage record.
        quantity: whole units of the meter, 0 or more.
        evidence: references of the rows behind it.
    """

    meter: str
    hour_us: int
    host: str
    device: str
    subject: str
    context: str
    quantity: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """A span of one device, and whether it was watched.

    Args:
        host, device: the physical GPU.
        since_us, until_us: half-open; spans of one device follow each other and fill the window.
        reason: an ``UnknownReason``, or empty when watched.
        idle: watched, and proven that nothing ran.
    """

    host: str
    device: str
    since_us: int
    until_us: int
    reason: str
    idle: bool = False
