"""Finality: what covers an hour first decides, whatever ran later and for whatever time."""

from __future__ import annotations

import itertools
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.metering.reserved import FINAL_AFTER_US
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.rows import Pass
from gpuledger.operations.finality import Finality


def passed(at: int, since: int, until: int, number: int = 0) -> Pass:
    """A pass at an hour that covers hours, and has seen a writer up to a number."""
    return Pass(
        at_us=at * HOUR_US, covered_from_us=since * HOUR_US, covered_until_us=until * HOUR_US,
        evidence_marks=json.dumps({"w": number}), records_added=0, corrections_added=0,
    )  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 12), st.integers(0, 6)), max_size=6), st.integers(0, 150))
def test_each_hour_by_itself_says_the_same(spans: list[tuple[int, int, int]], now: int) -> None:
    """Covered, final, and since when: as one finds going through all passes hour by hour."""
    passes = [passed(at, since, since + length, number) for number, (at, since, length) in enumerate(spans)]
    finality = Finality(passes, now_us=now * HOUR_US)
    final: list[int] = []
    for hour_us in range(0, 20 * HOUR_US, HOUR_US):
        covering = [row for row in sorted(passes, key=lambda row: row.at_us)
                    if row.covered_from_us <= hour_us < row.covered_until_us]  # fmt: skip
        assert finality.is_covered(hour_us) == bool(covering)
        if not covering:
            assert isinstance(finality.final_from(hour_us), Missing)
            assert not finality.is_final(hour_us)
            continue
        from_us = covering[0].at_us + FINAL_AFTER_US
        assert finality.final_from(hour_us) == from_us
        before = itertools.takewhile(lambda row: row.at_us < from_us, passes)  # noqa: B023 used at once
        seen = [json.loads(row.evidence_marks)["w"] for row in before]
        assert finality.marks_at(hour_us).get("w", 0) == max(seen, default=0)
        if from_us <= now * HOUR_US:
            final.append(hour_us)
    assert list(finality.final_hours(0, 20 * HOUR_US)) == final
    parts = finality.late_marks(0, 20 * HOUR_US)
    assert sorted(hour for low, high, _ in parts for hour in range(low, high, HOUR_US)) == final
    for low_us, _, marks in parts:
        assert marks.get("w", 0) == min(finality.marks_at(hour).get("w", 0) for hour in final if hour >= low_us)


def test_hours_that_lie_whole_in_a_window() -> None:
    """An hour that is cut by the window is not told."""
    finality = Finality([passed(5, 0, 4)], now_us=99 * HOUR_US)
    assert list(finality.final_hours(HOUR_US // 2, 3 * HOUR_US)) == [HOUR_US, 2 * HOUR_US]
    assert finality.spans == [(0, 4 * HOUR_US)]
