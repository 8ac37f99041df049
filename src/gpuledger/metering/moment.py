"""One moment: which contexts held a device then, how much memory they held, and whether anybody looked.

In: contexts, their sightings, ``driver`` watches, and the moment. Out: :class:`Held` values and one verdict
a device. Spans are half-open, but a look is a moment: what a look saw alive was alive at it. So the last
look of a context that the driver has not settled belongs to it.

Between the last look that saw a context alive and the next look nobody can say. Such a context is told
with its doubt, and so is a settled row that has no start, whose span is only the latest it can have had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from gpuledger.metering.coverage import OK, PRECEDENCE, coverage
from gpuledger.metering.stints import look_span
from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US, iso
from gpuledger.model.quantities import Context, Coverage
from gpuledger.model.reasons import WATCHED, UnknownReason
from gpuledger.model.rounding import nearest
from gpuledger.model.rows import DriverRecord, Sighting, Watch
from gpuledger.model.snapshot import Held, MemoryHeld

NOBODY_LOOKED = (UnknownReason.BEFORE_WATCH, UnknownReason.WATCH_GAP)
"""Verdicts on a moment that no look is about."""

NO_SAMPLE = Missing("no memory sample covers this moment")
"""Memory at a moment between the spans of looking, or in one that the driver's start alone proves."""

UNREADABLE = Missing("its memory could not be read")
"""Memory at a moment in a span whose looks gave none."""

_LATEST = "the row has no start time: this is the latest span it can have had"


def verdicts_at(
    watches: Iterable[Watch], devices: Iterable[tuple[str, str]], *, at_us: int
) -> dict[tuple[str, str], str]:
    """Whether each device was watched at a moment: an ``UnknownReason``, or empty where it was.

    The last moment of a span belongs to it where nobody looked on, and a single look is its moment.

    Args:
        watches: as :func:`gpuledger.metering.coverage.coverage` takes them, those that touch the moment.
        devices: (host, device) of the physical GPUs.
        at_us: the moment, microseconds UTC.
    """
    rows, places = list(watches), list(devices)
    before = _reasons(coverage(rows, places, since_us=at_us - 1, until_us=at_us))
    after = _reasons(coverage(rows, places, since_us=at_us, until_us=at_us + 1))
    found: dict[tuple[str, str], str] = {}
    for place in places:
        reason = after[place]
        if reason in NOBODY_LOOKED and before[place] not in NOBODY_LOOKED:
            reason = before[place]
        if reason in NOBODY_LOOKED:
            reason = _single_look(rows, place, at_us) or reason
        found[place] = "" if reason in WATCHED else reason
    return found


def _reasons(spans: Iterable[Coverage]) -> dict[tuple[str, str], str]:
    return {(span.host, span.device): span.reason or OK for span in spans if span.since_us < span.until_us}


def _single_look(watches: Iterable[Watch], place: tuple[str, str], at_us: int) -> str:
    """What a look without length found at the moment; empty where there was none."""
    host, device = place
    found = {
        watch.status
        for watch in watches
        if watch.source == "driver" and watch.host == host and watch.device in (device, "")
        and watch.since_us == watch.until_us == at_us
    }  # fmt: skip
    order = [*WATCHED, *PRECEDENCE]
    return min(found, key=lambda status: (order.index(status) if status in order else len(order), status), default="")


def held_at(
    found: Iterable[Context],
    sightings: Iterable[Sighting],
    looked_us: Mapping[tuple[str, str], int],
    *,
    at_us: int,
) -> list[Held]:
    """The contexts that held a device at a moment, then those that may have, in the order given.

    Args:
        found: contexts.
        sightings: those behind them.
        looked_us: by (host, device or MIG instance) the last look by the moment.
        at_us: the moment, microseconds UTC.
    """
    looks: dict[tuple[str, str, int, str], list[Sighting]] = {}
    for sighting in sightings:
        looks.setdefault((sighting.host, sighting.device, sighting.pid, sighting.ref), []).append(sighting)
    held: list[Held] = []
    for context in found:
        mine = list(_looks_of(context, looks))
        doubt = _doubt(context, mine, looked_us.get((context.host, context.device)), at_us)
        if doubt is not None:
            since_us, until_us = _around(context, mine, at_us)
            held.append(
                Held(
                    context=context,
                    since_us=since_us,
                    until_us=until_us,
                    memory=NO_SAMPLE if doubt else memory_at(mine, at_us),
                    doubt=doubt,
                    ref=_ref(context, mine, at_us),
                )
            )
    certain = {_place(one.context) for one in held if not one.doubt}
    # a pid holds a device at most once at a time
    return [one for one in held if not one.doubt] + [
        one for one in held if one.doubt and _place(one.context) not in certain
    ]


def _place(context: Context) -> tuple[str, str, int]:
    return (context.host, context.device, context.pid)


