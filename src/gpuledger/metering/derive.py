"""Hourly quantities: what each subject held, remembered and worked on each device, in one window.

In: :class:`Evidence` and a window. Out: :class:`Quantity`, one for each meter, hour, host, device,
subject and context tag, sorted. Everything is a sum of cuts (:mod:`gpuledger.metering.hours`), so any
window can be split without changing a sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from gpuledger.metering.contexts import evidence_of, named_stints
from gpuledger.metering.hours import hourly_ms, hourly_share, whole_ms
from gpuledger.metering.spans import Span, overlapping
from gpuledger.metering.stints import look_span
from gpuledger.model.meters import GPU_BUSY, GPU_CONTEXT, GPU_MEMORY
from gpuledger.model.missing import Missing
from gpuledger.model.quantities import Context, Evidence, Quantity
from gpuledger.model.rows import Sighting

SETTLED = "settled"
GONE = "gone"
SAMPLED = "sampled"
"""The context tag of ``gpu.memory`` and ``gpu.busy``: samples are never settled."""

QuantityKey = tuple[str, int, str, str, str, str]
"""(meter, hour, host, device, subject, context tag)."""


@dataclass(slots=True)
class _Sum:
    """An amount and the rows behind it. ``refs`` is the contexts' own set until a second one joins."""

    amount: int
    refs: frozenset[str] | set[str]


_Sums = dict[QuantityKey, _Sum]


def derive(
    evidence: Evidence, *, since_us: int, until_us: int, found: Sequence[Context] | None = None
) -> list[Quantity]:
    """The quantities of a window, sorted by their key.

    Args:
        evidence: rows that touch the window; more changes nothing.
        since_us, until_us: the window, half-open, microseconds UTC. It need not begin or end at an hour.
        found: the contexts of this evidence, if they are at hand; else they are found here.

    Returns:
        Quantities above zero only: where nothing was measured there is no row, never a zero.
    """
    sums: _Sums = {}
    owned: list[tuple[Sighting, str]] = []
    if found is None:
        for stint, name in named_stints(evidence):
            spans = stint.spans
            if spans[0][0] < until_us and spans[-1][1] > since_us:
                tag = _tag(stint.settled, not stint.over, stint.pid, stint.started_us, name.process[1])
                key = (stint.host, stint.device, name.subject, tag)
                _add_context(sums, key, spans, evidence_of(stint, name), since_us, until_us)
            if stint.sightings:
                owned.extend((look, name.subject) for look in stint.sightings)
    else:
        for context in found:
            key = (context.host, context.device, context.subject, context_tag(context))
            _add_context(sums, key, context.spans, context.evidence, since_us, until_us)
        owned = _owned(evidence.sightings, found)
    _add_samples(sums, owned, since_us, until_us)
    return [
        Quantity(
            meter=key[0], hour_us=key[1], host=key[2], device=key[3], subject=key[4], context=key[5],
            quantity=held.amount, evidence=frozenset(held.refs),
        )
        for key, held in sorted(sums.items(), key=lambda item: item[0])
    ]  # fmt: skip


def context_tag(context: Context) -> str:
    """What of a context the driver had settled: ``settled``, ``gone``, or who it is while it is open."""
    start = context.started_at_us
    start_us = None if isinstance(start, Missing) else start
    return _tag(context.settled, context.open, context.pid, start_us, context.process[1])


def _tag(settled: bool, is_open: bool, pid: int, start_us: int | None, start_ticks: int) -> str:
    if settled:
        return SETTLED
    if not is_open:
        return GONE
    return f"{pid}@?{start_ticks}" if start_us is None else f"{pid}@{start_us}"


def _add_context(
    sums: _Sums,
    key: tuple[str, str, str, str],
    spans: Sequence[Span],
    refs: Iterable[str],
    since_us: int,
    until_us: int,
) -> None:
    host, device, subject, tag = key
    behind = frozenset(refs)
    for hour_us, amount in hourly_ms(spans, since_us, until_us):
        _add(sums, (GPU_CONTEXT.name, hour_us, host, device, subject, tag), amount, behind)


def _add_samples(sums: _Sums, owned: Iterable[tuple[Sighting, str]], since_us: int, until_us: int) -> None:
    """Memory and busy time of looks. Where two looks of one pid and device overlap, the earlier one counts."""
    inside = (
        pair for pair in owned if pair[0].until_us >= since_us and min(pair[0].since_us, pair[0].until_us) < until_us
    )
    ordered = sorted(inside, key=_by_time)
    for _, looks in groupby(ordered, key=lambda pair: (pair[0].host, pair[0].device, pair[0].pid)):
        covered: dict[str, int] = {}
        for look, subject in looks:
            for meter, amount, divisor in (
                (GPU_MEMORY.name, look.memory_mib_ms, 1000),
                (GPU_BUSY.name, look.busy_ms, 1),
            ):
                if amount <= 0:
                    continue
                whole = look_span(look)
                start_us = max(whole[0], covered.get(meter, whole[0]))
                if start_us > whole[1] or (start_us == whole[1] and meter in covered):
                    continue
                covered[meter] = whole[1]
                for hour_us, units in hourly_share(amount, divisor, whole, (start_us, whole[1]), since_us, until_us):
                    _add(
                        sums, (meter, hour_us, look.host, look.device, subject, SAMPLED), units, frozenset((look.ref,))
                    )


def _by_time(pair: tuple[Sighting, str]) -> tuple[str, str, int, int, int, int, int, str]:
    look = pair[0]
    since_us, until_us = look_span(look)
    return (
        look.host, look.device, look.pid, since_us, -until_us, -look.memory_mib_ms, -look.busy_ms, look.ref,
    )  # fmt: skip


def _add(sums: _Sums, key: QuantityKey, amount: int, refs: frozenset[str]) -> None:
    held = sums.get(key)
    if held is None:
        sums[key] = _Sum(amount, refs)
        return
    held.amount += amount
    if isinstance(held.refs, frozenset):
        held.refs = set(held.refs)
    held.refs.update(refs)


def _owned(sightings: Iterable[Sighting], found: Iterable[Context]) -> list[tuple[Sighting, str]]:
    """Each look with the subject of the context that names it as evidence."""
    owners: dict[tuple[str, str, int, str], list[Context]] = {}
    for context in found:
        for ref in context.evidence:
            if ref.startswith(f"{Sighting.kind}:"):
                owners.setdefault((context.host, context.device, context.pid, ref), []).append(context)
    return [
        (look, _nearest(look, mine).subject)
        for look in sightings
        if (mine := owners.get((look.host, look.device, look.pid, look.ref)))
    ]


def _nearest(look: Sighting, contexts: Sequence[Context]) -> Context:
    """Rows that were never appended share a reference; then the context that the look overlaps most owns it."""
    if len(contexts) == 1:
        return contexts[0]
    since_us, until_us = look_span(look)
    return max(contexts, key=lambda context: whole_ms(overlapping(context.spans, since_us, until_us)))
