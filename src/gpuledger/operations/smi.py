"""``smi``: what nvidia-smi would have shown at any past moment, with names, the dead included.

From evidence alone, so a recorded hour and one that no pass has covered say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpuledger.accounting.owners import Naming
from gpuledger.accounting.snapshot import snapshot
from gpuledger.errors import Misconfigured
from gpuledger.ledger.archived import archived_until
from gpuledger.ledger.store import Ledger
from gpuledger.metering.contexts import contexts
from gpuledger.metering.moment import held_at, verdicts_at
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, iso
from gpuledger.model.quantities import Evidence
from gpuledger.model.reasons import UnknownReason
from gpuledger.model.rows import DeviceEvent, DriverRecord, ProcessIdentity, Sighting, Watch
from gpuledger.model.snapshot import Snapshot
from gpuledger.operations.archived import archived_between, missing
from gpuledger.operations.evidence import first_naming_watches, load_evidence
from gpuledger.operations.living import present_evidence
from gpuledger.operations.pulse import hear, unwritten_watches
from gpuledger.operations.usage import policies

_UNREAD = (UnknownReason.DEVICE_LOST, UnknownReason.DRIVER_UNREACHABLE, UnknownReason.NOT_WRITTEN)
"""What a look says that did not see the living, or has not told yet whom it saw."""
_RECENT_WATCHES = 16
_EVIDENCE = (DriverRecord, Sighting, Watch)


def smi(ledger: Ledger, *, at_us: int | None, now_us: int) -> Snapshot:
    """The machines at a moment.

    Args:
        at_us: the moment, microseconds UTC; None for now. Now, and what lies after the last look of an agent that
            looks on, is its last look: the next is not made yet. Where only dumps were imported it is the last of them.

    Raises:
        Misconfigured: ``at-in-future``.
        Unavailable: ``archive-missing`` where the evidence of the moment is archived, and not at hand.
    """
    with ledger.snapshot():
        return _at(ledger, at_us, now_us)


def _at(ledger: Ledger, at_us: int | None, now_us: int) -> Snapshot:
    events = list(ledger.scan(DeviceEvent))
    moment_us = _moment(ledger, at_us, {event.host for event in events}, now_us)
    if moment_us < archived_until(ledger) and (left := archived_between(ledger, moment_us, moment_us + 1)):
        raise missing(left, f"who held what at {iso(moment_us)}", f"gpuledger smi --at {iso(moment_us)}")
    gpus = sorted({(event.host, event.device) for event in events if not event.parent})
    unwritten = list(unwritten_watches(ledger, hear(ledger, now_us=now_us)))
    looked_us = _looked(ledger, gpus, unwritten, moment_us)
    evidence = _evidence(ledger, moment_us, set(looked_us.values()), now_us)
    parents = {(event.host, event.device): (event.host, event.parent or event.device) for event in events}
    held = held_at(
        contexts(evidence),
        evidence.sightings,
        {place: looked_us[gpu] for place, gpu in parents.items() if gpu in looked_us},
        at_us=moment_us,
    )
    watches = [*ledger.watched_spans(gpus, moment_us - 1, moment_us + 1), *unwritten]
    texts = ledger.texts({one.context.subject for one in held})
    return snapshot(
        at_us=moment_us,
        held=held,
        events=events,
        verdicts=verdicts_at(watches, gpus, at_us=moment_us),
        looked_us=looked_us,
        naming=Naming(texts=texts, versions=policies(ledger, now_us=now_us)),
        texts=texts,
    )


def _moment(ledger: Ledger, at_us: int | None, hosts: set[str], now_us: int) -> int:
    if at_us is not None and at_us > now_us:
        raise Misconfigured(
            "at-in-future",
            f"{iso(at_us)} lies ahead of now, {iso(now_us)}",
            hint="--at takes a past moment: 2026-11-29T14:00Z, today, 2h",
        )
    pulse = hear(ledger, now_us=now_us)
    if pulse is not None and pulse.is_beating(now_us) and (at_us is None or at_us > pulse.told_us):
        return pulse.told_us
    if at_us is not None:
        return at_us
    last_us = ledger.last_moment(_EVIDENCE)
    watched_by_agent = bool(first_naming_watches(ledger, hosts))
    return now_us if watched_by_agent or isinstance(last_us, Missing) else min(last_us, now_us)


def _looked(
    ledger: Ledger, gpus: Iterable[tuple[str, str]], unwritten: Sequence[Watch], at_us: int
) -> dict[tuple[str, str], int]:
    """By GPU, the last moment by ``at_us`` that a look at the living is known to cover."""
    found: dict[tuple[str, str], int] = {}
    for host, device in gpus:
        rows = ledger.scan(
            Watch, hosts=[host], devices=[device], until_us=at_us + 1, order="time", descending=True,
            limit=_RECENT_WATCHES,
        )  # fmt: skip
        looks = [row for row in rows if row.readings]
        looks += [row for row in unwritten if (row.host, row.device) == (host, device) and row.since_us <= at_us]
        ends = [min(row.until_us, at_us) for row in looks if row.source == "driver" and row.status not in _UNREAD]
        if ends:
            found[host, device] = max(ends)
    return found


def _evidence(ledger: Ledger, at_us: int, looked_us: set[int], now_us: int) -> Evidence:
    """Everything that decides who held a device: around the moment, at the last looks by it, and of those found.

    A context without the driver's start begins with the first look at it, however long ago, and ends with
    the last: so of those all looks are needed.
    """
    parts = [present_evidence(ledger, since_us=at_us, until_us=at_us + 1, now_us=now_us)]
    parts += [
        load_evidence(ledger, since_us=last_us, until_us=last_us + 1)
        for last_us in sorted(looked_us)
        if last_us < at_us - HOUR_US
    ]
    first_us = min([at_us, *looked_us]) - HOUR_US
    evidence = Evidence(
        driver_records=tuple(row for part in parts for row in part.driver_records),
        sightings=_telling((row for part in parts for row in part.sightings), first_us, at_us + HOUR_US),
        identities=tuple(row for part in parts for row in part.identities),
        watches=tuple(row for part in parts for row in part.watches),
    )
    unsettled = [
        found
        for found in contexts(evidence)
        if not found.settled and found.spans[0][0] <= at_us and found.last_seen_us >= first_us
    ]
    if not unsettled:
        return evidence
    pids = {(found.host, found.pid) for found in unsettled}
    startless = {(found.host, found.pid) for found in unsettled if isinstance(found.started_at_us, Missing)}
    looks = ledger.scan(Sighting, pids=startless) if startless else ()
    return replace(
        evidence,
        driver_records=(*evidence.driver_records, *ledger.scan(DriverRecord, pids=pids)),
        sightings=(*evidence.sightings, *_telling(looks, first_us, at_us + HOUR_US)),
        identities=(*evidence.identities, *ledger.scan(ProcessIdentity, pids=pids)),
    )


def _telling(looks: Iterable[Sighting], first_us: int, last_us: int) -> tuple[Sighting, ...]:
    """The looks of a span, and of the others only what bounds a context: its first, its last, and each miss.

    A daemon of a month has nine thousand rows; those far from the moment say only that it went on.
    """
    kept: list[Sighting] = []
    first: dict[tuple[object, ...], Sighting] = {}
    last: dict[tuple[object, ...], Sighting] = {}
    for look in looks:
        if not isinstance(look.gone_at_us, Missing) or (look.since_us <= last_us and look.until_us >= first_us):
            kept.append(look)
            continue
        start_us = look.context_started_at_us
        known_us = 0 if isinstance(start_us, Missing) else start_us
        key = (look.host, look.device, look.pid, look.boot_id, look.start_ticks, known_us)
        if key not in first or look.since_us < first[key].since_us:
            first[key] = look
        if key not in last or look.until_us > last[key].until_us:
            last[key] = look
    return (*kept, *first.values(), *last.values())
