"""Which hours passes have covered, since when each is final, and what of its evidence came late."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import accumulate

from gpuledger.metering.reserved import FINAL_AFTER_US
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.rows import Pass
from gpuledger.operations.evidence import covered_spans


class Finality:
    """What was covered by passes, and by which first.

    Args:
        passes: all that were booked.
        now_us: the time that is asked about.
    """

    def __init__(self, passes: Iterable[Pass], *, now_us: int) -> None:
        self._rows = sorted(passes, key=lambda row: row.at_us)
        self.spans = covered_spans(self._rows)
        self._now_us = now_us

    @property
    def is_behind(self) -> bool:
        """Whether a pass ran by a clock that is ahead of the time that is asked about."""
        return bool(self._rows) and self._rows[-1].at_us > self._now_us

    def is_covered(self, hour_us: int) -> bool:
        """Whether any pass covered the hour."""
        place = bisect_right(self._starts, hour_us) - 1
        return place >= 0 and hour_us < self._first[place][1]

    def final_from(self, hour_us: int) -> int | Missing:
        """When the hour is final: 48 hours after the first pass that covered it."""
        place = bisect_right(self._starts, hour_us) - 1
        if place < 0 or hour_us >= self._first[place][1]:
            return Missing("no pass has covered this hour")
        return self._first[place][2] + FINAL_AFTER_US

    def is_final(self, hour_us: int) -> bool:
        """Whether the hour is final by now."""
        from_us = self.final_from(hour_us)
        return not isinstance(from_us, Missing) and from_us <= self._now_us

    def final_spans(self, since_us: int, until_us: int) -> Iterator[tuple[int, int]]:
        """The parts of a window, in whole hours, that are final and became so at one time each."""
        first_us = -(-since_us // HOUR_US) * HOUR_US
        for start_us, end_us, at_us in self._first:
            low_us, high_us = max(start_us, first_us), min(end_us, until_us)
            if low_us < high_us and at_us + FINAL_AFTER_US <= self._now_us:
                yield low_us, high_us

    def final_hours(self, since_us: int, until_us: int) -> Iterator[int]:
        """Starts of the final hours that lie whole in a window."""
        for start_us, end_us in self.final_spans(since_us, until_us):
            yield from range(start_us, end_us, HOUR_US)

    def marks_at(self, hour_us: int) -> Mapping[str, int]:
        """What passes had seen before the hour was final: evidence beyond it comes late."""
        from_us = self.final_from(hour_us)
        return self._marks[-1] if isinstance(from_us, Missing) else self.seen_before(from_us)

    def seen_before(self, at_us: int) -> Mapping[str, int]:
        """What passes had seen before the first ran whose clock said so much, or more: what it took for final it left.

        Also where passes by an earlier clock ran after it.
        """
        return self._marks[bisect_left(self._latest, at_us)]

    def late_marks(self, since_us: int, until_us: int) -> list[tuple[int, int, dict[str, int]]]:
        """The final parts of a window, latest first, each with the marks beyond which evidence of it is late.

        Evidence of an hour speaks of those after it too. So the marks are the lowest of the part and of all after it.
        """
        lowest: dict[str, int] | None = None
        found: list[tuple[int, int, dict[str, int]]] = []
        for start_us, end_us in sorted(self.final_spans(since_us, until_us), reverse=True):
            marks = self.marks_at(start_us)
            known = marks if lowest is None else lowest
            lowest = {writer: min(number, marks.get(writer, 0)) for writer, number in known.items()}
            if found and found[-1][2] == lowest and found[-1][0] == end_us:
                found[-1] = (start_us, found[-1][1], lowest)
            else:
                found.append((start_us, end_us, lowest))
        return found

    @cached_property
    def _first(self) -> list[tuple[int, int, int]]:
        """(start, end, time of the first pass that covered it) of all that is covered, in order."""
        found: list[tuple[int, int, int]] = []
        spans: list[tuple[int, int]] = []
        for row in self._rows:
            fresh = [(row.covered_from_us, row.covered_until_us)]
            for start_us, end_us in spans:
                fresh = [
                    part
                    for low_us, high_us in fresh
                    for part in ((low_us, min(high_us, start_us)), (max(low_us, end_us), high_us))
                    if part[0] < part[1]
                ]
            fresh = [part for part in fresh if part[0] < part[1]]
            found += [(low_us, high_us, row.at_us) for low_us, high_us in fresh]
            spans = _merged(sorted([*spans, *fresh])) if fresh else spans
        return sorted(found)

    @cached_property
    def _starts(self) -> list[int]:
        return [start_us for start_us, _, _ in self._first]

    @cached_property
    def _ran(self) -> list[Pass]:
        """The passes in the order in which they ran.

        Each has seen at least what the one before it had; their clocks do not tell, where one is ahead or was set.
        """
        return sorted(self._rows, key=lambda row: sum(json.loads(row.evidence_marks).values()))

    @cached_property
    def _latest(self) -> list[int]:
        """The latest time of the first so many passes, in the order in which they ran."""
        return list(accumulate((row.at_us for row in self._ran), max))

    @cached_property
    def _marks(self) -> list[dict[str, int]]:
        """What the first so many passes had seen."""
        found: list[dict[str, int]] = [{}]
        for row in self._ran:
            seen = dict(found[-1])
            for writer, number in json.loads(row.evidence_marks).items():
                seen[writer] = max(number, seen.get(writer, 0))
            found.append(seen)
        return found


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start_us, end_us in spans:
        if merged and start_us <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end_us))
        else:
            merged.append((start_us, end_us))
    return merged