def _looks_of(context: Context, looks: Mapping[tuple[str, str, int, str], Sequence[Sighting]]) -> Iterator[Sighting]:
    for ref in context.evidence:
        yield from looks.get((context.host, context.device, context.pid, ref), ())


def memory_at(looks: Iterable[Sighting], at_us: int) -> MemoryHeld | Missing:
    """The mean memory of the span of looking that holds a moment, of several spans the shortest.

    An agent tells by its pulse what goes on, and writes memory later: until then the last sample that is written.
    """
    looks = list(looks)
    around = [look for look in looks if look_span(look)[0] <= at_us <= look.until_us]
    if not around:
        return NO_SAMPLE
    sampled = [one for look in around if (one := _sampled(look)) is not None]
    if sampled:
        # a moment on the edge of two spans belongs to the later one, as every moment does
        return min(sampled, key=lambda one: (one.until_us == at_us > one.since_us, one.until_us - one.since_us))
    if all(not look.number for look in around):
        before = [one for look in looks if look.until_us <= at_us and (one := _sampled(look)) is not None]
        if before:
            return max(before, key=lambda one: one.until_us)
    return UNREADABLE if any(look.samples for look in around) else NO_SAMPLE


def _sampled(look: Sighting) -> MemoryHeld | None:
    since_us, until_us = look_span(look)
    if look.memory_ms:
        mib = nearest(Fraction(look.memory_mib_ms, look.memory_ms))
    elif since_us == until_us and look.samples == 1 and not isinstance(look.peak_memory_mib, Missing):
        mib = look.peak_memory_mib  # a single look: its sample is all that the peak is of
    else:
        return None
    return MemoryHeld(mib=mib, since_us=since_us, until_us=until_us)


def _doubt(context: Context, looks: Sequence[Sighting], looked_us: int | None, at_us: int) -> str | None:
    """Empty where the context held its device, a sentence where it may have, ``None`` where it did not."""
    if any(since_us <= at_us < until_us for since_us, until_us in context.spans):
        seen = any(look_span(look)[0] <= at_us <= look.until_us for look in looks)
        return "" if context.placed != "latest" or seen else _LATEST
    if context.settled:
        return None
    ends = [until_us for since_us, until_us in context.spans if since_us <= at_us]
    if not ends:
        return None
    last_us = max(ends)
    if last_us >= at_us:
        return ""  # its last look
    misses = [missed_us for missed_us in _misses(looks) if missed_us >= last_us]
    if any(missed_us <= at_us for missed_us in misses):
        return None
    if missed_us := min(misses, default=0):
        return f"last seen alive at {iso(last_us)}, and gone at {iso(missed_us)}"
    if again := [since_us for since_us, _ in context.spans if since_us > at_us]:
        return f"seen alive until {iso(last_us)}, and again at {iso(min(again))}"
    if context.open and looked_us is not None and looked_us <= last_us + CLOCK_TOLERANCE_US:
        return f"last seen alive at {iso(last_us)}, and nobody had looked again by then"
    return None


def _around(context: Context, looks: Sequence[Sighting], at_us: int) -> tuple[int, int | Missing]:
    """When it began, and when it ended where it has.

    Without the driver's start all looks at one process are one context, so a look that missed it parts two holdings.
    """
    since_us, until_us = context.spans[0][0], context.last_seen_us
    is_open = context.open
    if not context.settled and isinstance(context.started_at_us, Missing):
        misses = _misses(looks)
        before_us = max((missed_us for missed_us in misses if missed_us <= at_us), default=since_us)
        after_us = min((missed_us for missed_us in misses if missed_us > at_us), default=None)
        since_us = min((look_span(look)[0] for look in looks if look_span(look)[0] >= before_us), default=since_us)
        if after_us is not None:
            until_us = max((look.until_us for look in looks if look.until_us <= after_us), default=until_us)
            is_open = False
    return since_us, Missing(f"not known to have ended; last seen alive at {iso(until_us)}") if is_open else until_us


def _misses(looks: Iterable[Sighting]) -> list[int]:
    """The looks that missed a context that others saw."""
    return [look.gone_at_us for look in looks if not isinstance(look.gone_at_us, Missing)]


def _ref(context: Context, looks: Sequence[Sighting], at_us: int) -> str:
    """The row to explain: the driver's own, else the look nearest to the moment, else any; of rows in the ledger."""
    rows = [ref for ref in context.evidence if ref.startswith(f"{DriverRecord.kind}:")]
    if context.settled and rows:
        return rows[0]
    written = [look for look in looks if look.number]
    if written:
        return min(written, key=lambda look: (_distance_us(look, at_us), -look.since_us, look.ref)).ref
    return context.evidence[0]


def _distance_us(look: Sighting, at_us: int) -> int:
    since_us, until_us = look_span(look)
    return max(since_us - at_us, at_us - until_us, 0)
