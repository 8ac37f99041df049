"""Which stint a sighting belongs to: the settled one it is a look at, else a living one.

One pid holds a device at most once at a time (the driver keeps one live row a pid and GPU, NVIDIA
open kernel modules ``gpu_acct.c``). So all evidence of one pid and device is laid over one line of
time, stronger evidence first, and weaker evidence only fills what is left of it:

1. settled rows with a start, exactly as long as the driver says;
   contexts booked by kernel events are each their own, from open to exec or exit: only a row that began in
   that very time, and came late, is the same one;
2. settled rows without a start, which take the looks at a context that ended before they were read;
3. living contexts with a driver start: from that start to the last look, because the driver proves
   that they went on while nobody looked;
4. living contexts of a known process: the spans of looking, gaps stay gaps;
5. living contexts of a process that could not be read: the same, one for each run of looks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence

from gpuledger.metering.hours import whole_ms
from gpuledger.metering.runs import latest, latest_end, match, runs_of, settle
from gpuledger.metering.runs import living as living_runs
from gpuledger.metering.settled import Startless, started_stints, startless, without_twins
from gpuledger.metering.spans import Span, inside, subtract, union
from gpuledger.metering.stints import SAME_START_US, STAMP_US, Lifetimes, Stint, look_span
from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.model.reasons import BY_EVENTS
from gpuledger.model.rows import DriverRecord, Sighting

_CUT_US = 1_000
"""The driver cuts a context's time to whole milliseconds: it ended so much later at most."""

_IMPORT = "import"
"""The method of looks that a dump gave."""


def stints_of(rows: Sequence[DriverRecord], sightings: Sequence[Sighting], lifetimes: Lifetimes) -> list[Stint]:
    """Every stint of one pid on one device.

    Args:
        rows, sightings: of one (host, device, pid), any order, duplicates allowed.
        lifetimes: when processes were born, and which are proven dead.
    """
    settled = started_stints(rows)
    loose = without_twins(startless(row for row in rows if isinstance(row.started_at_us, Missing)), settled)
    if not sightings:
        return settled + [latest(group, []) for group in loose]
    ordered = sorted(sightings, key=_order)
    booked, seen = _booked(ordered, settled)
    living, unplaced = _with_start(seen, settled)
    if not living and not unplaced and not booked:  # by far the most: every look is at a settled context
        return settled + [latest(group, []) for group in loose]
    loose = _lend_starts(loose, living, settled)
    settled.sort(key=lambda stint: stint.span)
    homes = _Homes(settled, living, unplaced, lifetimes)
    homeless: list[Sighting] = []
    for sighting in unplaced:
        stint = homes.of(sighting)
        if stint is None:
            homeless.append(sighting)
        else:
            stint.sightings.append(sighting)
    host, device, pid = ordered[0].host, ordered[0].device, ordered[0].pid
    runs = runs_of(homeless, loose)
    late = settle(loose, runs, (host, pid), lifetimes)
    observed = list(_observed(settled, booked, living, *living_runs(runs, host, device, pid)))
    _end_the_past(observed, settled, late, lifetimes)
    return settled + late + observed


def _order(sighting: Sighting) -> tuple[int, int, str, int, str]:
    since_us, until_us = look_span(sighting)
    return (since_us, until_us, sighting.boot_id, sighting.start_ticks, sighting.ref)


def _living(sighting: Sighting, start_us: int) -> Stint:
    return Stint(sighting.host, sighting.device, sighting.pid, start_us, (), False, 0, "driver", [])


def _with_start(sightings: Iterable[Sighting], settled: Sequence[Stint]) -> tuple[list[Stint], list[Sighting]]:
    """Sightings that carry the driver's start: to the row of that start, else into living stints."""
    starts = [stint.started_us or 0 for stint in settled]
    by_start: dict[int, list[Sighting]] = {}
    without: list[Sighting] = []
    for sighting in sightings:
        start_us = sighting.context_started_at_us
        if isinstance(start_us, Missing):
            without.append(sighting)
        elif (place := _nearest(starts, start_us)) is not None:
            settled[place].sightings.append(sighting)
        else:
            by_start.setdefault(start_us, []).append(sighting)
    living: list[Stint] = []
    for start_us, same in sorted(by_start.items()):
        stint = _living(same[0], start_us)
        stint.sightings = same
        stint.spans = ((start_us, max(start_us, stint.last_look_us)),)
        living.append(stint)
    return living, without


