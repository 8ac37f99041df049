"""Why a context has no name: what the naming watch of its host can and cannot have seen.

In: the ``process`` watches of every host. Out: a :class:`Cause` for a context that nobody saw alive,
whose span [S, E] the driver gave. F is the first moment that the host's naming was watched, and an
interval is the time between two polls. The first line that holds decides:

====================================================================  ===================
holds                                                                 cause
====================================================================  ===================
no naming watch of this host at all                                   before-watch
E <= F                                                                before-watch
S < F and E <= F + 2 intervals: no poll need have met it              before-watch
an ``events-lost`` watch overlaps [S, E]                              events-lost
some of [S, E] after F was not watched                                watch-gap
all of it was watched by kernel events, and none told of it           identity-unreadable
else, however long it lived                                           between-samples
====================================================================  ===================

Two intervals, not one: a poll lists the living first and reads ``/proc`` after, and may come late.

Else only a look that saw the very context alive can say ``identity-unreadable``
(:mod:`gpuledger.metering.contexts`). A watched span does not prove that a look met what lived in it:
a span stays unbroken although looks come late, a single look is a moment, and a process can be hidden
from the lists of the living (MPS, namespaces).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from gpuledger.metering.spans import Span, overlapping, union
from gpuledger.model.reasons import BY_EVENTS, Cause, UnknownReason
from gpuledger.model.rows import Watch

POLLS_TO_MEET = 2
"""Intervals of watching that a poll on time needs to meet a living process."""


class NamingWatch:
    """The naming watch of one host, ready to be asked.

    Args:
        watches: its ``process`` rows, any order, duplicates allowed.
    """

    def __init__(self, watches: Iterable[Watch]) -> None:
        watches = list(watches)
        rows = sorted({(w.since_us, w.until_us, w.interval_ms * 1000, w.status) for w in watches})
        self._first_us = rows[0][0] if rows else None
        self._first_interval_us = max((row[2] for row in rows if row[0] == self._first_us), default=0)
        ok = [(since, until, interval) for since, until, interval, status in rows if status == "ok"]
        self._watched = union((since, until) for since, until, _ in ok if since < until)
        self._in_force = [(since, interval) for since, _, interval in ok if interval]
        told = {(w.since_us, w.until_us) for w in watches if w.method in BY_EVENTS and w.status == "ok"}
        self._by_events = union(span for span in told if span[0] < span[1])
        self._lost = union((since, until) for since, until, _, status in rows if status == UnknownReason.EVENTS_LOST)

    def interval_us(self, at_us: int) -> int:
        """The interval of the looking in force at a moment, in microseconds; 0 where there was none."""
        place = bisect_right(self._in_force, (at_us, 1 << 62))
        return self._in_force[max(place - 1, 0)][1] if self._in_force else 0

    def polled_us(self, at_us: int) -> int:
        """The same where processes were named by polling; 0 where kernel events told their ends."""
        return 0 if _touches(self._by_events, at_us, at_us) else self.interval_us(at_us)

    def cause(self, since_us: int, until_us: int) -> Cause:
        """Why a context of this span, which nobody saw alive, has no name, by the table above."""
        first_us = self._first_us
        if first_us is None or until_us <= first_us:
            return Cause.BEFORE_WATCH
        if since_us < first_us and until_us <= first_us + POLLS_TO_MEET * self._first_interval_us:
            return Cause.BEFORE_WATCH
        if _touches(self._lost, since_us, until_us):
            return Cause.EVENTS_LOST
        since_us = max(since_us, first_us)
        if _covers(self._by_events, since_us, until_us):
            return Cause.IDENTITY_UNREADABLE
        return Cause.BETWEEN_SAMPLES if _covers(self._watched, since_us, until_us) else Cause.WATCH_GAP


def naming_watches(watches: Iterable[Watch]) -> dict[str, NamingWatch]:
    """The naming watch of each host."""
    by_host: dict[str, list[Watch]] = {}
    for watch in watches:
        if watch.source == "process":
            by_host.setdefault(watch.host, []).append(watch)
    return {host: NamingWatch(rows) for host, rows in by_host.items()}


UNWATCHED = NamingWatch(())
"""The naming watch of a host that never had one."""


def _covers(spans: tuple[Span, ...], since_us: int, until_us: int) -> bool:
    """Whether one of the spans holds all of this one; of a moment, whether it touches it."""
    if since_us >= until_us:
        return _touches(spans, since_us, until_us)
    return list(overlapping(spans, since_us, until_us)) == [(since_us, until_us)]


def _touches(spans: tuple[Span, ...], since_us: int, until_us: int) -> bool:
    place = bisect_right(spans, (until_us, 1 << 62))
    return place > 0 and spans[place - 1][1] >= since_us
