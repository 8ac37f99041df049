"""``usage``: records where hours are recorded, evidence where they are not, names by policy, blind spots beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gpuledger.accounting.amounts import METERS_BY_NAME, Amount, Grain, OpenContext, grain_for
from gpuledger.accounting.owners import Naming
from gpuledger.accounting.rollup import parse_by, roll_up
from gpuledger.errors import Misconfigured
from gpuledger.ledger.archived import archived_until
from gpuledger.ledger.store import Ledger
from gpuledger.metering.coverage import coverage
from gpuledger.metering.derive import derive
from gpuledger.model.meters import GPU_BUSY, GPU_CONTEXT, GPU_MEMORY, RESERVED_METERS, Meter
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, SECOND_US, hour_floor, iso
from gpuledger.model.policy import Policy
from gpuledger.model.quantities import Coverage, Quantity
from gpuledger.model.rows import DeviceEvent, DriverRecord, Pass, PolicyVersion, Row, Sighting, Watch
from gpuledger.model.usage import UsageReport
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.archived import archived_between, missing
from gpuledger.operations.blind_controllers import unseen_in_guests
from gpuledger.operations.evidence import (
    counted_from,
    covered_spans,
    first_naming_watches,
    uncovered,
    within,
    without,
)
from gpuledger.operations.living import open_contexts, present_evidence, seen_once
from gpuledger.operations.pulse import hear, unwritten_watches
from gpuledger.operations.told_until import told_until
from gpuledger.operations.touched import touched_hours
from gpuledger.sources import policy_file

_SETTLED = "settled"
_EVIDENCE = (DriverRecord, Sighting, Watch)
_PLACES = frozenset({"class", "device", "host", "host-owner"})
"""Groupings that need to know where; for all others amounts are added up over hosts and devices by the store."""


def window(
    ledger: Ledger, *, since: int | None, until: int | None, now_us: int, reserved: bool = False
) -> tuple[int, int]:
    """The window asked for: by default from the first evidence to now; the future is not asked about.

    With ``reserved``, or where no device is known, it is that of lifecycle events: of declared history
    it ends with the last of them, unless what comes after them is asked about.

    While an agent looks, now is its last look.

    Where only dumps were imported nobody watches on, so there it ends with the last of them.

    Raises:
        Misconfigured: ``empty-window`` when it ends before it begins.
        Unavailable: ``archive-missing`` when it begins or ends within an hour whose evidence is archived.
    """
    hosts = {event.host for event in ledger.scan(DeviceEvent)}
    last_us = ledger.last_moment(_EVIDENCE) if until is None else now_us
    is_told = reserved or (not hosts and not isinstance(ledger.last_moment((WorkloadEvent,)), Missing))
    kinds = (WorkloadEvent,) if is_told else _EVIDENCE
    if until is not None:
        until_us = min(until, now_us)
    elif is_told:
        told_us = min(told_until(ledger, now_us=now_us), now_us)
        until_us = now_us if since is not None and since >= told_us else told_us
    elif isinstance(last_us, Missing) or first_naming_watches(ledger, hosts):
        pulse = hear(ledger, now_us=now_us)
        until_us = now_us if pulse is None or not pulse.is_beating(now_us) else pulse.told_us
    else:
        until_us = (last_us // SECOND_US + 1) * SECOND_US
    since_us = since
    if since_us is None:
        first_us, _ = ledger.span_of(kinds)
        since_us = until_us if isinstance(first_us, Missing) else min(first_us, until_us)
    if since_us > until_us or (since is not None and since_us == until_us):
        raise Misconfigured(
            "empty-window",
            f"the window ends at {iso(until_us)}, before it begins at {iso(since_us)}",
            hint="--since must lie before --until, and before now",
        )
    _refuse_archived_edges(ledger, since_us, until_us, kinds)
    return since_us, until_us


def _refuse_archived_edges(ledger: Ledger, since_us: int, until_us: int, kinds: Sequence[type[Row]]) -> None:
    """Raise where an edge cuts an hour whose evidence is archived: only the whole hour is recorded.

    Before the first of what is asked about nothing is cut off: the record of its hour says what the window asks.

    Raises:
        Unavailable: ``archive-missing``.
    """
    if since_us >= archived_until(ledger):
        return
    first_us, _ = ledger.span_of(kinds)
    begins_us = since_us if isinstance(first_us, Missing) or first_us < since_us else hour_floor(since_us)
    for edge_us in (begins_us, until_us):
        hour_us = hour_floor(edge_us)
        if edge_us != hour_us and (left := archived_between(ledger, hour_us, hour_us + HOUR_US)):
            raise missing(
                left, f"the part of an hour from or to {iso(edge_us)} is not recorded",
                hint=f"let the window begin and end with an hour ({iso(hour_us)}), or set GPULEDGER_ARCHIVE=FOLDER",
            )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What every view of a window starts from.

    Args:
        amounts: recorded and provisional, of the meters asked for.
        open_contexts: contexts still open.
        coverage: spans of every device, filling the window.
        seen_once: contexts without a length, counted by subject.
        naming: resolves the subjects of all of them.
        classes: accounting class by (host, device).
    """

    amounts: tuple[Amount, ...]
    open_contexts: tuple[OpenContext, ...]
    coverage: tuple[Coverage, ...]
    seen_once: dict[str, int]
    naming: Naming
    classes: dict[tuple[str, str], str]


