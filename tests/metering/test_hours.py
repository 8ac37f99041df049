"""Cuts at hours: parts add up to the whole."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.metering.hours import hourly_ms, hourly_share, whole_ms
from gpuledger.model.moments import HOUR_US

EVER = (0, 1 << 60)


def test_a_span_over_three_hours_is_cut_at_two_edges(make: Any) -> None:
    """Half an hour, an hour, half an hour."""
    pieces = hourly_ms([(make.at(-1_800_000), make.at(5_400_000))], *EVER)
    assert pieces == [(make.at(-3_600_000), 1_800_000), (make.at(0), 3_600_000), (make.at(3_600_000), 1_800_000)]


def test_a_millisecond_across_the_edge_counts_once(make: Any) -> None:
    """It goes whole to one of the two hours, the one in which the clock completed a ms."""
    pieces = hourly_ms([(make.at(0) - 500, make.at(0) + 500)], *EVER)
    assert pieces == [(make.at(-3_600_000), 1)]


def test_nothing_is_no_piece(make: Any) -> None:
    """Outside the window, without length, or shorter than a ms: left out, never a zero."""
    assert hourly_ms([(make.at(0), make.at(0)), (make.at(5), make.at(9))], make.at(9), make.at(20)) == []
    assert hourly_ms([(make.at(0), make.at(0) + 999)], *EVER) == []


@given(
    start=st.integers(0, 3 * HOUR_US), length_ms=st.integers(0, 4 * 3_600_000),
    cuts=st.lists(st.integers(0, 8 * HOUR_US), max_size=6),
)  # fmt: skip
def test_any_cuts_keep_the_sum(start: int, length_ms: int, cuts: list[int]) -> None:
    """A settled span is worth its ms exactly, however the window is split."""
    span = (start, start + length_ms * 1000)
    edges = sorted({0, *cuts, 8 * HOUR_US})
    assert sum(ms for low, high in pairwise(edges) for _, ms in hourly_ms([span], low, high)) == length_ms
    assert whole_ms([span]) == length_ms


@given(
    amount=st.integers(0, 10**12), length=st.integers(0, 3 * HOUR_US), first=st.integers(0, 3 * HOUR_US),
    cuts=st.lists(st.integers(0, 4 * HOUR_US), max_size=5), divisor=st.sampled_from((1, 1000)),
)  # fmt: skip
def test_shares_of_an_amount_add_up(amount: int, length: int, first: int, cuts: list[int], divisor: int) -> None:
    """However the window is split, and whichever part counts, cuts add up; the whole is the amount rounded down."""
    whole = (HOUR_US // 3, HOUR_US // 3 + length)
    edges = sorted({0, *cuts, 4 * HOUR_US})

    def told(part: tuple[int, int]) -> int:
        return sum(
            units for low, high in pairwise(edges) for _, units in hourly_share(amount, divisor, whole, part, low, high)
        )

    assert told(whole) == amount // divisor
    if length:
        middle = min(whole[0] + first, whole[1])
        assert told((whole[0], middle)) + told((middle, whole[1])) == amount // divisor


def test_an_amount_without_length_sits_at_its_moment(make: Any) -> None:
    """In the one window that holds it."""
    moment = (make.at(5), make.at(5))
    assert list(hourly_share(4000, 1000, moment, moment, make.at(0), make.at(5))) == []
    assert list(hourly_share(4000, 1000, moment, moment, make.at(5), make.at(9))) == [(make.at(0), 4)]
