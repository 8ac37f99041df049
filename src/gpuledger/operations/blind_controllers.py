"""What reservations cannot say because of who tells them, or of what: clocks that are off, devices no host sees."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby

from gpuledger.ledger import workloads
from gpuledger.ledger.reserved import Reading, reading
from gpuledger.ledger.store import Ledger
from gpuledger.model.addresses import host_of, is_address
from gpuledger.model.controller_clock import offset_us, words
from gpuledger.model.durations import duration_us, several
from gpuledger.model.moments import SECOND_US, hour_floor
from gpuledger.model.quantities import Coverage
from gpuledger.model.reasons import WATCHED, ReservedReason
from gpuledger.model.reserved import ReservedGap
from gpuledger.model.rows import Watch

_NEVER = 1 << 62
"""Later than any moment."""


def clock_skews(ledger: Ledger, *, since_us: int, until_us: int) -> Iterator[ReservedGap]:
    """Sources whose clock is known to be off, each with the seconds that the times it told of a window may be wrong by.

    A controller that reports its clock is believed. Where it reports no skew, an event that was told before it had
    happened is the proof all the same; one that is told late proves nothing.
    """
    with ledger.snapshot():
        reported = list(_reported(ledger, since_us, until_us))
        known = {gap.what for gap in reported}
        yield from reported
        for source, events, ahead_us, first_us, last_us in workloads.told_ahead(ledger.connection, since_us, until_us):
            if source not in known:
                told = several(events, "event")
                detail = f"told {told} before they had happened, {duration_us(ahead_us // events)} on average"
                yield ReservedGap(
                    reason=ReservedReason.CLOCK_SKEW, what=source, seconds=ahead_us // SECOND_US, since_us=first_us,
                    until_us=last_us, detail=detail,
                )  # fmt: skip


def _reported(ledger: Ledger, since_us: int, until_us: int) -> Iterator[ReservedGap]:
    rows = workloads.clock_rows(ledger.connection)
    for source, of_source in groupby(rows, key=lambda row: row.host):
        reports = list(of_source)
        events = off_us = worst_us = 0
        span: list[int] = []
        for row, following in zip(reports, [*reports[1:], None], strict=True):
            if row.status in WATCHED:
                continue
            next_us = following.since_us if following else _NEVER
            told = workloads.told_between(
                ledger.connection, source, (row.since_us, next_us), (since_us, until_us)
            )  # fmt: skip
            if told:
                events += told
                off_us += told * abs(offset_us(row))
                worst_us = max(worst_us, offset_us(row), key=abs)
                span += [max(row.since_us, since_us), min(next_us, until_us)]
        if events:
            yield ReservedGap(
                reason=ReservedReason.CLOCK_SKEW, what=source, seconds=off_us // SECOND_US, since_us=min(span),
                until_us=max(span), detail=f"{several(events, 'event')} told by a clock {words(worst_us)}",
            )  # fmt: skip


def clock_steps(ledger: Ledger, *, since_us: int, until_us: int) -> Iterator[ReservedGap]:
    """Machines whose clock was set while workloads ran that are told of on them, as the agent there has seen it.

    A start that was told before the step, and an end after it, are not on one clock: each of these intervals may be
    wrong by as much as the step. What a controller elsewhere tells, by a clock of its own, may be right all the same.
    """
    steps = workloads.clock_steps(ledger.connection, since_us, until_us)
    if not steps:
        return
    with reading(ledger, ledger.marks()) as read:
        for host, of_host in groupby(steps, key=lambda step: step.host):
            told = [_step_of(ledger, read, step) for step in of_host]
            hurt = [(step, names) for step, names in told if names]
            if hurt:
                running = several(len(set().union(*(names for _, names in hurt))), "running workload")
                sentences = "; ".join(dict.fromkeys(step.detail for step, _ in hurt))
                yield ReservedGap(
                    reason=ReservedReason.CLOCK_SKEW, what=host,
                    seconds=sum(len(names) * (step.until_us - step.since_us) for step, names in hurt) // SECOND_US,
                    since_us=min(step.since_us for step, _ in hurt), until_us=max(step.until_us for step, _ in hurt),
                    detail=f"{sentences}, under {running} told on it",
                )  # fmt: skip


def _step_of(ledger: Ledger, read: Reading, step: Watch) -> tuple[Watch, set[str]]:
    """The workloads that ran while the clock of a machine was set, and are told of on it."""
    read.want((), 0)
    read.want_living(hour_floor(step.since_us), step.until_us + 1)
    read.derive((), until_us=step.until_us + 1, cut=False)
    running = {held.workload for held in read.held(step.since_us, step.until_us + 1) if not held.is_declared}
    told = workloads.events_since_begin(ledger.connection, dict.fromkeys(running, step.since_us))
    names = {
        name for name, events in told.items()
        if any(event.writer.startswith(f"{step.host}.") and not event.is_declared for event in events)
    }  # fmt: skip
    return step, names


def passed_through(ledger: Ledger, *, since_us: int, until_us: int) -> Iterator[ReservedGap]:
    """Devices without a UUID that were reserved in a window: how long, and that nobody can see what for."""
    for device, spans in _of_guests(ledger, since_us, until_us).items():
        yield ReservedGap(
            reason=ReservedReason.PASSTHROUGH, what=device,
            seconds=sum(high_us - low_us for low_us, high_us in spans) // SECOND_US,
            since_us=spans[0][0], until_us=spans[-1][1],
            detail="reserved; what ran on it no driver of the host sees",
        )  # fmt: skip


def unseen_in_guests(ledger: Ledger, *, since_us: int, until_us: int) -> list[Coverage]:
    """The time in which guests held such devices, for a meter of processes: UNKNOWN, and not watched by anybody."""
    return [
        Coverage(
            host=host_of(device), device=device, since_us=low_us, until_us=high_us, reason=ReservedReason.PASSTHROUGH
        )
        for device, spans in _of_guests(ledger, since_us, until_us).items()
        for low_us, high_us in spans
    ]


def _of_guests(ledger: Ledger, since_us: int, until_us: int) -> dict[str, list[tuple[int, int]]]:
    """When each device that is named by host and address was reserved, by whomever: spans apart, in order."""
    rows = workloads.placements_by_place(ledger.connection)
    placed = {row.placement: [device for device in json.loads(row.devices) if is_address(device)] for row in rows}
    on_address = {key: devices for key, devices in placed.items() if devices}
    if not on_address or since_us >= until_us:
        return {}
    held: dict[str, list[tuple[int, int]]] = defaultdict(list)
    with reading(ledger, ledger.marks()) as read:
        read.want(workloads.placed_on(ledger.connection, on_address), hour_floor(since_us))
        read.derive((), until_us=until_us, cut=False)
        for stay in read.held(since_us, until_us, on_address):
            low_us, high_us = max(stay.since_us, since_us), min(stay.counted_us, until_us)
            for device in on_address[stay.placement] if low_us < high_us else ():
                held[device].append((low_us, high_us))
    return {device: _apart(spans) for device, spans in sorted(held.items())}


def _apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans with what overlaps or touches made one, in order."""
    found: list[tuple[int, int]] = []
    for low_us, high_us in sorted(spans):
        if found and low_us <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high_us))
        else:
            found.append((low_us, high_us))
    return found
