"""The rhythm of looking, and a memory without a past."""

from __future__ import annotations

import pytest

from gpuledger.watching.memory import Beat, Memory

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("interval_us", "gap_us"), [(SECOND // 5, 5 * SECOND), (SECOND, 5 * SECOND), (60 * SECOND, 180 * SECOND)]
)
def test_a_pause_is_a_gap_after_three_intervals_and_five_seconds(interval_us: int, gap_us: int) -> None:
    """A look that comes late on a busy machine is no gap; and a sample counts for two polls at most."""
    beat = Beat(interval_us=interval_us, flush_us=300 * SECOND)
    assert (beat.gap_us, beat.longest_sample_us, beat.interval_ms) == (gap_us, 2 * interval_us, interval_us // 1000)


def test_a_first_run_remembers_nothing() -> None:
    """Each observer has a memory of its own."""
    first = Memory()
    first.looked_us["driver", "GPU-a"] = 1
    assert (Memory().devices, Memory().lists, Memory().contexts, Memory().looked_us) == ({}, {}, {}, {})
