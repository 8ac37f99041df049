"""Coverage: watched and UNKNOWN time add up to the window, to the second."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.accounting.coverage import by_reason, size
from gpuledger.model.moments import SECOND_US
from gpuledger.model.quantities import Coverage
from gpuledger.model.reasons import UNKNOWN_MEANING, UnknownReason


def span(since: int, until: int, reason: str = "", device: str = "GPU-1", *, idle: bool = False) -> Coverage:
    return Coverage(host="box", device=device, since_us=since, until_us=until, reason=reason, idle=idle)


def test_neighbours_of_one_reason_are_one_span() -> None:
    """Consecutive spans join; a watched one between them keeps them apart."""
    second = SECOND_US
    unknown, watched = size(
        [
            span(2 * second, 3 * second),
            span(second, 2 * second, "watch-gap"),
            span(0, second, "watch-gap"),
            span(3 * second, 4 * second, "watch-gap"),
            span(0, 4 * second, "watch-gap", "GPU-2"),
        ]
    )
    assert [(each.device, each.since_us // second, each.until_us // second, each.seconds) for each in unknown] == [
        ("GPU-1", 0, 2, 2),
        ("GPU-1", 3, 4, 1),
        ("GPU-2", 0, 4, 4),
    ]
    assert (watched.seconds, watched.of) == (1, 8)


def test_nothing_known_is_nothing_watched() -> None:
    """Without a device there is no time to watch."""
    unknown, watched = size([])
    assert unknown == ()
    assert (watched.seconds, watched.of) == (0, 0)


def test_sizes_by_reason_carry_meaning_and_command() -> None:
    """Largest first, each with what helps; a word of a newer version stays itself."""
    unknown, _ = size(
        [
            span(0, 5 * SECOND_US, "watch-gap"),
            span(5 * SECOND_US, 7 * SECOND_US, "from-the-future"),
            span(0, 5 * SECOND_US, "watch-gap", "GPU-2"),
        ]
    )
    sizes = by_reason(unknown)
    assert [(each.reason, each.seconds, each.spans, each.devices) for each in sizes] == [
        ("watch-gap", 10, 2, 2),
        ("from-the-future", 2, 1, 1),
    ]
    assert (sizes[0].meaning, sizes[0].command) == UNKNOWN_MEANING[UnknownReason.WATCH_GAP]


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.integers(min_value=0, max_value=9_000_001),
            st.sampled_from(["", "", "watch-gap", "ring-overflow"]),
            st.sampled_from(["GPU-1", "GPU-2"]),
        ),
        max_size=20,
    )
)
def test_watched_and_unknown_add_up_exactly(pieces: list[tuple[int, str, str]]) -> None:
    """However the window is cut, the seconds add up, and none is off by a second or more."""
    ends = {"GPU-1": 0, "GPU-2": 0}
    spans = []
    for length, reason, device in pieces:
        spans.append(span(ends[device], ends[device] + length, reason, device))
        ends[device] += length
    unknown, watched = size(spans)
    assert watched.seconds + sum(each.seconds for each in unknown) == watched.of
    assert abs(watched.of * SECOND_US - sum(ends.values())) * 2 <= SECOND_US
    assert all(abs(each.seconds * SECOND_US - (each.until_us - each.since_us)) < SECOND_US for each in unknown)


def test_idle_time_is_part_of_what_was_watched() -> None:
    """Counted once, in whole seconds, and never more than was watched."""
    second = SECOND_US
    _, watched = size(
        [
            span(0, second // 2, idle=True),
            span(second // 2, 2 * second, idle=True),
            span(2 * second, 3 * second),
            span(3 * second, 4 * second, "watch-gap"),
            span(0, second // 2, "", "GPU-2", idle=True),
            span(second // 2, 4 * second, "", "GPU-2"),
        ]
    )
    assert (watched.seconds, watched.of, watched.idle) == (7, 8, 3)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 3_000_001), st.sampled_from(["", "idle", "watch-gap"])), max_size=12))
def test_idle_never_exceeds_watched(pieces: list[tuple[int, str]]) -> None:
    """However the seconds are rounded."""
    ends, spans = 0, []
    for length, what in pieces:
        spans.append(span(ends, ends + length, what.replace("idle", ""), idle=what == "idle"))
        ends += length
    _, watched = size(spans)
    assert 0 <= watched.idle <= watched.seconds <= watched.of
