"""Why a context has no name: what the naming watch of its host can and cannot have seen.

In: the ``process`` watches of every host. Out: a :class:`Cause` for a context whose span [S, E] the
driver gave. F is the first moment that the host's naming was watched, and an interval is the time
between two polls. The first line that holds decides:

====================================================================  ===================
holds                                                                 cause
====================================================================  ===================
no naming watch of this host at all                                   before-watch
E <= F                                                                before-watch
S < F and E <= F + 2 intervals: no poll need have met it              before-watch
an ``events-lost`` watch overlaps [S, E]                              events-lost
a single look fell into [S, E]                                        identity-unreadable
[S, E] holds 2 intervals of unbroken watching: a poll must have met   identity-unreadable
some of [S, E] after F was not watched                                watch-gap
else                                                                  between-samples
====================================================================  ===================

Two intervals, not one: a poll lists the living first and reads ``/proc`` after, and may come late.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from gpuledger.metering.spans import Span, overlapping, union
from gpuledger.model.reasons import Cause, UnknownReason
from gpuledger.model.rows import Watch

POLLS_TO_MEET = 2
"""Intervals of unbroken watching in which a poll must have met a living process."""


class NamingWatch:
    """The naming watch of one host, ready to be asked.

    Args:
        watches: its ``process`` rows, any order, duplicates allowed.
    """

    def __init__(self, watches: Iterable[Watch]) -> None:
        rows = sorted({(w.since_us, w.until_us, w.interval_ms * 1000, w.status) for w in watches})
        self._first_us = rows[0][0] if rows else None
        self._first_interval_us = max((row[2] for row in rows if row[0] == self._first_us), default=0)
        ok = [(since, until, interval) for since, until, interval, status in rows if status == "ok"]
        self._looks = [since for since, until, interval in ok if since == until and not interval]
        self._watched = union((since, until) for since, until, _ in ok if since < until)
        self._by_interval: dict[int, tuple[Span, ...]] = {
            interval: union((since, until) for since, until, other in ok if other == interval and since < until)
            for interval in sorted({row[2] for row in ok})
        }
        self._in_force = [(since, interval) for since, _, interval in ok if interval]
        self._lost = union((since, until) for since, until, _, status in rows if status == UnknownReason.EVENTS_LOST)

    def interval_us(self, at_us: int) -> int:
        """The interval of the polling in force at a moment, in microseconds; 0 where there was none."""
        place = bisect_right(self._in_force, (at_us, 1 << 62))
        return self._in_force[max(place - 1, 0)][1] if self._in_force else 0

    def cause(self, since_us: int, until_us: int) -> Cause:
        """Why a context of this span has no name, by the table above."""
        first_us = self._first_us
        if first_us is None or until_us <= first_us:
            return Cause.BEFORE_WATCH
        if since_us < first_us and until_us <= first_us + POLLS_TO_MEET * self._first_interval_us:
            return Cause.BEFORE_WATCH
        if _touches(self._lost, since_us, until_us):
            return Cause.EVENTS_LOST
        if self._was_met(since_us, until_us):
            return Cause.IDENTITY_UNREADABLE
        since_us = max(since_us, first_us)
        watched = list(overlapping(self._watched, since_us, until_us))
        if watched == [(since_us, until_us)] or (since_us >= until_us and _touches(self._watched, since_us, until_us)):
            return Cause.BETWEEN_SAMPLES
        return Cause.WATCH_GAP

    def _was_met(self, since_us: int, until_us: int) -> bool:
        place = bisect_left(self._looks, since_us)
        if place < len(self._looks) and self._looks[place] <= until_us:
            return True
        slowest = 0
        for interval, spans in self._by_interval.items():
            for low, high in overlapping(spans, since_us, until_us):
                slowest = max(slowest, interval)
                if high - low >= POLLS_TO_MEET * interval:
                    return True
        return slowest > 0 and any(
            high - low >= POLLS_TO_MEET * slowest for low, high in overlapping(self._watched, since_us, until_us)
        )


def naming_watches(watches: Iterable[Watch]) -> dict[str, NamingWatch]:
    """The naming watch of each host."""
    by_host: dict[str, list[Watch]] = {}
    for watch in watches:
        if watch.source == "process":
            by_host.setdefault(watch.host, []).append(watch)
    return {host: NamingWatch(rows) for host, rows in by_host.items()}


UNWATCHED = NamingWatch(())
"""The naming watch of a host that never had one."""


def _touches(spans: tuple[Span, ...], since_us: int, until_us: int) -> bool:
    place = bisect_right(spans, (until_us, 1 << 62))
    return place > 0 and spans[place - 1][1] >= since_us
