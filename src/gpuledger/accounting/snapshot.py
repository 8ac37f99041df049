"""The machines at one moment: devices as they stood, who held them by name, and what may be missing from the list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuledger.accounting.meanings import cause_sentence, meaning_of
from gpuledger.accounting.owners import FORGOTTEN, Naming
from gpuledger.model.identity import IdentityText, short_program
from gpuledger.model.meters import Grade
from gpuledger.model.missing import Missing
from gpuledger.model.reasons import UNATTRIBUTED
from gpuledger.model.rows import DeviceEvent
from gpuledger.model.snapshot import Held, Snapshot, SnapshotDevice, SnapshotProcess, SnapshotSlice
from gpuledger.model.usage import NO_NAME

LOST = "lost"
"""The event of a device that left the driver's list."""

NEVER_LOOKED = Missing("nobody had looked at it by then")
"""The last look at a device before the first one."""

NO_PEAK = Missing("its memory was never readable")
"""The peak of a process whose figure is 0: the driver gives that too where it knows none."""


def standing(events: Iterable[DeviceEvent], *, at_us: int) -> dict[tuple[str, str], DeviceEvent]:
    """Devices and MIG instances as they stood at a moment, by (host, device).

    A device that was first seen later was not seen to come, so it stands as it was then first read; a MIG
    instance is made and destroyed while a machine runs, so of those only what was there by then.
    """
    found: dict[tuple[str, str], DeviceEvent] = {}
    for event in sorted(events, key=lambda event: event.at_us):
        place = (event.host, event.device)
        if event.at_us <= at_us or (place not in found and not event.parent):
            found[place] = event
    return found


def snapshot(
    *,
    at_us: int,
    held: Iterable[Held],
    events: Iterable[DeviceEvent],
    verdicts: Mapping[tuple[str, str], str],
    looked_us: Mapping[tuple[str, str], int],
    naming: Naming,
    texts: Mapping[str, IdentityText],
) -> Snapshot:
    """The answer of ``smi``.

    Args:
        at_us: the moment.
        held: contexts that held a device then, or may have.
        events: every device event, any order.
        verdicts: by (host, GPU) the reason why the moment is UNKNOWN; empty where it was watched.
        looked_us: by (host, GPU) the last look by then.
        naming, texts: resolve subjects.
    """
    rows = list(events)
    known = {(event.host, event.device): event for event in rows}
    stood = standing(rows, at_us=at_us)
    by_gpu: dict[tuple[str, str], list[SnapshotProcess]] = {}
    held_on: set[tuple[str, str]] = set()
    for one in held:
        place = (one.context.host, one.context.device)
        event = stood.get(place) or known.get(place)
        profile, parent = (event.profile, event.parent) if event else ("", "")
        held_on.add(place)
        line = _process(one, profile, naming, texts, at_us)
        by_gpu.setdefault((one.context.host, parent or one.context.device), []).append(line)
    slices: dict[tuple[str, str], list[SnapshotSlice]] = {}
    for place, event in sorted({**known, **stood}.items()):
        if event.parent and (place in held_on or (place in stood and event.event != LOST)):
            part = SnapshotSlice(device=event.device, profile=event.profile, memory_mib=event.memory_mib)
            slices.setdefault((event.host, event.parent), []).append(part)
    return Snapshot(
        at_us=at_us,
        devices=tuple(
            _device(
                event,
                slices=tuple(slices.get(place, ())),
                reason=verdicts.get(place, ""),
                looked_us=looked_us.get(place, NEVER_LOOKED),
                processes=tuple(sorted(by_gpu.get(place, ()), key=_by_place)),
            )
            for place, event in sorted(stood.items())
            if not event.parent
        ),
    )


def _device(
    event: DeviceEvent,
    *,
    slices: tuple[SnapshotSlice, ...],
    reason: str,
    looked_us: int | Missing,
    processes: tuple[SnapshotProcess, ...],
) -> SnapshotDevice:
    meaning, command = meaning_of(reason) if reason else ("", "")
    return SnapshotDevice(
        host=event.host,
        device=event.device,
        product=event.product,
        class_name=event.class_name,
        driver_version=event.driver_version,
        memory_mib=event.memory_mib,
        slices=slices,
        reason=reason,
        meaning=meaning,
        command=command,
        looked_us=looked_us,
        processes=processes,
    )


def _process(one: Held, profile: str, naming: Naming, texts: Mapping[str, IdentityText], at_us: int) -> SnapshotProcess:
    context = one.context
    owner = naming.owner(context.subject, at_us)
    text = texts.get(context.subject)
    unnamed = context.subject.startswith(UNATTRIBUTED)
    peak = context.peak_memory_mib
    return SnapshotProcess(
        pid=context.pid,
        device=context.device,
        profile=profile,
        program=short_program(text) if text is not None else NO_NAME if unnamed else FORGOTTEN,
        service=owner.service,
        team=owner.team,
        user=owner.user,
        subject=owner.subject,
        cause=cause_sentence(context.subject.removeprefix(UNATTRIBUTED)) if unnamed else "",
        since_us=one.since_us,
        since_by=context.placed,
        until_us=one.until_us,
        last_seen_us=context.last_seen_us,
        memory=one.memory,
        peak_memory_mib=NO_PEAK if peak == 0 else peak,
        grade=Grade.SETTLED if context.settled else Grade.OBSERVED,
        doubt=one.doubt,
        ref=one.ref,
    )


def _by_place(process: SnapshotProcess) -> tuple[bool, str, int, int]:
    return (bool(process.doubt), process.device, process.pid, process.since_us)
