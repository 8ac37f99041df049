"""``usage`` of reserved time: records where hours are recorded, and at once what the next pass would book.

A late stop is shown before it is booked; hours that are still open are derived up to the end of the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpuledger.accounting.amounts import Grain, grain_for
from gpuledger.accounting.owners import Naming
from gpuledger.accounting.reserved import parse_reserved_by, roll_up_reserved
from gpuledger.ledger.booking import ready_sums
from gpuledger.ledger.reserved import reading
from gpuledger.ledger.store import Ledger
from gpuledger.metering.records import closed_until
from gpuledger.model.meters import Meter
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US, hour_floor
from gpuledger.model.reserved import (
    PLACED,
    OwnedTime,
    ReservedAmount,
    ReservedReport,
    ReservedTime,
    meters_of,
)
from gpuledger.model.rows import DeviceEvent, Pass, UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent
from gpuledger.operations.blind_reserved import reserved_gaps
from gpuledger.operations.evidence import covered_spans, is_covered
from gpuledger.operations.meter_reserved import reserved_parts, seconds_between, whole
from gpuledger.operations.usage import policies

_OF_POLICY = frozenset({"team", "host-owner"})
"""Groupings that a policy answers."""


def usage_reserved(
    ledger: Ledger, *, meter: Meter, by: Sequence[str], since_us: int, until_us: int, now_us: int
) -> ReservedReport:
    """Who held how much of one meter of reserved time in a window.

    Raises:
        Misconfigured: ``bad-grouping``.
    """
    grouping = parse_reserved_by(",".join(by))
    versions = policies(ledger, now_us=now_us)
    changes_us = sorted({effective_us for effective_us, _ in versions})
    grain = grain_for(by=grouping, changes_us=changes_us, since_us=since_us, until_us=until_us)
    amounts = list(reserved_amounts(ledger, meter, grain, since_us=since_us, until_us=until_us, now_us=now_us))
    texts = ledger.texts({amount.subject for amount in amounts})
    report = roll_up_reserved(
        meter=meter,
        by=grouping,
        since_us=since_us,
        until_us=until_us,
        amounts=amounts,
        naming=Naming(texts=texts, versions=versions),
        texts=texts,
        owned=owned_times(ledger, since_us=since_us, until_us=until_us),
        gaps=reserved_gaps(ledger, since_us=since_us, until_us=until_us, now_us=now_us),
        told=not isinstance(ledger.last_moment((WorkloadEvent,)), Missing),
    )
    if changes_us and changes_us[0] > since_us and _OF_POLICY & {*grouping}:
        return replace(report, owners_from_us=changes_us[0])
    return report


def reserved_amounts(
    ledger: Ledger, meter: Meter, grain: Grain, *, since_us: int, until_us: int, now_us: int
) -> Iterator[ReservedAmount]:
    """Recorded, about to be booked, and derived amounts of a window; each second stands in one of them."""
    since_us = counted_from(ledger, since_us)
    known = {row.placement: row for row in ledger.scan(PlacementRow)}
    first_us, last_us = whole_hours(since_us, until_us)
    time_column = {Grain.HOUR: ("hour_us",), Grain.DAY: ("day_us",), Grain.WINDOW: ()}[grain]
    if first_us <= until_us:
        for key, quantity, _, _ in ledger.sum_usage(
            meter.name, since_us=first_us, until_us=last_us, by=("subject", "device", *time_column)
        ):
            yield ReservedAmount(
                subject=str(key[0]),
                placement=known[str(key[1]).removeprefix(PLACED)],
                at_us=int(key[-1]) if time_column else since_us,
                seconds=quantity,
                provisional=False,
            )
    yield from unrecorded_amounts(
        ledger, meter, grain, known=known, since_us=since_us, until_us=until_us, now_us=now_us
    )


def unrecorded_amounts(
    ledger: Ledger,
    meter: Meter,
    grain: Grain,
    *,
    known: Mapping[str, PlacementRow],
    since_us: int,
    until_us: int,
    now_us: int,
) -> Iterator[ReservedAmount]:
    """Of a window what no record says yet: what the next pass would book, and the hours that are still open.

    Args:
        ledger: open in either mode.
        meter, grain: as for :func:`reserved_amounts`.
        known: every placement by its key.
        since_us, until_us: the window; what of its first hour lies before it is not counted.
        now_us: the time that is asked at.
    """
    passes = list(ledger.scan(Pass))
    spans = covered_spans(passes)
    marks = ledger.marks()
    first_us, last_us = whole_hours(since_us, until_us)

    def at(hour_us: int) -> int:
        if grain is Grain.WINDOW:
            return since_us
        return hour_us - hour_us % DAY_US if grain is Grain.DAY else hour_us

    step_us = {Grain.HOUR: HOUR_US, Grain.DAY: DAY_US, Grain.WINDOW: 0}[grain]
    due: list[ReservedAmount] = []
    for part in reserved_parts(ledger, passes, marks, now_us=now_us):
        booked: list[UsageRecord | UsageCorrection] = [*part.booking.records, *part.booking.corrections]
        due += [
            ReservedAmount(
                subject=row.subject, placement=known[row.device.removeprefix(PLACED)], at_us=at(row.hour_us),
                seconds=row.quantity if isinstance(row, UsageRecord) else row.delta, provisional=True,
            )
            for row in booked
            if row.meter == meter.name and first_us <= row.hour_us < last_us
        ]  # fmt: skip
        if not isinstance(part.ready, Missing):
            due += [
                ReservedAmount(
                    subject=subject, placement=known[device.removeprefix(PLACED)],
                    at_us=step if step_us else since_us, seconds=seconds, provisional=True,
                )
                for subject, device, step, seconds in ready_sums(ledger, meter.name, first_us, last_us, step_us)
            ]  # fmt: skip
    yield from due
    open_hours = [
        hour_us
        for hour_us in range(max(first_us, closed_until(now_us)), last_us, HOUR_US)
        if not is_covered(spans, hour_us)
    ]
    with reading(ledger, marks) as read:
        derived: list[tuple[ReservedTime, int]] = []
        if open_hours:
            read.want_living(open_hours[0], until_us)
            derived += [(time, time.seconds) for time in read.times(whole(open_hours), until_us=until_us)]
        for part_us, end_us in _parts(since_us, until_us):
            read.want_living(hour_floor(part_us), end_us)
            derived += seconds_between(read, hour_floor(part_us), part_us, end_us)
    for time, seconds in derived:
        if time.placement and seconds and meter in meters_of(known[time.placement].class_name):
            yield ReservedAmount(
                subject=time.subject, placement=known[time.placement], at_us=at(time.hour_us), seconds=seconds,
                provisional=True,
            )  # fmt: skip


def whole_hours(since_us: int, until_us: int) -> tuple[int, int]:
    """Start of the first and end of the last whole hour of a window."""
    first_us = -(-since_us // HOUR_US) * HOUR_US
    return first_us, max(first_us, hour_floor(until_us))


def counted_from(ledger: Ledger, since_us: int) -> int:
    """The start of a window's first hour, if no event lies before the window: its record says what is asked."""
    first_us, _ = ledger.span_of((WorkloadEvent,))
    return since_us if isinstance(first_us, Missing) or first_us < since_us else hour_floor(since_us)