def _booked(ordered: Iterable[Sighting], settled: Sequence[Stint]) -> tuple[list[Stint], list[Sighting]]:
    """Contexts that events tell of, whose rows the driver lost, each a stint of its own; and all other sightings."""
    booked: dict[tuple[int, int, str, int], Stint] = {}
    seen: list[Sighting] = []
    for sighting in ordered:
        if sighting.method not in BY_EVENTS:
            seen.append(sighting)
            continue
        since_us, until_us = span = look_span(sighting)
        late = next((one for one in settled if since_us - STAMP_US <= (one.started_us or 0) <= until_us), None)
        if late is not None:
            late.sightings.append(sighting)
            continue
        key = (since_us, until_us, sighting.boot_id, sighting.start_ticks)
        stint = booked.setdefault(
            key, Stint(sighting.host, sighting.device, sighting.pid, None, (span,), False, 0, "looks", [])
        )
        stint.sightings.append(sighting)
    return list(booked.values()), seen


def _nearest(starts: Sequence[int], start_us: int) -> int | None:
    """The place of the start that is the same: the driver stamps a context once, and keeps that."""
    after = bisect_left(starts, start_us)
    near = [
        (abs(starts[place] - start_us), place)
        for place in (after - 1, after)
        if 0 <= place < len(starts) and abs(starts[place] - start_us) <= SAME_START_US
    ]
    return min(near)[1] if near else None


def _lend_starts(loose: Sequence[Startless], living: list[Stint], settled: list[Stint]) -> list[Startless]:
    """A row without a start that ends where a living context with one was last seen is its settlement.

    Moves such stints from ``living`` to ``settled``; returns the rows that fit none. Where a row fits two,
    the longer context takes it, because what is left over counts beside the row.
    """
    longest_first = sorted(living, key=lambda stint: (stint.spans[0][0] - stint.spans[0][1], stint.spans))
    rows = sorted(loose, key=lambda group: group.row.context_ms)  # of two rows that fit, the tighter one
    pairs = match([[n for n, row in enumerate(rows) if _ends_there(row, stint)] for stint in longest_first])
    for place, place_of_row in pairs.items():
        stint, group = longest_first[place], rows[place_of_row]
        start_us = stint.spans[0][0]
        stint.spans = ((start_us, start_us + group.row.context_ms * 1000),)
        stint.settled, stint.context_ms = True, group.row.context_ms
        stint.rows, stint.read_us = group.rows, group.read_us
        settled.append(stint)
    living[:] = [stint for stint in living if not stint.settled]
    used = set(pairs.values())
    return [group for n, group in enumerate(rows) if n not in used]


def _ends_there(group: Startless, stint: Stint) -> bool:
    end_us = (stint.started_us or 0) + group.row.context_ms * 1000
    latest_us = latest_end(group.read_us, stint.last_look_us, stint.missed_us)
    return stint.last_look_us - CLOCK_TOLERANCE_US <= end_us <= latest_us + CLOCK_TOLERANCE_US


