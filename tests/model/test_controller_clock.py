"""What a controller says of its clock: exact, and a skew only beyond the tolerance."""

from __future__ import annotations

import pytest

from gpuledger.model.controller_clock import clock_row, offset_us, words


@pytest.mark.parametrize(
    ("clock_us", "status", "side"),
    [
        (11_000_000, "ok", "ahead"),
        (12_000_000, "ok", "ahead"),
        (12_000_001, "clock-skew", "ahead"),
        (3_000_000, "clock-skew", "behind"),
    ],
)
def test_a_clock_is_kept_with_its_offset(clock_us: int, status: str, side: str) -> None:
    """In microseconds, with its sign; two seconds are no skew yet."""
    row = clock_row("cp", at_us=10_000_000, clock_us=clock_us)
    assert (row.status, offset_us(row)) == (status, clock_us - 10_000_000)
    assert words(offset_us(row)).endswith(f" s {side}")
