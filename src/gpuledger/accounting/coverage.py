"""Sizing what was not watched: spans of coverage to UNKNOWN spans and watched device-seconds that add up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

from gpuledger.accounting.meanings import meaning_of
from gpuledger.model.moments import SECOND_US
from gpuledger.model.quantities import Coverage
from gpuledger.model.rounding import largest_remainder
from gpuledger.model.usage import UnknownSize, UnknownSpan, Watched


def size(coverage: Iterable[Coverage]) -> tuple[tuple[UnknownSpan, ...], Watched]:
    """UNKNOWN spans by host, device and time, and how much was watched.

    Neighbours of one reason are one span. Whole seconds are given out once, over everything, by largest
    remainder: ``watched.seconds + sum(span.seconds) == watched.of`` exactly.
    """
    joined = _joined(coverage)
    unknown = [span for span in joined if span.reason]
    watched_us = sum(span.until_us - span.since_us for span in joined if not span.reason)
    idle_us = sum(span.until_us - span.since_us for span in joined if span.idle)
    parts = [watched_us, *(span.until_us - span.since_us for span in unknown)]
    seconds = largest_remainder([Fraction(part, SECOND_US) for part in parts])
    spans = tuple(
        UnknownSpan(
            reason=span.reason,
            host=span.host,
            device=span.device,
            since_us=span.since_us,
            until_us=span.until_us,
            seconds=whole,
        )
        for span, whole in zip(unknown, seconds[1:], strict=True)
    )
    # rounded as the rest is, and never more than was watched
    idle_s = min(seconds[0], (idle_us + SECOND_US // 2) // SECOND_US)
    return spans, Watched(seconds=seconds[0], of=sum(seconds), idle=idle_s)


def by_reason(
    spans: Iterable[UnknownSpan], meaning_of: Callable[[str], tuple[str, str]] = meaning_of
) -> tuple[UnknownSize, ...]:
    """UNKNOWN time of each reason with what it means and what helps, largest first."""
    grouped: dict[str, list[UnknownSpan]] = defaultdict(list)
    for span in spans:
        grouped[span.reason].append(span)
    sizes = []
    for reason, same in grouped.items():
        meaning, command = meaning_of(reason)
        sizes.append(
            UnknownSize(
                reason=reason,
                seconds=sum(span.seconds for span in same),
                spans=len(same),
                devices=len({(span.host, span.device) for span in same}),
                meaning=meaning,
                command=command,
            )
        )
    return tuple(sorted(sizes, key=lambda entry: (-entry.seconds, entry.reason)))


def _joined(coverage: Iterable[Coverage]) -> list[Coverage]:
    joined: list[Coverage] = []
    for span in sorted(coverage, key=lambda span: (span.host, span.device, span.since_us)):
        last = joined[-1] if joined else None
        if last is not None and replace(last, since_us=span.since_us, until_us=span.until_us) == span and (
            last.until_us == span.since_us
        ):  # fmt: skip
            joined[-1] = replace(last, until_us=span.until_us)
        elif span.until_us > span.since_us or span.reason:  # a single look's reason is shown, though it has no length
            joined.append(span)
    return joined
