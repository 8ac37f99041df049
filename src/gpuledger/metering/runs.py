"""Runs of looks at contexts whose start the driver did not give, and the finished rows that settle them.

A run is what a pid's looks show as one context: looks that follow each other without a gap, and over a
gap as long as no look missed the context and no finished row of the pid was read in it. A finished row
without a start (CSV, XML) is matched to the last run that had ended when the row was first read, if the
run fits into the row's length. That is what keeps a context from being counted as observed and as
settled where no driver start ties the two together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuledger.metering.hours import whole_ms
from gpuledger.metering.settled import Startless
from gpuledger.metering.spans import Span, inside, union
from gpuledger.metering.stints import Lifetimes, Stint, look_span
from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.model.rows import Sighting


@dataclass(slots=True)
class Run:
    """Looks at one context.

    Args:
        process: (boot_id, start_ticks) of the process seen; ("", 0) where ``/proc`` was not readable.
        looks: in the order of time.
        until_us: the last look.
        missed_us: the look that missed the context; ``None`` where none did.
    """

    process: tuple[str, int]
    looks: list[Sighting]
    until_us: int
    missed_us: int | None

    def add(self, look: Sighting) -> None:
        """One more look, not earlier than the others."""
        self.looks.append(look)
        self.until_us = max(self.until_us, look.until_us)
        if not isinstance(look.gone_at_us, Missing):
            self.missed_us = max(look.gone_at_us, self.missed_us or look.gone_at_us)

    @property
    def since_us(self) -> int:
        """The first look."""
        return look_span(self.looks[0])[0]

    @property
    def never_accounted(self) -> bool:
        """Whether the driver does not account the context, so that no row of the driver is about it."""
        return all(look.accounted == "no" for look in self.looks)

    def spans(self) -> tuple[Span, ...]:
        """The time of looking."""
        return union(look_span(look) for look in self.looks)


def runs_of(looks: Iterable[Sighting], loose: Sequence[Startless]) -> list[Run]:
    """The runs of one pid on one device, known processes first.

    Args:
        looks: in the order of time.
        loose: rows without a start; between their readings contexts end.
    """
    reads = sorted({group.read_us for group in loose})
    known: dict[tuple[str, int], list[Run]] = {}
    unread: list[Sighting] = []
    for look in looks:
        if look.start_ticks:
            process = (look.boot_id, look.start_ticks)
            _extend(known.setdefault(process, []), process, look, reads)
        else:
            unread.append(look)
    runs = [run for same in known.values() for run in same]
    held = [(span, run) for run in runs for span in run.spans()]
    unknown: list[Run] = []
    for look in unread:
        span = look_span(look)
        owner = next(
            (
                run
                for other, run in held
                if inside(span, other, CLOCK_TOLERANCE_US) and (run.missed_us is None or span[1] < run.missed_us)
            ),
            None,
        )
        if owner is None:
            _extend(unknown, ("", 0), look, reads)
        else:
            owner.add(look)
    return runs + unknown


def _extend(runs: list[Run], process: tuple[str, int], look: Sighting, reads: Sequence[int]) -> None:
    since_us = look_span(look)[0]
    if runs:
        run = runs[-1]
        if since_us <= run.until_us or not _ended_between(run, since_us, reads):
            run.add(look)
            return
    run = Run(process, [], look.until_us, None)
    run.add(look)
    runs.append(run)


def _ended_between(run: Run, since_us: int, reads: Sequence[int]) -> bool:
    """Whether something shows that a run ended before the next look: it was missed, or a row was read."""
    if run.missed_us is not None and run.missed_us >= run.until_us:
        return True
    return bisect_right(reads, run.until_us) < bisect_right(reads, since_us)


def settle(
    loose: Sequence[Startless], runs: Sequence[Run], place: tuple[str, int], lifetimes: Lifetimes
) -> list[Stint]:
    """Stints of rows without a start, each with the looks it settles, which leave their run.

    Whole runs first, matched so that as much observed time as possible finds a row: where two runs
    could be a row's, the longer one is taken, because what is left over counts beside the row. Then a
    row that is left takes the last looks of a run, as many as fit: a run over a gap can be looks at two.

    Args:
        loose: the rows.
        runs: changed: looks that a row settles are taken out.
        place: host and pid.
        lifetimes: when processes were born.
    """
    rows = sorted(loose, key=lambda group: (group.read_us, group.row.context_ms))
    weights = {id(run): whole_ms(run.spans()) for run in runs}
    open_runs = sorted(
        (run for run in runs if not run.never_accounted), key=lambda run: (-weights[id(run)], -run.until_us)
    )
    ends = sorted(run.until_us for run in runs)
    earliest_us = [_begin(run, ends, place, lifetimes) for run in open_runs]
    pairs = _read_when_missed(rows, open_runs, earliest_us)
    used = set(pairs.values())
    left = [n for n in range(len(open_runs)) if n not in pairs]
    free = [n for n in range(len(rows)) if n not in used]
    fits = [[n for n in free if _fits(rows[n], open_runs[m], earliest_us[m], open_runs[m].since_us)] for m in left]
    pairs.update({left[place_of_run]: row for place_of_run, row in match(fits).items()})
    looks_of: dict[int, list[Sighting]] = {}
    for place_of_run, place_of_row in pairs.items():
        run = open_runs[place_of_run]
        looks_of[place_of_row], run.looks = run.looks, []
    for place_of_row, group in enumerate(rows):
        if place_of_row not in looks_of:
            looks_of[place_of_row] = _last_looks(group, open_runs, earliest_us)
    return [latest(group, looks_of[place_of_row]) for place_of_row, group in enumerate(rows)]


def _read_when_missed(rows: Sequence[Startless], runs: Sequence[Run], earliest_us: Sequence[int]) -> dict[int, int]:
    """Pairs of a run and the row that was first read by the very look that missed it: an agent's usual case."""
    read: dict[int, list[int]] = {}
    for place_of_row, group in enumerate(rows):
        read.setdefault(group.read_us, []).append(place_of_row)
    pairs: dict[int, int] = {}
    for place_of_run, run in enumerate(runs):
        waiting = read.get(run.missed_us, []) if run.missed_us is not None else []
        for place_of_row in waiting:
            if _fits(rows[place_of_row], run, earliest_us[place_of_run], run.since_us):
                pairs[place_of_run] = place_of_row
                waiting.remove(place_of_row)
                break
    return pairs


