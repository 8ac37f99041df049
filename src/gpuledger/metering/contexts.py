"""Contexts: who held which device from when to when. The interval that all views of processes share.

In: :class:`Evidence`, any order, duplicates allowed. Out: contexts, sorted, each with a subject or the
cause why it has none. What belongs together is decided in :mod:`gpuledger.metering.looks`, names in
:mod:`gpuledger.metering.naming`, causes in :mod:`gpuledger.metering.causes`.

``identity-unreadable`` needs a look that saw the very context alive; the looks of an import never
read ``/proc``. What nobody saw has its cause from the watches.

Under MIG the driver keeps no accounting, so contexts on an instance are always observed ones; rows of
the GPU above them are about other times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from gpuledger.metering.causes import POLLS_TO_MEET, UNWATCHED, NamingWatch, naming_watches
from gpuledger.metering.looks import stints_of
from gpuledger.metering.naming import Name, Names, unnamed
from gpuledger.metering.settled import started_stint
from gpuledger.metering.stints import NO_MEMORY, NO_START, Stint
from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.model.quantities import Context, Evidence
from gpuledger.model.reasons import Cause
from gpuledger.model.rows import DriverRecord, Sighting

_IMPORT = "import"
"""The method of rows that a dump gave: its reader looked once, and not at ``/proc``."""


def contexts(evidence: Evidence) -> list[Context]:
    """Every context that the evidence tells of, sorted by host, device, time and pid.

    A context seen alive and settled later is one; a row from two sources is one. A settled context
    lasts exactly as long as the driver says.
    """
    found = [_context(stint, name) for stint, name in named_stints(evidence)]
    found.sort(key=_order)
    return found


def named_stints(evidence: Evidence) -> Iterator[tuple[Stint, Name]]:
    """What :func:`contexts` is made of, unsorted: cheaper where only sums are asked."""
    watches = naming_watches(evidence.watches)

    def polled_us(host: str, at_us: int) -> int:
        return watches.get(host, UNWATCHED).polled_us(at_us)

    names = Names(evidence.identities, evidence.sightings, polled_us)
    for stint in _stints(evidence, names):
        if stint.sightings:
            yield stint, _seen_name(stint, names, watches)
        elif stint.started_us is not None:
            since_us, until_us = stint.spans[0]
            name = names.at(stint.host, stint.pid, since_us, until_us)
            yield stint, name or unnamed(watches.get(stint.host, UNWATCHED).cause(since_us, until_us))
        else:
            yield stint, _sometime_name(stint, names, watches) or unnamed(Cause.NO_START_TIME)


def evidence_of(stint: Stint, name: Name) -> list[str]:
    """References of the rows behind a context; a row given twice stands twice."""
    refs = [row.ref for row in stint.rows]
    if stint.sightings:
        refs += [look.ref for look in stint.sightings]
    if name.ref:
        refs.append(name.ref)
    return refs


def _stints(evidence: Evidence, names: Names) -> Iterator[Stint]:
    """The stints of every pid on every device."""
    rows: dict[tuple[str, str, int], list[DriverRecord]] = {}
    for row in evidence.driver_records:
        rows.setdefault((row.host, row.device, row.pid), []).append(row)
    looks: dict[tuple[str, str, int], list[Sighting]] = {}
    for sighting in evidence.sightings:
        looks.setdefault((sighting.host, sighting.device, sighting.pid), []).append(sighting)
    for key, same in rows.items():
        start_us = same[0].started_at_us
        if len(same) == 1 and key not in looks and not isinstance(start_us, Missing):
            yield started_stint(start_us, same)  # by far the most
        else:
            yield from stints_of(same, looks.get(key, ()), names)
    for key, seen in looks.items():
        if key not in rows:
            yield from stints_of((), seen, names)


def _seen_name(stint: Stint, names: Names, watches: Mapping[str, NamingWatch]) -> Name:
    """The name of a context that looks belong to."""
    host, pid = stint.host, stint.pid
    since_us, until_us = stint.span
    seen = stint.processes
    if not stint.settled:
        return _living_name(stint, seen, names, watches)
    found = names.proven(host, pid, seen, since_us)
    if found is None and seen and not names.knows_any(host, pid, seen):
        found = names.claimed(host, pid, since_us, until_us) or unnamed(Cause.IDENTITY_UNREADABLE)
    if stint.started_us is None:
        return found or _sometime_name(stint, names, watches) or unnamed(Cause.NO_START_TIME)
    return found or names.at(host, pid, since_us, until_us) or unnamed(_seen_cause(stint, watches))


def _seen_cause(stint: Stint, watches: Mapping[str, NamingWatch]) -> Cause:
    """Why a settled context with a start that looks belong to has no name."""
    if all(look.method == _IMPORT for look in stint.sightings):
        return watches.get(stint.host, UNWATCHED).cause(*stint.span)
    # a process that was read and yet gives no name contradicts the start: another one began the context
    return Cause.PID_AMBIGUOUS if stint.processes else Cause.IDENTITY_UNREADABLE


def _sometime_name(stint: Stint, names: Names, watches: Mapping[str, NamingWatch]) -> Name | None:
    """The name of a context without a start."""
    since_us = stint.span[0]
    read_us = stint.read_us if stint.settled else stint.last_look_us
    lasted_us = _lasted_us(stint, watches)
    length_us = stint.context_ms * 1000
    return names.sometime(stint.host, stint.pid, since_us, read_us, length_us=length_us, lasted_us=lasted_us)


def _lasted_us(stint: Stint, watches: Mapping[str, NamingWatch]) -> int | None:
    """By when no death can have been that of a context without a start; ``None`` where nothing says.

    A look that sees a process gone reads the list of finished rows too, so the row of that process is
    first read by that look or the next one. A row first read two intervals (2 s at least) later is
    another process's. It needs no watch rows of that time, so that it does not depend on how much of
    them is at hand. A row that only an import read can be as old as the driver's load. And what a look
    saw alive had not died by then.
    """
    known: list[int] = []
    reads = [row.read_at_us for row in stint.rows if row.method != _IMPORT]
    if reads:
        read_us = min(reads)
        interval_us = watches.get(stint.host, UNWATCHED).interval_us(read_us)
        known.append(min(stint.read_us, read_us - max(CLOCK_TOLERANCE_US, POLLS_TO_MEET * interval_us)))
    if stint.sightings:
        known.append(stint.last_look_us - CLOCK_TOLERANCE_US)
    return max(known, default=None)


def _living_name(
    stint: Stint, seen: Collection[tuple[str, int]], names: Names, watches: Mapping[str, NamingWatch]
) -> Name:
    """The name of a context that the driver has not settled."""
    host, pid = stint.host, stint.pid
    since_us, until_us = stint.span
    if seen:
        process = min(seen)
        found = names.of_process(host, pid, process, since_us) or names.claimed(host, pid, since_us, until_us)
        return found or unnamed(Cause.IDENTITY_UNREADABLE, process)
    found = names.at(host, pid, since_us, until_us)
    if found is None and all(look.method == _IMPORT for look in stint.sightings):
        found = _sometime_name(stint, names, watches)
    return found or unnamed(Cause.IDENTITY_UNREADABLE)


def _context(stint: Stint, name: Name) -> Context:
    last_seen_us = stint.spans[-1][1]
    looks = stint.sightings
    peaks = [row.peak_memory_mib for row in stint.rows if not isinstance(row.peak_memory_mib, Missing)]
    if looks:
        peaks += [look.peak_memory_mib for look in looks if not isinstance(look.peak_memory_mib, Missing)]
        if not stint.settled:
            last_seen_us = stint.last_look_us
    return Context(
        host=stint.host,
        device=stint.device,
        pid=stint.pid,
        subject=name.subject,
        process=name.process,
        spans=stint.spans,
        settled=stint.settled,
        context_ms=stint.context_ms,
        open=not stint.settled and not stint.over,
        started_at_us=NO_START if stint.started_us is None else stint.started_us,
        placed=stint.placed,
        accounted="yes" if stint.settled else _accounted(looks),
        peak_memory_mib=max(peaks) if peaks else NO_MEMORY,
        last_seen_us=last_seen_us,
        evidence=tuple(sorted(set(evidence_of(stint, name)))),
    )


def _accounted(looks: Iterable[Sighting]) -> str:
    words = {look.accounted for look in looks}
    return "yes" if "yes" in words else "no" if "no" in words else "unknown"


def _order(context: Context) -> tuple[object, ...]:
    peak = -1 if isinstance(context.peak_memory_mib, Missing) else context.peak_memory_mib
    return (
        context.host, context.device, context.spans, context.pid, context.context_ms, context.process, peak,
        context.evidence,
    )  # fmt: skip
