"""Arithmetic of half-open spans in whole microseconds: union, difference, containment.

A span of no length is a single look. It stays while nothing longer touches it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

Span = tuple[int, int]
"""(since, until) in microseconds UTC, since <= until; ``since`` belongs to it, ``until`` does not."""


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same time as sorted, disjoint spans. Spans that touch become one."""
    joined: list[Span] = []
    for since, until in sorted(spans):
        if joined and since <= joined[-1][1]:
            if until > joined[-1][1]:
                joined[-1] = (joined[-1][0], until)
        else:
            joined.append((since, until))
    return tuple(joined)


def subtract(spans: Iterable[Span], taken: Sequence[Span]) -> tuple[Span, ...]:
    """What of ``spans`` no span of ``taken`` covers. Both sorted and disjoint, and so is the result.

    A single look goes when a taken span holds or touches it.
    """
    left: list[Span] = []
    for since, until in spans:
        start = since
        place = bisect_left(taken, (since,))
        if place and taken[place - 1][1] >= since:
            place -= 1
        if since == until:
            if not (place < len(taken) and taken[place][0] <= since <= taken[place][1]):
                left.append((since, until))
            continue
        while start < until and place < len(taken) and taken[place][0] < until:
            low, high = taken[place]
            if low > start:
                left.append((start, low))
            start = max(start, high)
            place += 1
        if start < until:
            left.append((start, until))
    return tuple(left)


def overlapping(spans: Sequence[Span], since_us: int, until_us: int) -> Iterable[Span]:
    """The parts of sorted, disjoint ``spans`` that lie in a window, each with a length."""
    place = bisect_left(spans, (since_us,))
    if place and spans[place - 1][1] > since_us:
        place -= 1
    while place < len(spans) and spans[place][0] < until_us:
        low, high = max(spans[place][0], since_us), min(spans[place][1], until_us)
        if low < high:
            yield (low, high)
        place += 1


def inside(span: Span, outer: Span, slack_us: int = 0) -> bool:
    """Whether ``span`` lies in ``outer``, both edges widened by ``slack_us``."""
    return outer[0] - slack_us <= span[0] and span[1] <= outer[1] + slack_us
