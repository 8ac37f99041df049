"""Metering of reserved time: the part of a pass that reads lifecycle events.

A pass asks for the workloads that can have time in the hours that closed, and for those of which events, or
heartbeats of their source, came that no pass has seen. Nobody else is looked at, so with nothing new its work
does not grow with history. A long backlog comes in parts, each of which is booked before the next is derived: memory
is bounded, and nobody waits long to write. A reader asks the same, and shows what the next pass would book.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpuledger.ledger.archived import archived_until
from gpuledger.ledger.booking import ReadyRecords, make_ready, stand_already
from gpuledger.ledger.reserved import Reading, Written, reading
from gpuledger.ledger.store import Ledger
from gpuledger.metering.records import closed_until
from gpuledger.metering.reserved import Key, Standing, book, heads_of, standing_of
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, hour_floor
from gpuledger.model.reserved import Booking, ReservedTime
from gpuledger.model.rows import Pass
from gpuledger.model.workload_rows import PlacementRow
from gpuledger.operations.finality import Finality
from gpuledger.operations.reserved_windows import MakeReading, windows
from gpuledger.operations.touched import seen_by

RECORDS_AT_ONCE = 300_000
"""Records of one transaction, about, save within one hour: some seconds in which nobody else can write."""

_NOTHING = Missing("nothing is new")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedPart:
    """What a pass books of reserved time in one transaction, until the next part is asked for.

    Args:
        booking: rows that were compared with what stood, and what it may not book.
        ready: records that stand ready in the ledger's connection; Missing where there are none.
        from_us: start of the first hour that no pass had covered; Missing where there is none.
        until_us: which hours it covers; of the last part the end of all closed ones.
        hours: how many hours it looked at.
    """

    booking: Booking
    ready: ReadyRecords | Missing
    from_us: int | Missing
    until_us: int
    hours: int


def reserved_parts(
    ledger: Ledger, passes: Sequence[Pass], marks: Mapping[str, int], *, now_us: int, make: MakeReading = Reading
) -> Iterator[ReservedPart]:
    """What a pass for the time ``now_us`` books of reserved time, out of events numbered up to ``marks``.

    Nothing is written here. The last part is given always, also where there is nothing to book.

    Args:
        ledger: open in either mode.
        passes: all that were booked.
        marks: where the evidence ends, by writer.
        now_us: the time of the pass.
        make: makes the readings of hours that closed, where the rule runs on another engine.
    """
    closed_us = closed_until(now_us)
    finality = Finality(passes, now_us=now_us)
    if not finality.spans:
        yield from _Backlog(ledger, marks, Missing("no pass was before"), closed_us, now_us, make).parts()
        return
    open_us = finality.spans[-1][1]
    late: ReservedPart | None = _late_part(ledger, finality, seen_by(passes), marks, now_us=now_us)
    assert late is not None
    if open_us >= closed_us:
        yield late
        return
    if not isinstance(late.ready, Missing):
        yield late
        late = None
    for part in _Backlog(ledger, marks, open_us, closed_us, now_us, make).parts():
        yield part if late is None else _together(late, part)
        late = None


def _together(late: ReservedPart, part: ReservedPart) -> ReservedPart:
    """Late evidence that is booked row by row goes into the transaction of the first hours that closed."""
    first_us = [each for each in (late.from_us, part.from_us) if not isinstance(each, Missing)]
    return ReservedPart(
        booking=Booking(
            records=late.booking.records + part.booking.records,
            corrections=late.booking.corrections + part.booking.corrections,
            late=late.booking.late + part.booking.late,
        ),
        ready=part.ready,
        from_us=min(first_us, default=part.from_us),
        until_us=part.until_us,
        hours=late.hours + part.hours,
    )


class _Backlog:
    """The hours that closed since the last pass, in parts.

    Args:
        open_us: where they begin; Missing where no pass was before: with the first event.
        make: makes the reading.
    """

    def __init__(
        self, ledger: Ledger, marks: Mapping[str, int], open_us: int | Missing, closed_us: int, now_us: int,
        make: MakeReading,
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._marks = marks
        self._open_us = open_us
        self._closed_us = closed_us
        self._now_us = now_us
        self._make = make

    def parts(self) -> Iterator[ReservedPart]:
        """Each to be booked before the next is asked for."""
        begin_us = from_us = self._begin()
        waiting: ReservedPart | None = None
        for window in windows(
            self._ledger, self._marks, begin_us, self._closed_us, cut_us=self._closed_us, make=self._make
        ):
            read, span = window.read, (window.since_us, window.last_us)
            with self._ledger.snapshot():
                known = placements(read, read.placed())
                heads, shared = heads_of(read.runs(*span), known)
                read.book_by_row(None if read.has_records(*span) else shared)
            for number, hours in enumerate(window.steps(RECORDS_AT_ONCE)):
                if waiting is not None:
                    yield waiting
                waiting = self._part(read, hours, None if number else heads, known, from_us)
                from_us = hours.stop
        last = waiting or ReservedPart(
            booking=Booking(), ready=_NOTHING, from_us=_NOTHING, until_us=self._closed_us, hours=0
        )
        yield replace(last, until_us=max(last.until_us, self._closed_us))

    def _begin(self) -> int:
        if not isinstance(self._open_us, Missing):
            return self._open_us
        with reading(self._ledger, self._marks) as read:
            first_us = read.next_event(-(1 << 62))
        return self._closed_us if isinstance(first_us, Missing) else min(hour_floor(first_us), self._closed_us)

    def _part(
        self, read: Reading, hours: range, heads: list[tuple[int, str, str, str, str, int, str]] | None,
        known: Mapping[str, PlacementRow], from_us: int,
    ) -> ReservedPart:  # fmt: skip
        with self._ledger.snapshot():
            read.cut(whole(hours), open_hours=hours)
            ready = make_ready(read, heads, recorded_at_us=self._now_us)
            booking = book(
                list(read.times_by_row()),
                {},
                known,
                is_covered=lambda _: False,
                is_final=lambda _: False,
                recorded_at_us=self._now_us,
            )
        return ReservedPart(
            booking=booking,
            ready=ready if ready.count else _NOTHING,
            from_us=from_us,
            until_us=hours.stop,
            hours=len(hours),
        )


def _late_part(
    ledger: Ledger, finality: Finality, seen: Mapping[str, int], marks: Mapping[str, int], *, now_us: int
) -> ReservedPart:
    """What new evidence changes in hours before the end of those covered: all of it at once, for the marks say so.

    All of them, also where the clock of this pass stands behind that of the pass that closed them.
    """
    open_us = finality.spans[-1][1]
    closed_us = max(open_us, closed_until(now_us))
    with reading(ledger, marks) as read:
        # what a pass by a clock ahead of this one took for late is looked at again
        looked = finality.seen_before(now_us + 1)
        read.want_unseen(looked)
        read.want_heard(looked, until_us=open_us)
        read.drop_from(open_us)
        read.ask_from(archived_until(ledger))
        first_us = read.first_hour()
        if isinstance(first_us, Missing) or first_us >= open_us:
            return ReservedPart(booking=Booking(), ready=_NOTHING, from_us=_NOTHING, until_us=open_us, hours=0)
        hours = range(first_us, open_us, HOUR_US)
        fresh = {hour_us for hour_us in hours if not finality.is_covered(hour_us)}
        read.derive(whole(hours), until_us=closed_us, open_hours=fresh)
        known = placements(read, read.placed())
        heads, shared = heads_of(read.runs(first_us, open_us), known)
        if any(read.has_records(*span) for span in _spans(fresh)):
            read.book_by_row()
        else:
            read.insert_history(seen)
            read.book_by_row(shared)
        ready = make_ready(read, heads, recorded_at_us=now_us)
        if ready.count and stand_already(read):
            read.book_by_row()
            ready = make_ready(read, None, recorded_at_us=now_us)
        booking = _compared(read, finality, known, seen, now_us=now_us, late_since=looked)
    placed_late = _placed_late(ledger, booking, seen)
    if placed_late:
        with reading(ledger, marks) as read:
            read.want({workload for workload, _ in placed_late}, first_us)
            due = sorted({hour_us for _, hour_us in placed_late})
            again = booked(read, due, finality, seen, closed_us=closed_us, now_us=now_us, placed_late=placed_late)
        was_late = {_key(one) for one in booking.late}  # all else is booked already, or stands ready
        inserted = {_key(row): row for row in again.records if _key(row) in was_late}
        booking = Booking(
            records=tuple(sorted([*booking.records, *inserted.values()], key=lambda row: (row.hour_us, _key(row)))),
            corrections=booking.corrections,
            late=tuple(one for one in booking.late if _key(one) not in inserted),
        )
    return ReservedPart(
        booking=booking,
        ready=ready if ready.count else _NOTHING,
        from_us=min(fresh, default=Missing("every hour was covered")),
        until_us=open_us,
        hours=len(hours),
    )


def _spans(hours: Iterable[int]) -> list[tuple[int, int]]:
    """Hours as spans."""
    spans: list[tuple[int, int]] = []
    for hour_us in sorted(hours):
        if spans and spans[-1][1] == hour_us:
            spans[-1] = (spans[-1][0], hour_us + HOUR_US)
        else:
            spans.append((hour_us, hour_us + HOUR_US))
    return spans


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
    """What the workloads asked for come to in these hours, against what stands of them, row by row.

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
    fresh = {hour_us for hour_us in hours if not finality.is_covered(hour_us)}
    read.derive(whole(hours), until_us=closed_us, open_hours=fresh)
    read.book_by_row()
    known = placements(read, read.placed())
    return _compared(
        read, finality, known, seen, now_us=now_us, reason=reason, placed_late=placed_late, late_since=late_since
    )


def _compared(
    read: Reading,
    finality: Finality,
    known: Mapping[str, PlacementRow],
    seen: Mapping[str, int],
    *,
    now_us: int,
    reason: str = "",
    placed_late: frozenset[tuple[str, int]] = frozenset(),
    late_since: Mapping[str, int] | None = None,
) -> Booking:
    """Of what was derived the rows that are not inserted as they are, against what stands."""
    return book(
        list(read.times_by_row()),
        standing(read.written(seen)),
        known,
        is_covered=finality.is_covered,
        is_final=finality.is_final,
        recorded_at_us=now_us,
        placed_late=placed_late,
        behind=lambda workload: read.events_after(workload, seen if late_since is None else late_since),
        reason=reason,
    )


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
