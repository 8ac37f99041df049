"""Spans over UTC hours: amounts cut at edges so that the parts always add up to the whole.

Every cut is the difference of two values of one rising whole-number function of time, so a window can
be split anywhere, and as often as one likes, without changing a sum. For context time that function
is the count of whole milliseconds since the epoch; it depends on nothing but the moment, so an hour
says the same whichever other hours are looked at, and ``[start, start + ms * 1000]`` is exactly ``ms``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuledger.metering.spans import Span
from gpuledger.model.moments import HOUR_US


def whole_ms(spans: Iterable[Span]) -> int:
    """Milliseconds in disjoint spans, counted as all of this module counts them."""
    return sum(until // 1000 - since // 1000 for since, until in spans)


def hourly_ms(spans: Iterable[Span], since_us: int, until_us: int) -> list[tuple[int, int]]:
    """(hour, ms) of each piece of ``spans`` inside the window; pieces of no millisecond are left out."""
    pieces: list[tuple[int, int]] = []
    for low, high in spans:
        start = max(low, since_us)
        end = min(high, until_us)
        while start < end:
            hour_us = start - start % HOUR_US
            cut = min(end, hour_us + HOUR_US)
            if amount := cut // 1000 - start // 1000:
                pieces.append((hour_us, amount))
            start = cut
    return pieces


def hourly_share(
    amount: int, divisor: int, whole: Span, part: Span, since_us: int, until_us: int
) -> Iterator[tuple[int, int]]:
    """(hour, units) of an amount spread evenly over a span, for the part of it that counts.

    Args:
        amount: what the whole span holds, in 1/``divisor`` units.
        divisor: how many of ``amount`` make one unit: 1000 for MiB x ms into MiB-seconds.
        whole: the span the amount belongs to. Without length the amount sits at its one moment.
        part: the piece of ``whole`` that counts; the rest was counted elsewhere.
        since_us, until_us: the window.
    """
    origin, end_of_whole = whole
    start, end = max(part[0], since_us), min(part[1], until_us)
    if origin == end_of_whole:
        if since_us <= origin < until_us and (units := amount // divisor):
            yield origin - origin % HOUR_US, units
        return
    scale = (end_of_whole - origin) * divisor
    while start < end:
        hour_us = start - start % HOUR_US
        cut = min(end, hour_us + HOUR_US)
        if units := amount * (cut - origin) // scale - amount * (start - origin) // scale:
            yield hour_us, units
        start = cut
