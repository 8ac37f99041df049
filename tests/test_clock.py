"""The one place that asks the time, and the clock that stands where it was put."""

from __future__ import annotations

from gpuledger.clock import FixedClock, SystemClock


def test_time_passes_on_both_clocks() -> None:
    """Sleeping and advancing move the wall clock and the boot-time clock together."""
    clock = FixedClock(10_000_000, boot_us=500)
    clock.sleep(1.5)
    clock.advance(7)
    assert (clock.now_us(), clock.boot_us()) == (11_500_007, 1_500_507)


def test_a_step_moves_the_wall_clock_only() -> None:
    """That difference is how the agent sees that somebody set the clock."""
    clock = FixedClock(10_000_000, boot_us=500)
    clock.step(-3_600_000_000)
    assert (clock.now_us(), clock.boot_us()) == (-3_590_000_000, 500)


def test_the_machines_clocks_go_forward() -> None:
    """Microseconds of this century, and a boot-time clock that a sleep moves by as much as it lasts."""
    clock = SystemClock()
    before_us, boot_us = clock.now_us(), clock.boot_us()
    clock.sleep(0.01)
    assert before_us > 1_700_000_000_000_000
    assert clock.boot_us() - boot_us >= 10_000


def test_the_boot_time_clock_is_ahead_by_the_suspend() -> None:
    """Never behind the monotonic clock, and by the same all along while nobody suspends the machine."""
    first, second = SystemClock().boot_ahead_ns(), SystemClock().boot_ahead_ns()
    assert first >= 0
    assert abs(first - second) < 1_000_000_000
