"""Reads from the ledger the evidence that decides a window: no more than that, and no less.

What a derived hour says must not depend on how the window was cut. So beside the rows that touch the
window this loads everything that names them: the identities of every process that was alive then, as
far as anything proves it, and the sightings of each settled context over its whole life.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TypeVar

from gpuledger.ledger.store import Ledger
from gpuledger.model.meters import RESERVED_METERS
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, hour_floor
from gpuledger.model.quantities import Evidence
from gpuledger.model.rows import (
    DriverRecord,
    Pass,
    ProcessIdentity,
    Sighting,
    UsageCorrection,
    UsageRecord,
    Watch,
)

_RESERVED = frozenset(meter.name for meter in RESERVED_METERS)
_STARTLESS = ("nvidia-smi", "import")
_MARGIN_US = HOUR_US
"""Sightings this long before and after a settled context can still decide its name: a pid's earlier life."""


def load_evidence(ledger: Ledger, *, since_us: int, until_us: int, upto: Mapping[str, int] | None = None) -> Evidence:
    """All evidence that decides [since, until), out of rows numbered up to ``upto`` where given."""
    records = tuple(ledger.scan(DriverRecord, since_us=since_us, until_us=until_us, upto=upto))
    around = ledger.scan(Sighting, since_us=since_us - _MARGIN_US, until_us=until_us + _MARGIN_US, upto=upto)
    sightings = {row.ref: row for row in around}
    first_us, last_us = since_us - _MARGIN_US, until_us + _MARGIN_US
    spilling = [record for record in records if start_of(record) < first_us or end_of(record) > last_us]
    if spilling:
        first_us = min(first_us, *(start_of(record) - _MARGIN_US for record in spilling))
        last_us = max(last_us, *(end_of(record) + _MARGIN_US for record in spilling))
        pids = {(record.host, record.pid) for record in spilling}
        whole = ledger.scan(Sighting, since_us=first_us, until_us=last_us, pids=pids, upto=upto)
        sightings.update((row.ref, row) for row in whole)
    unread = {
        (row.host, row.pid)
        for row in sightings.values()
        if not row.start_ticks and isinstance(row.context_started_at_us, Missing)
    }
    if unread:
        # neither the driver nor /proc says which context it is: only all looks at it together do
        sightings.update((row.ref, row) for row in ledger.scan(Sighting, pids=unread, upto=upto))
    startless = _startless_pids(records, sightings.values())
    if startless - unread:
        # nor does a row without a start say whose it is: a process of its pid may be proven dead long before
        sightings.update((row.ref, row) for row in ledger.scan(Sighting, pids=startless - unread, upto=upto))
    hosts = {row.host for row in records} | {row.host for row in sightings.values()}
    known = {row.ref for row in records}
    more = ledger.scan(DriverRecord, pids=startless, upto=upto) if startless else ()
    identities = {row.ref: row for row in ledger.scan(ProcessIdentity, since_us=first_us, until_us=last_us, upto=upto)}
    identities.update((row.ref, row) for row in _seen_before(ledger, sightings.values(), identities.values(), upto))
    if startless | unread:
        identities.update((row.ref, row) for row in ledger.scan(ProcessIdentity, pids=startless | unread, upto=upto))
    return Evidence(
        driver_records=(
            *records,
            *(row for row in more if isinstance(row.started_at_us, Missing) and row.ref not in known),
        ),
        sightings=tuple(sightings.values()),
        identities=tuple(identities.values()),
        watches=(
            *_naming_watches(ledger, first_us, last_us, upto),
            *first_naming_watches(ledger, hosts, upto),
        ),
    )


def _startless_pids(records: Iterable[DriverRecord], looks: Iterable[Sighting]) -> set[tuple[str, int]]:
    """Pids known here from a source without start times: what such a row takes depends on all rows of its pid."""
    pids = {(row.host, row.pid) for row in records if isinstance(row.started_at_us, Missing)}
    return pids | {(look.host, look.pid) for look in looks if look.method in _STARTLESS}


def _seen_before(
    ledger: Ledger, looks: Iterable[Sighting], found: Iterable[ProcessIdentity], upto: Mapping[str, int] | None
) -> Iterable[ProcessIdentity]:
    """Identities of processes that these looks saw alive and that were read long before: a daemon's."""
    known = {(row.host, row.pid, row.start_ticks) for row in found}
    wanted = {(look.host, look.pid, look.start_ticks) for look in looks if look.start_ticks} - known
    if not wanted:
        return
    for row in ledger.scan(ProcessIdentity, pids={(host, pid) for host, pid, _ in wanted}, upto=upto):
        if (row.host, row.pid, row.start_ticks) in wanted:
            yield row


