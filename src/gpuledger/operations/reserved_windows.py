"""Long spans of reserved time in windows: so many events at a time, however many hours they lie apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gpuledger.ledger.reserved import Reading, make_relations
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, hour_floor

EVENTS_AT_ONCE = 150_000
"""Events of a window, at most, save within one hour: their intervals are derived together."""


MakeReading = Callable[[Ledger, Mapping[str, int]], Reading]
"""Makes a reading out of rows numbered up to marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Hours whose intervals stand derived, until the next window is asked for.

    Args:
        read: what was asked, with the intervals.
        since_us: start of its first hour.
        last_us: from this hour on nobody has time in it; ``since_us`` where nobody has any.
        until_us: its end.
    """

    read: Reading
    since_us: int
    last_us: int
    until_us: int

    def steps(self, rows: int) -> Iterator[range]:
        """The hours that have time, in turns of about so many rows."""
        running = self.read.running_us(self.since_us, self.last_us) // HOUR_US + 1
        hours = (self.last_us - self.since_us) // HOUR_US
        step_us = max(1, hours * rows // running) * HOUR_US
        for start_us in range(self.since_us, self.last_us, step_us):
            yield range(start_us, min(start_us + step_us, self.last_us), HOUR_US)


def windows(
    ledger: Ledger,
    marks: Mapping[str, int],
    since_us: int,
    until_us: int,
    *,
    cut_us: int,
    make: MakeReading = Reading,
) -> Iterator[Window]:
    """The hours of [since, until), in the order of time. Between two windows the ledger may be written.

    Args:
        ledger: open in either mode; nobody else may derive through it meanwhile.
        marks: where the evidence ends, by writer.
        since_us, until_us: whole hours.
        cut_us: where time that nothing ends is cut.
        make: makes the reading, where the rule runs on another engine.
    """
    make_relations(ledger)
    read: Reading | None = None
    at_us = since_us
    while at_us < until_us:
        with ledger.snapshot():
            is_first = read is None
            read = read or make(ledger, marks)
            told_us = read.event_after(at_us, EVENTS_AT_ONCE)
            end_us = until_us if isinstance(told_us, Missing) else max(hour_floor(told_us), at_us + HOUR_US)
            end_us = min(end_us, until_us)
            (read.want_living if is_first else read.want_next)(at_us, end_us)
            read.derive((), until_us=cut_us, cut=False, end_us=end_us)
            last_us = -(-read.running_until(at_us, end_us) // HOUR_US) * HOUR_US
        yield Window(read=read, since_us=at_us, last_us=max(at_us, min(last_us, end_us)), until_us=end_us)
        at_us = end_us