class _Homes:
    """Finds the settled or living stint that a sighting without a driver start is a look at."""

    def __init__(
        self, settled: Sequence[Stint], living: Sequence[Stint], looks: Iterable[Sighting], lifetimes: Lifetimes
    ) -> None:
        self._lifetimes = lifetimes
        self._gone: dict[tuple[str, int], list[int]] = {}
        for look in looks:
            if not isinstance(look.gone_at_us, Missing):
                insort(self._gone.setdefault((look.boot_id, look.start_ticks), []), look.gone_at_us)
        self._settled = [stint for stint in settled if stint.started_us is not None]
        self._living = [(stint, stint.span, frozenset(stint.processes)) for stint in living]
        self._starts = [stint.span[0] for stint in self._settled]
        self._furthest: list[int] = []
        for stint in self._settled:
            self._furthest.append(max(stint.span[1], self._furthest[-1] if self._furthest else 0))

    def of(self, sighting: Sighting) -> Stint | None:
        """The stint: one that holds the look exactly before one that holds it within the tolerance."""
        span = look_span(sighting)
        best: Stint | None = None
        place = bisect_right(self._starts, span[0] + CLOCK_TOLERANCE_US) - 1
        while place >= 0 and self._furthest[place] >= span[1] - CLOCK_TOLERANCE_US:
            stint = self._settled[place]
            place -= 1
            if not inside(span, stint.span, CLOCK_TOLERANCE_US) or not self._was_born(sighting, stint):
                continue
            if inside(span, stint.span):
                return stint
            if not self._is_apart(sighting, stint):
                best = best or stint
        if best is not None:
            return best
        process = (sighting.boot_id, sighting.start_ticks)
        fits = [
            stint
            for stint, held, processes in self._living
            if inside(span, held, CLOCK_TOLERANCE_US)
            and (not sighting.start_ticks or not processes or process in processes)
        ]
        return fits[-1] if fits else None

    def _is_apart(self, sighting: Sighting, stint: Stint) -> bool:
        """Whether a look is at a context before or after a row, of the same process and however near.

        The agent's clock is the one that the driver stamps by: what a look saw alive had not ended before it, and
        what was gone had begun before that. Looks of an import have another clock.
        """
        if not sighting.start_ticks or sighting.method == _IMPORT:
            return False
        since_us, until_us = look_span(sighting)
        gone = self._gone.get((sighting.boot_id, sighting.start_ticks), [])
        place = bisect_left(gone, until_us)
        is_before = place < len(gone) and gone[place] <= stint.span[0]
        return is_before or since_us > stint.span[1] + _CUT_US

    def _was_born(self, sighting: Sighting, stint: Stint) -> bool:
        """Whether the process seen can have opened the device when the stint began."""
        if not sighting.start_ticks:
            return True
        born_us = self._lifetimes.born((sighting.host, sighting.boot_id, sighting.pid, sighting.start_ticks))
        return born_us is None or born_us <= stint.span[0] + CLOCK_TOLERANCE_US


def _observed(
    settled: Iterable[Stint],
    booked: Sequence[Stint],
    living: Sequence[Stint],
    known: Sequence[Stint],
    unknown: Sequence[Stint],
) -> Iterator[Stint]:
    """Living stints with the time that no stronger evidence has taken."""
    taken = list(union(span for stint in settled for span in stint.spans))
    measures: tuple[tuple[Sequence[Stint], Callable[[Stint], tuple[Span, ...]]], ...] = (
        (booked, lambda stint: stint.spans),
        (living, lambda stint: stint.spans),
        (known, _looked),
        (unknown, _looked),
    )
    for stints, measure in measures:
        for stint in stints:
            whole = measure(stint)
            stint.spans = subtract(whole, taken) or ((whole[0][0], whole[0][0]),)
            stint.context_ms = whole_ms(stint.spans)
            for span in stint.spans:
                if span[0] < span[1]:
                    insort(taken, span)
            yield stint


def _end_the_past(
    observed: Iterable[Stint], settled: Sequence[Stint], late: Sequence[Stint], lifetimes: Lifetimes
) -> None:
    """Mark living stints that are over: missed by a later look, their process dead, their pid in a later context."""
    stints = [*settled, *late, *observed]
    begun = [stint.started_us for stint in stints if stint.started_us is not None]
    begun += [look_span(look)[0] for stint in stints if stint.started_us is None for look in stint.sightings[:1]]
    latest_us = max(begun)
    for stint in observed:
        last_us, missed_us = stint.last_look_us, stint.missed_us
        stint.over = (
            latest_us > last_us
            or (missed_us is not None and missed_us >= last_us)
            or any(lifetimes.died((stint.host, boot_id, stint.pid, ticks)) for boot_id, ticks in stint.processes)
            or any(inside((last_us, last_us), other.span, CLOCK_TOLERANCE_US) for other in settled)
        )


def _looked(stint: Stint) -> tuple[Span, ...]:
    return union(look_span(look) for look in stint.sightings)