def usage(ledger: Ledger, *, meter: str, by: Sequence[str], since_us: int, until_us: int, now_us: int) -> UsageReport:
    """Who used how much of one meter in a window.

    Raises:
        Misconfigured: ``unknown-meter`` or ``bad-grouping``.
    """
    if meter not in METERS_BY_NAME:
        raise Misconfigured("unknown-meter", f"{meter!r} is no meter", hint=f"one of {', '.join(METERS_BY_NAME)}")
    grouping = parse_by(",".join(by))
    asked = METERS_BY_NAME[meter]
    if asked in RESERVED_METERS:
        raise ValueError(f"{meter} is answered by usage_reserved")
    meters = (GPU_CONTEXT, GPU_BUSY) if asked is GPU_CONTEXT else (asked,)
    answer = answer_window(ledger, meters=meters, by=grouping, since_us=since_us, until_us=until_us, now_us=now_us)
    return roll_up(
        meter=asked,
        by=grouping,
        since_us=since_us,
        until_us=until_us,
        amounts=answer.amounts,
        naming=answer.naming,
        classes=answer.classes,
        coverage=(*answer.coverage, *unseen_in_guests(ledger, since_us=since_us, until_us=until_us)),
        open_contexts=answer.open_contexts,
        seen_once=answer.seen_once,
        unsampled=not answer.amounts and _is_unsampled(ledger, asked, since_us, until_us),
    )


def _is_unsampled(ledger: Ledger, meter: Meter, since_us: int, until_us: int) -> bool:
    """Whether contexts were alive and no sample of a sampled meter covers any: then nothing is not zero."""
    if meter is GPU_CONTEXT:
        return False
    alive = _was_alive(ledger, since_us, until_us)
    for row in ledger.scan(Sighting, since_us=since_us, until_us=until_us):
        if row.memory_ms if meter is GPU_MEMORY else row.busy_covered_ms:
            return False
        alive = True
    return alive


def _was_alive(ledger: Ledger, since_us: int, until_us: int) -> bool:
    """Whether contexts are recorded of a window whose looks are archived: whether one was sampled, only they told."""
    if not any(row.rows_of == Sighting.kind for row in archived_between(ledger, since_us, until_us)):
        return False
    return bool(ledger.sum_usage(GPU_CONTEXT.name, since_us=since_us, until_us=until_us))


def answer_window(
    ledger: Ledger, *, meters: Sequence[Meter], by: Sequence[str], since_us: int, until_us: int, now_us: int
) -> Answer:
    """Amounts, open contexts, coverage and names of a window."""
    versions = policies(ledger, now_us=now_us)
    changes_us = sorted({effective_us for effective_us, _ in versions})
    grain = grain_for(by=by, changes_us=changes_us, since_us=since_us, until_us=until_us)
    from_us = counted_from(ledger, since_us)
    gaps = uncovered(recorded_spans(ledger), since_us=from_us, until_us=until_us)
    amounts = [
        amount
        for start_us, end_us in within(gaps, since_us=from_us, until_us=until_us)
        for meter in meters
        for amount in recorded_amounts(ledger, meter, start_us, end_us, grain, placed=bool(_PLACES & set(by)))
    ]
    wanted = {meter.name for meter in meters}
    for start_us, end_us in gaps:
        evidence = present_evidence(ledger, since_us=start_us, until_us=end_us, now_us=now_us)
        derived = derive(evidence, since_us=start_us, until_us=end_us)
        amounts += [provisional(found, grain) for found in derived if found.meter in wanted]
    living = tuple(open_contexts(ledger, since_us=since_us, until_us=until_us, now_us=now_us))
    classes, physical = devices_of(ledger)
    watches = [
        *ledger.watched_spans(physical, since_us, until_us),
        *unwritten_watches(ledger, hear(ledger, now_us=now_us)),
    ]
    covered = tuple(coverage(watches, physical, since_us=since_us, until_us=until_us))
    once = seen_once(ledger, covered)
    keys = {amount.subject for amount in amounts} | {context.subject for context in living} | set(once)
    return Answer(
        amounts=tuple(amounts),
        open_contexts=living,
        coverage=covered,
        seen_once=once,
        naming=Naming(texts=ledger.texts(keys), versions=versions),
        classes=classes,
    )


