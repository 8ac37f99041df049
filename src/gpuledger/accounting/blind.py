"""Blind spots: everything the ledger cannot see in a window, sized, with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from gpuledger.accounting.amounts import Amount, OpenContext
from gpuledger.accounting.coverage import by_reason, size
from gpuledger.accounting.meanings import naming_meaning_of
from gpuledger.accounting.owners import Naming
from gpuledger.accounting.rollup import roll_up
from gpuledger.model.blind import BlindReport, Chance
from gpuledger.model.meters import GPU_CONTEXT
from gpuledger.model.moments import HOUR_US, MINUTE_US, SECOND_US
from gpuledger.model.problem import Problem
from gpuledger.model.quantities import Coverage
from gpuledger.model.rows import Watch

JOB_LENGTHS_MS: tuple[int, ...] = tuple(
    us // 1000 for us in (SECOND_US // 10, SECOND_US, 6 * SECOND_US, MINUTE_US, 10 * MINUTE_US, HOUR_US)
)
"""Lengths whose chance is shown: a short call, a speech clip, and jobs up to an hour."""

POLLING: tuple[str, ...] = ("poll",)
"""Naming methods that only see what is alive when they look."""


def chance_of_catching(length_ms: int, interval_ms: int) -> Fraction:
    """The chance that one of the looks, ``interval_ms`` apart, falls into a life of ``length_ms`` that begins anywhere.

    Exact: length over interval, and 1 from one interval on.
    """
    return min(Fraction(1), Fraction(length_ms, interval_ms))


def chances(watches: Iterable[Watch]) -> tuple[tuple[Chance, ...], bool]:
    """The chances under every interval at which naming polled, and whether some look had no interval."""
    polls = [watch for watch in watches if watch.source == "process" and watch.method in POLLING]
    intervals = sorted({watch.interval_ms for watch in polls if watch.interval_ms})
    table = tuple(
        Chance(length_ms=length_ms, interval_ms=interval_ms, chance=chance_of_catching(length_ms, interval_ms))
        for interval_ms in intervals
        for length_ms in JOB_LENGTHS_MS
    )
    return table, any(not watch.interval_ms for watch in polls)


def blind_spots(
    *,
    since_us: int,
    until_us: int,
    amounts: Iterable[Amount],
    naming: Naming,
    coverage: Iterable[Coverage],
    watches: Iterable[Watch],
    naming_coverage: Iterable[Coverage] = (),
    open_contexts: Iterable[OpenContext] = (),
    seen_once: Mapping[str, int] | None = None,
    problems: Iterable[Problem] = (),
) -> BlindReport:
    """All blind spots of one window.

    Args:
        since_us, until_us: the window.
        amounts: of ``gpu.context``.
        naming: resolves subjects.
        coverage: spans of every device, filling the window.
        naming_coverage: spans of every host, filling the window: in which names were taken, or why not.
        watches: those that touch the window; the ``process`` ones give the polling intervals.
        open_contexts: of this window.
        seen_once: contexts without a length, counted by subject.
        problems: handed through.
    """
    usage = roll_up(
        meter=GPU_CONTEXT,
        by=(),
        since_us=since_us,
        until_us=until_us,
        amounts=amounts,
        naming=naming,
        classes={},
        coverage=coverage,
        open_contexts=open_contexts,
        seen_once=seen_once,
    )
    table, looked_once = chances(watches)
    nameless, named = size(naming_coverage)
    return BlindReport(
        since_us=since_us,
        until_us=until_us,
        total_ms=usage.total,
        sizes=usage.sizes,
        unknown=usage.unknown,
        watched=usage.watched,
        nameless=by_reason(nameless, naming_meaning_of),
        named=named,
        unattributed=usage.unattributed,
        unsettled=usage.unsettled,
        never_accounted=usage.never_accounted,
        seen_once=usage.seen_once,
        chances=table,
        looked_once=looked_once,
        problems=tuple(problems),
    )
