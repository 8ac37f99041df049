"""What reservations cannot say because of who tells them, or of what: clocks that are off, devices that no host sees."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby

from gpuledger.ledger import workloads
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import intervals
from gpuledger.model.addresses import is_address
from gpuledger.model.controller_clock import offset_us, words
from gpuledger.model.durations import duration_us, several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.reasons import WATCHED, ReservedReason
from gpuledger.model.reserved import ReservedGap

_NEVER = 1 << 62
"""Later than any moment."""


def clock_skews(ledger: Ledger, *, since_us: int, until_us: int) -> Iterator[ReservedGap]:
    """Sources whose clock is known to be off, each with the seconds that the times it told of a window may be wrong by.

    A controller that reports its clock is believed. Of one that does not, an event that was told before it had happened
    is the proof; one that is told late proves nothing.
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


def passed_through(ledger: Ledger, *, since_us: int, until_us: int) -> Iterator[ReservedGap]:
    """Devices without a UUID that were reserved in a window: how long, and that nobody can see what for."""
    held: dict[str, list[tuple[int, int]]] = defaultdict(list)
    with ledger.snapshot():
        placements = {
            row.placement: [device for device in json.loads(row.devices) if is_address(device)]
            for row in workloads.placements_by_place(ledger.connection)
        }
        on_address = {key: devices for key, devices in placements.items() if devices}
        names = workloads.placed_on(ledger.connection, on_address)
        events = workloads.events_since_begin(ledger.connection, dict.fromkeys(names, since_us))
    for told in events.values():
        for stay in intervals(told):
            end_us = until_us if isinstance(stay.until_us, Missing) else stay.until_us
            low_us, high_us = max(stay.since_us, since_us), min(end_us, until_us)
            for device in on_address.get(stay.placement, ()) if low_us < high_us else ():
                held[device].append((low_us, high_us))
    for device, spans in sorted(held.items()):
        yield ReservedGap(
            reason=ReservedReason.PASSTHROUGH, what=device, seconds=_length_us(spans) // SECOND_US,
            since_us=min(low for low, _ in spans), until_us=max(high for _, high in spans),
            detail="reserved; what ran on it no driver of the host sees",
        )  # fmt: skip


def _length_us(spans: list[tuple[int, int]]) -> int:
    """How long any of the spans lasts."""
    total = reached = 0
    for low_us, high_us in sorted(spans):
        total += max(0, high_us - max(low_us, reached))
        reached = max(reached, high_us)
    return total
