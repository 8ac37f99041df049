"""Coverage: which time of which device was watched, and why the rest is UNKNOWN.

In: ``driver`` watch rows. Out: for each device spans that follow each other and fill the window
exactly, so that watched + unknown = window. The verdict on an instant:

1. a source (a method) that lost rows there (``ring-overflow``, ``row-freed``, ``accounting-reset``,
   ``clock-step``) says so in a row beside its ``ok`` row: the loss counts, for that source;
2. else ``ok``, or ``idle``, of a source beats its own other reasons;
3. ``ok`` of any source beats the reasons of the others: somebody looked, and nothing was lost;
4. of several reasons the first of :data:`PRECEDENCE` is told;
5. no row at all: ``before-watch`` before the first row, ``watch-gap`` after it.

A single look that found a reason has no length and takes no time, but is shown at its moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpuledger.model.quantities import Coverage
from gpuledger.model.reasons import IDLE, WATCHED, UnknownReason
from gpuledger.model.rows import Watch

OK = "ok"

LOSSES: tuple[UnknownReason, ...] = (
    UnknownReason.RING_OVERFLOW,
    UnknownReason.ROW_FREED,
    UnknownReason.ACCOUNTING_RESET,
    UnknownReason.CLOCK_STEP,
)
"""Reasons that hold although the same source was looking."""

PRECEDENCE: tuple[UnknownReason, ...] = (
    *LOSSES,
    UnknownReason.ACCOUNTING_DISABLED,
    UnknownReason.ACCOUNTING_UNSUPPORTED,
    UnknownReason.ACCOUNTING_UNREAD,
    UnknownReason.EMPTY_LEDGER,
    UnknownReason.DEVICE_LOST,
    UnknownReason.DRIVER_UNREACHABLE,
    UnknownReason.EVENTS_LOST,
    UnknownReason.BEFORE_WATCH,
    UnknownReason.NOT_WRITTEN,
    UnknownReason.WATCH_GAP,
)
"""Which reason is told where several hold: what most certainly lost use first."""

_RANK: dict[str, int] = {reason: rank for rank, reason in enumerate(PRECEDENCE)}

_Source = tuple[str, str]
"""(method, status) of a watch row."""

_Look = tuple[int, int, str, str]
"""(since, until, method, status) of a watch row."""

_Verdict = tuple[int, int, str]
"""(since, until, status)."""


def coverage(
    watches: Iterable[Watch], devices: Iterable[tuple[str, str]], *, since_us: int, until_us: int
) -> list[Coverage]:
    """The window, device by device, in spans of one verdict.

    Args:
        watches: rows that touch the window, any order, duplicates allowed. So that time before the
            first look is told from a gap, also the first row ever of each device, or of its host.
            A row of no device (the driver did not answer at all) holds for all devices of its host.
        devices: (host, device) of the physical GPUs to tell of.
        since_us, until_us: the window, half-open, microseconds UTC.

    Returns:
        Sorted by host, device and time; ``reason`` is empty where watched.
    """
    rows: dict[tuple[str, str], set[_Look]] = {}
    naming_us: dict[str, int] = {}
    for watch in watches:
        if watch.source == "driver":
            look = (watch.since_us, watch.until_us, watch.method, watch.status)
            rows.setdefault((watch.host, watch.device), set()).add(look)
        elif watch.source == "process":
            naming_us[watch.host] = min(watch.since_us, naming_us.get(watch.host, watch.since_us))
    found: list[Coverage] = []
    for host, device in sorted(set(devices)):
        mine = rows.get((host, device), set()) | rows.get((host, ""), set())
        first_us = min([naming_us.get(host, until_us), *(look[0] for look in mine)])
        verdicts = _verdicts(mine, first_us, since_us, until_us)
        found.extend(
            Coverage(
                host=host,
                device=device,
                since_us=low,
                until_us=high,
                reason="" if reason in WATCHED else reason,
                idle=reason == IDLE,
            )
            for low, high, reason in _with_moments(verdicts, _moments(mine, since_us, until_us))
        )
    return found


def _verdicts(looks: Iterable[_Look], first_us: int, since_us: int, until_us: int) -> list[_Verdict]:
    """The window in spans of one verdict: a sweep over the edges of all rows."""
    edges: dict[int, list[tuple[_Source, int]]] = {}
    for low, high, method, status in looks:
        start, end = max(low, since_us), min(high, until_us)
        if start < end:
            edges.setdefault(start, []).append(((method, status), 1))
            edges.setdefault(end, []).append(((method, status), -1))
    for edge_us in (first_us, until_us):
        if since_us < edge_us <= until_us:
            edges.setdefault(edge_us, [])
    active: dict[_Source, int] = {}
    known: dict[frozenset[_Source], str] = {}
    spans: list[_Verdict] = []
    low = since_us
    for edge_us in sorted(edges):
        if low < edge_us:
            sources = frozenset(active)
            reason = known.get(sources)
            if reason is None:
                reason = known.setdefault(sources, _verdict(sources))
            if not sources:
                reason = UnknownReason.BEFORE_WATCH if low < first_us else UnknownReason.WATCH_GAP
            if spans and spans[-1][2] == reason:
                spans[-1] = (spans[-1][0], edge_us, reason)
            else:
                spans.append((low, edge_us, reason))
            low = edge_us
        for source, change in edges[edge_us]:
            count = active.get(source, 0) + change
            if count:
                active[source] = count
            else:
                del active[source]
    return spans


def _verdict(sources: Iterable[_Source]) -> str:
    by_method: dict[str, list[str]] = {}
    for method, status in sources:
        by_method.setdefault(method, []).append(status)
    verdicts = [_of_one_source(statuses) for statuses in by_method.values()]
    return max(verdicts, key=_rank, default=OK) if _any_watched(verdicts) else min(verdicts, key=_rank, default=OK)


def _of_one_source(statuses: Iterable[str]) -> str:
    worst = min(statuses, key=_rank)
    return max(statuses, key=_rank) if _any_watched(statuses) and worst not in LOSSES else worst


def _any_watched(statuses: Iterable[str]) -> bool:
    return any(status in WATCHED for status in statuses)


def _rank(status: str) -> tuple[int, str]:
    """Place in the precedence; after it a word that this version does not know, then ``idle``, ``ok`` last of all."""
    if status in WATCHED:
        return (len(_RANK) + (2 if status == OK else 1), status)
    return (_RANK.get(status, len(_RANK)), status)


def _moments(looks: Iterable[_Look], since_us: int, until_us: int) -> dict[int, str]:
    """Single looks that found a reason, the one to tell for each moment."""
    moments: dict[int, str] = {}
    for low, high, _, status in looks:
        if low == high and status not in WATCHED and since_us <= low <= until_us:
            moments[low] = min(status, moments.get(low, status), key=_rank)
    return moments


def _with_moments(verdicts: Iterable[_Verdict], moments: Mapping[int, str]) -> Iterator[_Verdict]:
    """The spans, cut where a single look found something that they do not say already."""
    waiting = sorted(moments, reverse=True)
    last_us, last_reason = None, OK
    for low, high, reason in verdicts:
        start = low
        while waiting and waiting[-1] < high:
            at_us = waiting.pop()
            if moments[at_us] == reason or (reason in WATCHED and moments[at_us] not in LOSSES):
                continue
            if start < at_us:
                yield (start, at_us, reason)
            yield (at_us, at_us, moments[at_us])
            start = at_us
        yield (start, high, reason)
        last_us, last_reason = high, reason
    for at_us in reversed(waiting):
        if at_us == last_us and moments[at_us] != last_reason:
            yield (at_us, at_us, moments[at_us])