def _parts(since_us: int, until_us: int) -> list[tuple[int, int]]:
    """The parts of hours at the edges of a window."""
    if hour_floor(since_us) == hour_floor(until_us):
        return [(since_us, until_us)] if since_us < until_us else []
    parts = [(since_us, hour_floor(since_us) + HOUR_US)] if since_us % HOUR_US else []
    return parts + ([(hour_floor(until_us), until_us)] if until_us % HOUR_US else [])


def owned_times(ledger: Ledger, *, since_us: int, until_us: int) -> list[OwnedTime]:
    """Physical devices as evidence knows them in a window: from the first sight on, save while they were lost."""
    return owned_of(ledger.scan(DeviceEvent, order="time"), since_us=since_us, until_us=until_us)


def owned_of(events: Iterable[DeviceEvent], *, since_us: int, until_us: int) -> list[OwnedTime]:
    """As :func:`owned_times`, of events in the order of time."""
    known: dict[tuple[str, str], DeviceEvent] = {}
    found: list[OwnedTime] = []

    def close(event: DeviceEvent, end_us: int) -> None:
        low_us, high_us = max(event.at_us, since_us), min(end_us, until_us)
        if low_us < high_us:
            found.append(
                OwnedTime(
                    host=event.host, device=event.device, class_name=event.class_name, since_us=low_us,
                    until_us=high_us,
                )
            )  # fmt: skip

    for event in events:
        if event.parent:
            continue
        before = known.pop((event.host, event.device), None)
        if before is not None:
            close(before, event.at_us)
        if event.event != "lost":
            known[event.host, event.device] = event
    for event in known.values():
        close(event, until_us)
    return found