def recorded_spans(ledger: Ledger) -> list[tuple[int, int]]:
    """The spans of hours that records answer: recorded, and not touched by evidence that no pass has seen.

    What touches a recorded hour late is shown at once, derived; the next pass books it as a correction.
    """
    passes = list(ledger.scan(Pass))
    if not passes:
        return []
    return without(covered_spans(passes), touched_hours(ledger, passes, ledger.marks()))


def recorded_amounts(
    ledger: Ledger, meter: Meter, since_us: int, until_us: int, grain: Grain, *, placed: bool
) -> Iterable[Amount]:
    """Records and corrections of whole hours; what was open when recorded is settled if a driver row says so since.

    Unless ``placed``, amounts are added up over hosts and devices, and theirs stand empty.
    """
    graded = meter is GPU_CONTEXT
    time_column = {Grain.HOUR: ("hour_us",), Grain.DAY: ("day_us",), Grain.WINDOW: ()}[grain]
    by = ("subject", *(("host", "device") if placed else ()), *time_column)
    settled_since = ledger.settled_since(meter.name, since_us=since_us, until_us=until_us, by=by) if graded else {}
    for key, quantity, was_settled, corrected in ledger.sum_usage(
        meter.name, since_us=since_us, until_us=until_us, by=by
    ):
        settled = min(quantity, was_settled + corrected + settled_since.get(key, 0)) if graded else 0
        settled = max(settled, 0) if quantity >= 0 else settled
        host, device = (str(part) for part in key[1:3]) if placed else ("", "")
        yield Amount(
            meter=meter.name,
            subject=str(key[0]),
            host=host,
            device=device,
            at_us=int(key[-1]) if time_column else since_us,
            grain=grain,
            quantity=quantity,
            settled=settled,
            observed=quantity - settled if graded else 0,
        )


def provisional(found: Quantity, grain: Grain) -> Amount:
    """A derived amount of an hour (or a part of one) that is not recorded."""
    graded = found.meter == GPU_CONTEXT.name
    settled = found.quantity if found.context == _SETTLED else 0
    return Amount(
        meter=found.meter,
        subject=found.subject,
        host=found.host,
        device=found.device,
        at_us=found.hour_us,
        grain=Grain.HOUR if grain is Grain.WINDOW else grain,
        quantity=found.quantity,
        settled=settled if graded else 0,
        observed=found.quantity - settled if graded else 0,
        provisional=True,
    )


def policies(ledger: Ledger, *, now_us: int) -> list[tuple[int, Policy]]:
    """Every applied version, understood, in the order in which they were applied."""
    return understood(ledger.scan(PolicyVersion), now_us=now_us)


def understood(rows: Iterable[PolicyVersion], *, now_us: int) -> list[tuple[int, Policy]]:
    """As :func:`policies`, of rows at hand."""
    return [
        (row.effective_from_us, policy_of(row.document, row.version, row.applied_at_us))
        for row in sorted(rows, key=lambda row: row.version)
        if row.applied_at_us <= now_us
    ]


@lru_cache(maxsize=64)
def policy_of(document: str, version: int, applied_at_us: int) -> Policy:
    """One version: a document never changes, and one of 5,000 users takes a sixth of a second to read."""
    return policy_file.parse(document, path=f"policy {version}", now_us=applied_at_us, is_stored=True)[0]


def devices_of(ledger: Ledger) -> tuple[dict[tuple[str, str], str], list[tuple[str, str]]]:
    """Accounting class by (host, device), and the physical GPUs, each once."""
    classes: dict[tuple[str, str], str] = {}
    physical: dict[tuple[str, str], None] = {}
    for event in ledger.scan(DeviceEvent, order="time"):
        classes[event.host, event.device] = event.class_name
        if not event.parent:
            physical[event.host, event.device] = None
    return classes, list(physical)
