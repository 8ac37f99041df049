"""One program's holding of a device, and which of several a start is of."""

from __future__ import annotations

import pytest

from gpuledger.model.missing import Missing
from gpuledger.model.readings import FinishedRow
from gpuledger.watching.holding import Holding, maker

MS = 1_000
SECOND = 1_000_000


def holding(number: int, opened_us: int, exited_us: int | None, *, is_found: bool = False) -> Holding:
    return Holding(number=number, opened_us=opened_us, exited_us=exited_us, is_found=is_found)


CHAIN = [holding(0, 10 * SECOND, 11 * SECOND), holding(1, 11 * SECOND + 10 * MS, 11 * SECOND + 20 * MS),
         holding(2, 11 * SECOND + 30 * MS, None)]  # fmt: skip


@pytest.mark.parametrize(
    ("started_us", "number"),
    [
        (10 * SECOND + 1, 0),
        (11 * SECOND + 8 * MS, 1),  # the clocks are known to a few milliseconds
        (11 * SECOND + 11 * MS, 1),
        (11 * SECOND + 31 * MS, 2),
        (99 * SECOND, 2),
        (9 * SECOND, 0),
        (7 * SECOND, None),
    ],
)
def test_a_start_is_of_the_last_program_that_had_opened_the_device_by_then(started_us: int, number: int | None) -> None:
    """Of those that it can be of at all; before the first, of the first."""
    made = maker(CHAIN, started_us)
    assert (None if made is None else made.number) == number


def test_who_was_found_opened_the_device_any_time_before() -> None:
    """A snapshot says that it holds, not since when."""
    assert maker([holding(0, 60 * SECOND, None, is_found=True)], SECOND) is not None
    assert maker([holding(0, 60 * SECOND, None)], SECOND) is None


def test_a_row_without_a_start_can_be_of_any() -> None:
    """Nothing speaks against it."""
    row = FinishedRow(
        pid=7, started_at_us=Missing("none"), context_ms=1, peak_memory_mib=1, gpu_percent=0, memory_percent=0
    )
    assert all(one.can_have_made(row) for one in CHAIN)
    assert [one.held_since(11 * SECOND + 25 * MS) for one in CHAIN] == [False, False, True]
