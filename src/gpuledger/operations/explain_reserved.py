"""``explain`` of reserved time: from a line to its records, and from a record to the transitions behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from gpuledger.accounting.amounts import Grain
from gpuledger.accounting.explaining_reserved import (
    due_node,
    event_node,
    expected_node,
    hold_node,
    line_node,
    placement_node,
    record_node,
    rest_node,
)
from gpuledger.accounting.owners import Naming
from gpuledger.accounting.reserved import group_of, parse_reserved_by
from gpuledger.errors import Misconfigured, NotFound
from gpuledger.ledger.reserved import reading
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import standing
from gpuledger.model.explanation import Explanation
from gpuledger.model.meters import Meter
from gpuledger.model.moments import HOUR_US, hour_floor, iso
from gpuledger.model.reserved import PLACED, ReservedAmount, factor
from gpuledger.model.rows import Pass, UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent
from gpuledger.operations.finality import Finality
from gpuledger.operations.usage import policies
from gpuledger.operations.usage_reserved import counted_from, reserved_amounts, whole_hours

_MOST = 20
"""Records of a line, and events of a record, that are shown."""


def explain_reserved(
    ledger: Ledger,
    row: UsageRecord | UsageCorrection | WorkloadEvent | PlacementRow | Hold | ExpectedEnd,
    naming: Naming,
) -> Explanation:
    """A record of reserved time and the transitions behind it, or one of these."""
    if isinstance(row, WorkloadEvent):
        return event_node(row, naming.owner(row.subject, row.at_us))
    if isinstance(row, PlacementRow):
        return placement_node(row)
    if isinstance(row, Hold):
        return hold_node(row)
    if isinstance(row, ExpectedEnd):
        return expected_node(row)
    placement, children = _behind(ledger, row.subject, row.device.removeprefix(PLACED), row.hour_us, naming)
    final = Finality(ledger.scan(Pass), now_us=0).final_from(row.hour_us)
    return record_node(row, placement, naming.owner(row.subject, row.hour_us), final_from_us=final, children=children)


def _behind(
    ledger: Ledger, subject: str, key: str, hour_us: int, naming: Naming
) -> tuple[PlacementRow, list[Explanation]]:
    """The placement of what a subject held in an hour; the way down: it, and the transitions that decide the hour."""
    with reading(ledger, ledger.marks()) as read:
        placement = read.placements([key])[key]
        told = {workload: read.events(workload) for workload in read.workloads_of(subject)}
    children = [placement_node(placement)]
    for workload in sorted(told):
        stand = {event.ref for event in standing(told[workload])}
        near = _near(told[workload], hour_us)
        children += [
            event_node(event, naming.owner(event.subject, event.at_us), stands=event.ref in stand)
            for event in near[:_MOST]
        ]
        if len(near) > _MOST:
            children.append(rest_node(len(near) - _MOST, "events"))
    return placement, children


def _near(events: Sequence[WorkloadEvent], hour_us: int) -> list[WorkloadEvent]:
    """The events that decide an hour: in it, the one after it, and before it back to the life's beginning."""
    before = [event for event in events if event.at_us < hour_us]
    born = [place for place, event in enumerate(before) if event.state == "provisioning"]
    inside = [event for event in events if hour_us <= event.at_us < hour_us + HOUR_US]
    after = [event for event in events if event.at_us >= hour_us + HOUR_US][:1]
    return [*before[born[-1] if born else 0 :], *inside, *after]


