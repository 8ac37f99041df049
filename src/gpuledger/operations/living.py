"""Contexts still open: what the last looks saw alive and the driver has not settled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpuledger.accounting.amounts import OpenContext
from gpuledger.ledger.store import Ledger
from gpuledger.metering.contexts import contexts
from gpuledger.metering.hours import whole_ms
from gpuledger.model.missing import Missing
from gpuledger.model.moments import MINUTE_US
from gpuledger.model.quantities import Context, Coverage, Evidence
from gpuledger.model.reasons import UNATTRIBUTED, Cause, UnknownReason
from gpuledger.model.rows import DeviceEvent, DriverRecord, ProcessIdentity, Sighting
from gpuledger.operations.evidence import first_naming_watches, load_evidence
from gpuledger.operations.pulse import hear, unwritten_sightings, unwritten_watches

_WITHOUT_STARTS = (
    UnknownReason.ACCOUNTING_DISABLED,
    UnknownReason.ACCOUNTING_UNSUPPORTED,
    UnknownReason.ACCOUNTING_UNREAD,
    UnknownReason.ACCOUNTING_RESET,
)
_RECENT_US = 15 * MINUTE_US
"""An agent writes what lives every five minutes at least: the last such span before its last look is enough."""


def present_evidence(ledger: Ledger, *, since_us: int, until_us: int, now_us: int) -> Evidence:
    """The evidence of a window that is not recorded yet: the ledger's, and what its agent is about to write."""
    evidence = load_evidence(ledger, since_us=since_us, until_us=until_us)
    pulse = hear(ledger, now_us=now_us)
    if pulse is None or pulse.looked_us < since_us:
        return evidence
    alive = last_seen_alive(ledger)
    pids = {(row.host, row.pid) for row in alive}
    return replace(
        evidence,
        sightings=(*evidence.sightings, *unwritten_sightings(ledger, alive, pulse)),
        identities=(*evidence.identities, *ledger.scan(ProcessIdentity, pids=pids)) if pids else evidence.identities,
        watches=(*evidence.watches, *unwritten_watches(ledger, pulse)),
    )


def open_contexts(ledger: Ledger, *, since_us: int, until_us: int, now_us: int) -> Iterable[OpenContext]:
    """Contexts that are open, with their time inside the window; not those outside it."""
    alive = last_seen_alive(ledger)
    if not alive:
        return
    pids = {(row.host, row.pid) for row in alive}
    sightings = {row.ref: row for row in alive}
    looked = {(row.host, row.pid) for row in alive if isinstance(row.context_started_at_us, Missing)}
    if looked:
        sightings.update((row.ref, row) for row in ledger.scan(Sighting, pids=looked))
    identities = tuple(ledger.scan(ProcessIdentity, pids=pids))
    evidence = Evidence(
        driver_records=tuple(ledger.scan(DriverRecord, pids=pids)),
        sightings=(*sightings.values(), *unwritten_sightings(ledger, alive, hear(ledger, now_us=now_us))),
        identities=identities,
        watches=tuple(first_naming_watches(ledger, {host for host, _ in pids})),
    )
    started = {(row.host, row.boot_id, row.pid, row.start_ticks): row.started_at_us for row in identities}
    for found in contexts(evidence):
        if not found.open or found.spans[0][0] >= until_us or found.last_seen_us < since_us:
            continue
        key = (found.host, found.process[0], found.pid, found.process[1])
        known = started.get(key, Missing("the process was not read"))
        yield OpenContext(
            host=found.host,
            device=found.device,
            pid=found.pid,
            subject=found.subject,
            since_us=_since(found),
            quantity=_inside(found, since_us, until_us),
            accounted=found.accounted,
            process_started_at_us=known,
            seen_at_us=found.last_seen_us,
            memory_mib=found.peak_memory_mib,
        )


def seen_once(ledger: Ledger, coverage: Iterable[Coverage]) -> dict[str, int]:
    """Contexts that one look saw and the next one missed, by subject: where accounting tells neither start nor end."""
    blind = [span for span in coverage if span.reason in _WITHOUT_STARTS and span.since_us < span.until_us]
    if not blind:
        return {}
    since_us, until_us = min(span.since_us for span in blind), max(span.until_us for span in blind)
    lengths: dict[tuple[str, str, int, str, int], int] = {}
    gone: set[tuple[str, str, int, str, int]] = set()
    for row in ledger.scan(Sighting, since_us=since_us, until_us=until_us + 1):
        if isinstance(row.context_started_at_us, Missing):
            key = (row.host, row.device, row.pid, row.boot_id, row.start_ticks)
            lengths[key] = lengths.get(key, 0) + row.until_us - row.since_us
            if not isinstance(row.gone_at_us, Missing):
                gone.add(key)
    once = [key for key in gone if not lengths[key]]
    pids = {(key[0], key[2]) for key in once}
    names = {
        (row.host, row.pid, row.boot_id, row.start_ticks): row.text_key
        for row in (ledger.scan(ProcessIdentity, pids=pids) if pids else ())
    }
    counts: dict[str, int] = {}
    for host, _, pid, boot_id, start_ticks in once:
        subject = names.get((host, pid, boot_id, start_ticks), f"{UNATTRIBUTED}{Cause.IDENTITY_UNREADABLE}")
        counts[subject] = counts.get(subject, 0) + 1
    return counts


def last_seen_alive(ledger: Ledger) -> list[Sighting]:
    """The last sighting of each context that no look has missed since; dumps are each a look of its own."""
    latest: dict[tuple[str, str, int], Sighting] = {}
    looked_us: dict[str, int] = {}
    for row in ledger.newest(Sighting):
        looked_us[row.host] = max(row.until_us, looked_us.get(row.host, row.until_us))
    for host in {event.host for event in ledger.scan(DeviceEvent)}:
        recent: list[Sighting] = []
        if host in looked_us:
            since_us, until_us = looked_us[host] - _RECENT_US, looked_us[host] + 1
            recent += ledger.scan(Sighting, hosts=[host], since_us=since_us, until_us=until_us)
        imported = ledger.scan(Sighting, upto={f"{host}.import": 2**62})
        for row in sorted([*imported, *recent], key=lambda row: (row.until_us, row.samples == 0, row.number)):
            latest[row.host, row.device, row.pid] = row
    return [row for row in latest.values() if isinstance(row.gone_at_us, Missing)]


def _since(found: Context) -> int | Missing:
    if not isinstance(found.started_at_us, Missing):
        return found.started_at_us
    return found.spans[0][0] if found.context_ms else found.started_at_us


def _inside(found: Context, since_us: int, until_us: int) -> int | Missing:
    """Whole ms inside the window. One look without a start says that it lives, not for how long."""
    if isinstance(found.started_at_us, Missing) and not found.context_ms:
        return Missing("seen once, and no start is known")
    clipped = [(max(start, since_us), min(end, until_us)) for start, end in found.spans]
    return whole_ms((start, end) for start, end in clipped if start < end)
