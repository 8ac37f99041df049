"""Span arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.metering.spans import inside, overlapping, subtract, union

SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)).map(lambda pair: (pair[0], sum(pair))), max_size=6)


def moments(spans: object) -> set[int]:
    return {moment for since, until in spans for moment in range(since, until)}


def test_touching_spans_become_one_and_gaps_stay() -> None:
    """[0,5) and [5,9) are [0,9); [10,11) stays apart; a look inside a span is no span of its own."""
    assert union([(10, 11), (5, 9), (0, 5), (3, 3)]) == ((0, 9), (10, 11))


def test_a_single_look_stays_until_something_longer_touches_it() -> None:
    """A span without length is kept alone, and goes where time already holds it."""
    assert union([(4, 4), (4, 4)]) == ((4, 4),)
    assert subtract([(4, 4), (9, 9)], [(2, 4)]) == ((9, 9),)


@given(SPANS, SPANS)
def test_subtract_is_set_difference(spans: list[tuple[int, int]], taken: list[tuple[int, int]]) -> None:
    """Every moment of the first that the second does not hold, and no other."""
    left = subtract(union(spans), union(taken))
    assert moments(left) == moments(spans) - moments(taken)
    assert list(left) == sorted(left)


@given(SPANS, st.integers(0, 25), st.integers(0, 25))
def test_overlapping_is_intersection(spans: list[tuple[int, int]], since: int, until: int) -> None:
    """The parts inside a window, each with a length."""
    parts = list(overlapping(union(spans), since, until))
    assert moments(parts) == moments(spans) & set(range(since, until))
    assert all(low < high for low, high in parts)


def test_inside_takes_slack_on_both_edges() -> None:
    """A span may stick out by the slack and no further."""
    assert inside((8, 22), (10, 20), 2)
    assert not inside((7, 20), (10, 20), 2)
    assert not inside((10, 23), (10, 20), 2)
