"""Metering of reserved time: the part of a pass that reads lifecycle events.

A pass asks for the workloads that can have time in the hours that closed, and for those of which events, or
heartbeats of their source, came that no pass has seen. Nobody else is looked at, so with nothing new its work
does not grow with history. A reader asks the same, and shows what the next pass would book.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpuledger.ledger.reserved import Reading, Written, reading
from gpuledger.ledger.store import Ledger
from gpuledger.metering.records import closed_until
from gpuledger.metering.reserved import FINAL_AFTER_US, Key, Standing, book, standing_of
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.reserved import Booking, Difference, ReservedTime
from gpuledger.model.rows import Pass
from gpuledger.model.workload_rows import PlacementRow
from gpuledger.operations.evidence import covered_spans, is_covered
from gpuledger.operations.touched import seen_by


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedPass:
    """What a pass books of reserved time.

    Args:
        booking: the rows, and what it may not book.
        from_us: start of the first hour it looked at that no pass has covered; Missing where there is none.
        hours: how many hours it looked at.
    """

    booking: Booking
    from_us: int | Missing
    hours: int


class Finality:
    """Which hours passes have covered, and since when each is final.

    Args:
        passes: all that were booked.
        now_us: the time that is asked about.
    """

    def __init__(self, passes: Iterable[Pass], *, now_us: int) -> None:
        rows = sorted(passes, key=lambda row: row.at_us)
        self.spans = covered_spans(rows)
        self._rows = rows
        self._now_us = now_us

    def is_covered(self, hour_us: int) -> bool:
        """Whether any pass covered the hour."""
        return is_covered(self.spans, hour_us)

    def final_from(self, hour_us: int) -> int | Missing:
        """When the hour is final: 48 hours after the first pass that covered it."""
        for row in self._rows:
            if row.covered_from_us <= hour_us < row.covered_until_us:
                return row.at_us + FINAL_AFTER_US
        return Missing("no pass has covered this hour")

    def is_final(self, hour_us: int) -> bool:
        """Whether the hour is final by now."""
        from_us = self.final_from(hour_us)
        return not isinstance(from_us, Missing) and from_us <= self._now_us

    def final_hours(self, since_us: int, until_us: int) -> Iterator[int]:
        """Starts of the final hours that lie whole in a window."""
        first_us = -(-since_us // HOUR_US) * HOUR_US
        for start_us, end_us in self.spans:
            for hour_us in range(max(start_us, first_us), min(end_us, until_us), HOUR_US):
                if self.is_final(hour_us):
                    yield hour_us

    def marks_at(self, hour_us: int) -> Mapping[str, int]:
        """What passes had seen before the hour was final: evidence beyond it comes late."""
        from_us = self.final_from(hour_us)
        known = self._rows if isinstance(from_us, Missing) else [row for row in self._rows if row.at_us < from_us]
        return seen_by(known)


def meter_reserved(
    ledger: Ledger, passes: Sequence[Pass], marks: Mapping[str, int], *, now_us: int, reason: str = ""
) -> ReservedPass:
    """What a pass for the time ``now_us`` books of reserved time, out of events numbered up to ``marks``.

    Args:
        ledger: open in either mode; nothing is written.
        passes: all that were booked.
        marks: where the evidence ends, by writer.
        now_us: the time of the pass.
        reason: why final hours are booked too; empty: they are listed.
    """
    closed_us = closed_until(now_us)
    finality = Finality(passes, now_us=now_us)
    seen = seen_by(passes)
    with reading(ledger, marks) as read:
        read.want_unseen(seen)
        open_us = finality.spans[-1][1] if finality.spans else closed_us
        if finality.spans:
            read.want_heard(seen, until_us=open_us)
            if open_us < closed_us:
                read.want_living(open_us, closed_us)
        first_us = read.first_hour()
        if isinstance(first_us, Missing) or first_us >= closed_us:
            return ReservedPass(booking=Booking(), from_us=Missing("nothing is new"), hours=0)
        hours = range(first_us, closed_us, HOUR_US)
        booking = booked(read, hours, finality, seen, closed_us=closed_us, now_us=now_us, reason=reason)
    placed_late = _placed_late(ledger, booking, seen)
    if placed_late:
        with reading(ledger, marks) as read:
            read.want({workload for workload, _ in placed_late}, first_us)
            again = booked(read, hours, finality, seen, closed_us=closed_us, now_us=now_us, placed_late=placed_late)
        inserted = {_key(row) for row in again.records}
        booking = Booking(
            records=tuple(sorted({*booking.records, *again.records}, key=lambda row: (row.hour_us, _key(row)))),
            corrections=booking.corrections,
            late=tuple(one for one in booking.late if _key(one) not in inserted),
            unplaced=booking.unplaced,
        )
    uncovered = (hour_us for hour_us in hours if not finality.is_covered(hour_us))
    return ReservedPass(
        booking=booking, from_us=next(uncovered, Missing("every hour was covered")), hours=len(hours)
    )  # fmt: skip


def booked(
    read: Reading,
    hours: Sequence[int],
    finality: Finality,
    seen: Mapping[str, int],
    *,
    closed_us: int,
    now_us: int,
    reason: str = "",
    placed_late: frozenset[tuple[str, int]] = frozenset(),
    late_since: Mapping[str, int] | None = None,
) -> Booking:
    """What the workloads asked for come to in these hours, against what stands of them.

    Args:
        read: with the workloads asked for.
        hours: whole hours, by their starts.
        finality: of these hours.
        seen: the marks of what was booked before; no workload that is newer has a record.
        closed_us: where time that nothing ends is cut.
        now_us: the time of the pass.
        reason, placed_late: as in :func:`gpuledger.metering.reserved.book`.
        late_since: the marks beyond which evidence came late, where they are not those seen.
    """
    times = list(read.times(whole(hours), until_us=closed_us))
    written = read.written(whole(hour_us for hour_us in hours if finality.is_covered(hour_us)), seen)
    return book(
        times,
        standing(written),
        placements(read, {time.placement for time in times}),
        is_covered=finality.is_covered,
        is_final=finality.is_final,
        recorded_at_us=now_us,
        placed_late=placed_late,
        behind=lambda workload: read.events_after(workload, seen if late_since is None else late_since),
        reason=reason,
    )


def contradictions(
    read: Reading, hours: Sequence[int], *, closed_us: int, recorded_at_us: int
) -> tuple[Difference, ...]:
    """Every difference between records and events of these covered hours; whoever is asked for already is dropped."""
    read.want((), 0)
    read.want_living(hours[0], hours[-1] + HOUR_US)
    times = list(read.times(whole(hours), until_us=closed_us))
    return book(
        times,
        standing(read.written_of_all(whole(hours))),
        placements(read, {time.placement for time in times}),
        is_covered=lambda _: True,
        is_final=lambda _: True,
        recorded_at_us=recorded_at_us,
        is_listed=True,
    ).late


def _placed_late(ledger: Ledger, booking: Booking, seen: Mapping[str, int]) -> frozenset[tuple[str, int]]:
    """Of what a pass may not book because its hour is final: what was without a placement at the pass before."""
    fresh = [one for one in booking.late if not one.recorded]
    if not fresh:
        return frozenset()
    hours = sorted({one.hour_us for one in fresh})
    with reading(ledger, seen) as read:
        read.want({one.workload for one in fresh}, hours[0])
        before = read.times(whole(hours), until_us=hours[-1] + HOUR_US)
        unplaced = {(time.workload, time.hour_us) for time in before if not time.placement}
    return frozenset((one.workload, one.hour_us) for one in fresh if (one.workload, one.hour_us) in unplaced)


def whole(hours: Iterable[int]) -> list[tuple[int, int]]:
    """Whole hours, by their starts, as the rule takes them."""
    return [(hour_us, hour_us + HOUR_US) for hour_us in hours]


def standing(written: Iterable[Written]) -> dict[Key, Standing]:
    """What stands in the ledger, by key."""
    return standing_of((row.workload, _key(row), row.amount, row.number) for row in written)


def placements(read: Reading, keys: Iterable[str]) -> dict[str, PlacementRow]:
    """The placements of these keys."""
    return read.placements(key for key in keys if key)


def seconds_between(read: Reading, hour_us: int, since_us: int, until_us: int) -> list[tuple[ReservedTime, int]]:
    """Whole seconds in a part of an hour, as differences of one rising sum, so that parts add up to the hour."""
    upto_end = list(read.times([(hour_us, until_us)], until_us=until_us))
    before: dict[tuple[str, str, str], int] = {}
    if since_us > hour_us:
        for time in read.times([(hour_us, since_us)], until_us=since_us):
            before[time.workload, time.placement, time.subject] = time.seconds
    return [(time, time.seconds - before.get((time.workload, time.placement, time.subject), 0)) for time in upto_end]


def _key(row: object) -> Key:
    return (row.meter, row.hour_us, row.host, row.device, row.subject)  # type: ignore[attr-defined]