def explain_line(ledger: Ledger, ref: str, *, meter: Meter, since_us: int, until_us: int, now_us: int) -> Explanation:
    """A total or a line of ``usage`` of reserved time: the records behind it, and what the next pass will book.

    Raises:
        Misconfigured: ``bad-ref``; NotFound: ``nothing-to-explain``.
    """
    word, _, wanted = ref.partition(":")
    if word == "label":
        name, _, wanted = wanted.partition(":")
        word = f"label:{name}"
    by = () if ref == "total" else _by(word, ref)
    texts = ledger.texts(None)
    naming = Naming(texts=texts, versions=policies(ledger, now_us=now_us))
    known = {row.placement: row for row in ledger.scan(PlacementRow)}
    finds = group_of(by, naming, texts)

    def belongs(amount: ReservedAmount) -> bool:
        # a subject is a kind and a value itself: workload:train-7
        return not by or finds(amount) in ((wanted,), (ref,))

    amounts = [
        amount
        for amount in reserved_amounts(ledger, meter, Grain.HOUR, since_us=since_us, until_us=until_us, now_us=now_us)
        if belongs(amount)
    ]
    if not amounts:
        raise NotFound(
            "nothing-to-explain",
            f"{ref} has nothing of {meter.name} between {iso(since_us)} and {iso(until_us)}",
            hint=f"gpuledger usage --meter {meter.name} --by class,user   shows the lines there are",
        )
    first_us, last_us = whole_hours(counted_from(ledger, since_us), until_us)
    booked: list[UsageRecord | UsageCorrection] = []
    booked += ledger.scan(UsageRecord, since_us=first_us, until_us=last_us)
    booked += ledger.scan(UsageCorrection, since_us=first_us, until_us=last_us)
    booked = [row for row in booked if row.meter == meter.name and belongs(_amount(row, known))]
    booked.sort(key=lambda row: (-abs(_seconds(row)), row.hour_us, row.ref))
    children = [explain_reserved(ledger, row, naming) for row in booked[:_MOST]]
    if len(booked) > _MOST:
        children.append(rest_node(len(booked) - _MOST, "records and corrections; a shorter window shows them"))
    due = _due(amounts)
    for amount in due[:_MOST]:
        hour_us = hour_floor(amount.at_us)
        _, behind = _behind(ledger, amount.subject, amount.placement.placement, hour_us, naming)
        children.append(due_node(amount, meter, naming.owner(amount.subject, hour_us), children=behind))
    if len(due) > _MOST:
        children.append(
            rest_node(len(due) - _MOST, "hours not recorded yet, or cut by the window; a shorter one shows them")
        )
    return line_node(
        ref,
        meter,
        since_us=since_us,
        until_us=until_us,
        seconds=sum(amount.seconds for amount in amounts),
        product=sum((amount.seconds * factor(meter.name, amount.placement) for amount in amounts), Fraction(0)),
        due=sum(amount.seconds for amount in amounts if amount.provisional),
        children=children,
    )


def _due(amounts: Sequence[ReservedAmount]) -> list[ReservedAmount]:
    """What no record says yet: one amount for each subject, placement and hour, the largest first."""
    found: dict[tuple[str, str, int], ReservedAmount] = {}
    for amount in amounts:
        if amount.provisional:
            key = (amount.subject, amount.placement.placement, amount.at_us)
            seconds = amount.seconds + (found[key].seconds if key in found else 0)
            found[key] = replace(amount, seconds=seconds)
    due = [amount for amount in found.values() if amount.seconds]
    return sorted(due, key=lambda one: (-abs(one.seconds), one.at_us, one.subject, one.placement.placement))


def _amount(row: UsageRecord | UsageCorrection, known: Mapping[str, PlacementRow]) -> ReservedAmount:
    return ReservedAmount(
        subject=row.subject, placement=known[row.device.removeprefix(PLACED)], at_us=row.hour_us,
        seconds=_seconds(row), provisional=False,
    )  # fmt: skip


def _by(word: str, ref: str) -> tuple[str, ...]:
    try:
        return parse_reserved_by(word)
    except Misconfigured as error:
        raise Misconfigured(
            "bad-ref", f"{ref!r} is no line of reserved time", hint="total, class:NAME, user:NAME, workload:NAME, ..."
        ) from error


def _seconds(row: UsageRecord | UsageCorrection) -> int:
    return row.quantity if isinstance(row, UsageRecord) else row.delta