def _naming_watches(ledger: Ledger, since_us: int, until_us: int, upto: Mapping[str, int] | None) -> Iterable[Watch]:
    if upto is None:
        return ledger.coalesced_watches(since_us, until_us, "process")
    rows = ledger.scan(Watch, since_us=since_us, until_us=until_us, devices=[""], upto=upto)
    return (row for row in rows if row.source == "process")


def first_naming_watches(ledger: Ledger, hosts: Iterable[str], upto: Mapping[str, int] | None = None) -> list[Watch]:
    """For each host the first row that says somebody looked at names there: what died before it is before-watch."""
    found: list[Watch] = []
    for host in hosts:
        rows = ledger.scan(Watch, hosts=[host], devices=[""], order="time", limit=8, upto=upto)
        found += [row for row in rows if row.source == "process"][:1]
    return found


Booked = TypeVar("Booked", UsageRecord, UsageCorrection)


def of_processes(rows: Iterable[Booked], hours: Container[int]) -> list[Booked]:
    """Of records or corrections those of these hours (their starts) that rest on processes: not of reserved time."""
    return [row for row in rows if row.hour_us in hours and row.meter not in _RESERVED]


def covered_spans(passes: Iterable[Pass]) -> list[tuple[int, int]]:
    """The spans of hours that passes have closed, merged and sorted."""
    spans: list[tuple[int, int]] = []
    for since_us, until_us in sorted((row.covered_from_us, row.covered_until_us) for row in passes):
        if since_us >= until_us:
            continue
        if spans and since_us <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], until_us))
        else:
            spans.append((since_us, until_us))
    return spans


def is_covered(spans: Iterable[tuple[int, int]], hour_us: int) -> bool:
    """Whether an hour, by its start, lies in one of the spans."""
    return any(since_us <= hour_us < until_us for since_us, until_us in spans)


def without(spans: Iterable[tuple[int, int]], hours: Iterable[int]) -> list[tuple[int, int]]:
    """The spans without these hours, each given by its start."""
    left = list(spans)
    for hour_us in sorted(hours):
        left = [
            part
            for start_us, end_us in left
            for part in ((start_us, min(end_us, hour_us)), (max(start_us, hour_us + HOUR_US), end_us))
            if part[0] < part[1]
        ]
    return left


def uncovered(spans: Iterable[tuple[int, int]], *, since_us: int, until_us: int) -> list[tuple[int, int]]:
    """The parts of a window that no whole recorded hour answers: unrecorded hours and partial ones at its edges."""
    gaps: list[tuple[int, int]] = []
    cursor_us = since_us
    for start_us, end_us in spans:
        inside_from = max(start_us, -(-since_us // HOUR_US) * HOUR_US)
        inside_to = min(end_us, until_us // HOUR_US * HOUR_US)
        if inside_from >= inside_to:
            continue
        if cursor_us < inside_from:
            gaps.append((cursor_us, inside_from))
        cursor_us = max(cursor_us, inside_to)
    if cursor_us < until_us:
        gaps.append((cursor_us, until_us))
    return gaps


def counted_from(ledger: Ledger, since_us: int) -> int:
    """Where a window is counted from: the start of its first hour, if no evidence lies before the window.

    The record of that hour then says what the window asks, and nothing of it is provisional.
    """
    if since_us % HOUR_US == 0:
        return since_us
    first_us, _ = ledger.span_of((DriverRecord, Sighting, Watch))
    return since_us if isinstance(first_us, Missing) or first_us < since_us else hour_floor(since_us)


def within(gaps: Iterable[tuple[int, int]], *, since_us: int, until_us: int) -> list[tuple[int, int]]:
    """The rest of a window: the whole hours that records answer."""
    kept: list[tuple[int, int]] = []
    cursor_us = since_us
    for start_us, end_us in gaps:
        if cursor_us < start_us:
            kept.append((cursor_us, start_us))
        cursor_us = end_us
    if cursor_us < until_us:
        kept.append((cursor_us, until_us))
    return kept


def start_of(record: DriverRecord) -> int:
    """Start of a driver row, microseconds UTC; without one the latest it can have had."""
    if isinstance(record.started_at_us, Missing):
        return record.read_at_us - record.context_ms * 1000
    return record.started_at_us


def end_of(record: DriverRecord) -> int:
    """End of a driver row, microseconds UTC; without a start the time it was read at."""
    if isinstance(record.started_at_us, Missing):
        return record.read_at_us
    return record.started_at_us + record.context_ms * 1000