def _begin(run: Run, ends: Sequence[int], place: tuple[str, int], lifetimes: Lifetimes) -> int:
    """The earliest moment the context of a run can have begun: its process was born, the run before it over.

    Args:
        ends: last looks of all runs, sorted.
    """
    host, pid = place
    born_us = lifetimes.born((host, run.process[0], pid, run.process[1])) if run.process[1] else None
    before = bisect_right(ends, run.since_us)
    if before and ends[before - 1] == run.until_us:  # its own single look
        before -= 1
    return max(ends[before - 1] if before else 0, born_us or 0)


def _fits(group: Startless, run: Run, begin_us: int, since_us: int) -> bool:
    """Whether a row can be about the looks of a run from ``since_us`` on: it ended after them, and is long enough.

    Nor may it be longer than the time from ``begin_us`` to the look that missed the context.
    """
    length_us = group.row.context_ms * 1000
    end_us = latest_end(group.read_us, run.until_us, run.missed_us)
    return (
        run.until_us < group.read_us
        and run.until_us - since_us <= length_us + CLOCK_TOLERANCE_US
        and begin_us + length_us <= end_us + CLOCK_TOLERANCE_US
    )


def _last_looks(group: Startless, runs: Iterable[Run], earliest_us: Sequence[int]) -> list[Sighting]:
    """The last looks of a run that fit into a row; they leave the run. The run seen last comes first."""
    for run, begin_us in sorted(zip(runs, earliest_us, strict=True), key=lambda pair: -pair[0].until_us):
        first_us = run.until_us - group.row.context_ms * 1000 - CLOCK_TOLERANCE_US
        looks = [look for look in run.looks if look_span(look)[0] >= first_us]
        if looks and _fits(group, run, begin_us, look_span(looks[0])[0]):
            run.looks = [look for look in run.looks if look_span(look)[0] < first_us]
            run.until_us = max((look.until_us for look in run.looks), default=run.until_us)
            return looks
    return []


def match(fits: Sequence[Sequence[int]]) -> dict[int, int]:
    """A largest matching: left place to right place, each used once (augmenting paths, breadth first).

    A left place once matched stays matched, so with the weightiest first the matched weight is largest.

    Args:
        fits: for each left place the right places it can have, the preferred first.
    """
    right_of: dict[int, int] = {}
    left_of: dict[int, int] = {}
    for left in range(len(fits)):
        reached: dict[int, int] = {}
        waiting = [left]
        for current in waiting:
            for right in fits[current]:
                if right in reached:
                    continue
                reached[right] = current
                if right in left_of:
                    waiting.append(left_of[right])
                    continue
                step: int | None = right
                while step is not None:
                    owner = reached[step]
                    before = right_of.get(owner)
                    right_of[owner], left_of[step] = step, owner
                    step = before
                waiting.clear()
                break
    return right_of


def latest_end(read_us: int, last_look_us: int, missed_us: int | None) -> int:
    """The latest moment a context can have ended: when its row was read, or a look after the last one missed it."""
    return read_us if missed_us is None or missed_us < last_look_us else min(read_us, missed_us)


def latest(group: Startless, looks: list[Sighting]) -> Stint:
    """A row in the latest span it can have had: over by its first reading, begun by its first look."""
    row = group.row
    first_look_us = min((look_span(look)[0] for look in looks), default=row.read_at_us)
    since_us = min(row.read_at_us - row.context_ms * 1000, first_look_us)
    span = (since_us, since_us + row.context_ms * 1000)
    return Stint(
        row.host, row.device, row.pid, None, (span,), True, row.context_ms, "latest", group.rows, looks, group.read_us
    )


def living(runs: Iterable[Run], host: str, device: str, pid: int) -> tuple[list[Stint], list[Stint]]:
    """Stints of the looks that nothing settled: one for each known process, and one for each other run."""
    known: dict[tuple[str, int], Stint] = {}
    unknown: list[Stint] = []
    for run in runs:
        if not run.looks:
            continue
        stint = Stint(host, device, pid, None, (), False, 0, "looks", [])
        if run.process[1]:
            stint = known.setdefault(run.process, stint)
        else:
            unknown.append(stint)
        stint.sightings.extend(run.looks)
    return list(known.values()), unknown
