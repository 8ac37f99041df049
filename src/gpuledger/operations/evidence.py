"""Reads from the ledger the evidence that decides a window: no more than that, and no less.

What a derived hour says must not depend on how the window was cut. So beside the rows that touch the
window this loads everything that names them: all identities of their pids, and the sightings of
those pids over the whole life of each settled context.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, MINUTE_US
from gpuledger.model.quantities import Evidence
from gpuledger.model.rows import DeviceEvent, DriverRecord, Pass, ProcessIdentity, Sighting, Watch

_MARGIN_US = 10 * MINUTE_US
"""Sightings this long before and after a settled context can still decide its name: a pid's earlier life."""


def load_evidence(ledger: Ledger, *, since_us: int, until_us: int, upto: Mapping[str, int] | None = None) -> Evidence:
    """All evidence that decides [since, until), out of rows numbered up to ``upto`` where given."""
    records = tuple(ledger.scan(DriverRecord, since_us=since_us, until_us=until_us, upto=upto))
    sightings = {row.ref: row for row in ledger.scan(Sighting, since_us=since_us, until_us=until_us, upto=upto)}
    if records:
        first_us = min(_start_us(record) for record in records) - _MARGIN_US
        last_us = max(_end_us(record) for record in records) + _MARGIN_US
        if first_us < since_us or last_us > until_us:
            wanted = {(record.host, record.pid) for record in records}
            more = ledger.scan(Sighting, since_us=first_us, until_us=last_us, pids=wanted, upto=upto)
            sightings.update((row.ref, row) for row in more)
    pids = {(row.host, row.pid) for row in records} | {(row.host, row.pid) for row in sightings.values()}
    identities = tuple(ledger.scan(ProcessIdentity, pids=pids, upto=upto)) if pids else ()
    watches_from_us = min([since_us, *(_start_us(record) for record in records)]) - _MARGIN_US
    watches_to_us = max([until_us, *(_end_us(record) for record in records)]) + _MARGIN_US
    watches = {row.ref: row for row in ledger.scan(Watch, since_us=watches_from_us, until_us=watches_to_us, upto=upto)}
    watches.update((row.ref, row) for row in first_naming_watches(ledger, {host for host, _ in pids}))
    return Evidence(
        driver_records=records,
        sightings=tuple(sightings.values()),
        identities=identities,
        watches=tuple(watches.values()),
        devices=tuple(ledger.scan(DeviceEvent, upto=upto)),
    )


def first_naming_watches(ledger: Ledger, hosts: Iterable[str]) -> list[Watch]:
    """For each host the first row that says somebody looked at names there: what died before it is before-watch."""
    found: list[Watch] = []
    for host in hosts:
        rows = ledger.scan(Watch, hosts=[host], devices=[""], order="time", limit=8)
        found += [row for row in rows if row.source == "process"][:1]
    return found


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


def _start_us(record: DriverRecord) -> int:
    if isinstance(record.started_at_us, Missing):
        return record.read_at_us - record.context_ms * 1000
    return record.started_at_us


def _end_us(record: DriverRecord) -> int:
    if isinstance(record.started_at_us, Missing):
        return record.read_at_us
    return record.started_at_us + record.context_ms * 1000
