"""``blind``: what the ledger cannot see in a window, sized, by reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gpuledger.accounting.blind import blind_spots
from gpuledger.accounting.reserved import in_order
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.sums import Remark, remarks
from gpuledger.metering.coverage import coverage
from gpuledger.model.blind import BlindReport
from gpuledger.model.durations import count
from gpuledger.model.meters import GPU_CONTEXT
from gpuledger.model.missing import Missing
from gpuledger.model.quantities import Coverage
from gpuledger.model.rows import Watch
from gpuledger.model.usage import UnknownSpan
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.blind_reserved import reserved_gaps
from gpuledger.operations.evidence import first_naming_watches
from gpuledger.operations.pulse import hear, unwritten_watches
from gpuledger.operations.usage import answer_window

_MOST_REMARKS = 3
"""Remarks on one span that are told; the journal has them all."""


def blind(ledger: Ledger, *, since_us: int, until_us: int, now_us: int) -> BlindReport:
    """The blind spots of a window."""
    watches = ledger.coalesced_watches(since_us=since_us, until_us=until_us, source="process")
    answer = answer_window(ledger, meters=(GPU_CONTEXT,), by=(), since_us=since_us, until_us=until_us, now_us=now_us)
    spots = blind_spots(
        since_us=since_us,
        until_us=until_us,
        amounts=answer.amounts,
        naming=answer.naming,
        coverage=answer.coverage,
        watches=watches,
        naming_coverage=_naming_coverage(
            [
                *watches,
                *first_naming_watches(ledger, {span.host for span in answer.coverage}),
                *unwritten_watches(ledger, hear(ledger, now_us=now_us)),
            ],
            {span.host for span in answer.coverage},
            since_us=since_us,
            until_us=until_us,
        ),
        open_contexts=answer.open_contexts,
        seen_once=answer.seen_once,
    )
    told = not isinstance(ledger.last_moment((WorkloadEvent,)), Missing)
    gaps = reserved_gaps(ledger, since_us=since_us, until_us=until_us, now_us=now_us) if told else []
    return replace(spots, unknown=_told(ledger, spots.unknown), reserved=in_order(gaps), is_told=told)


def _told(ledger: Ledger, spans: Sequence[UnknownSpan]) -> tuple[UnknownSpan, ...]:
    """UNKNOWN spans with what the looks said beside their reason, each remark once."""
    if not spans:
        return ()
    since_us, until_us = min(span.since_us for span in spans), max(span.until_us for span in spans)
    with ledger.mapped():
        found = remarks(ledger.connection, since_us, until_us + 1)
    by_place: dict[tuple[str, str, str], list[Remark]] = {}
    for remark in found:
        by_place.setdefault((remark.host, remark.device, remark.status), []).append(remark)
    return tuple(replace(span, detail=_detail(span, by_place)) for span in spans)


def _detail(span: UnknownSpan, by_place: Mapping[tuple[str, str, str], Sequence[Remark]]) -> str:
    near = [
        remark.detail
        for device in (span.device, "")
        for remark in by_place.get((span.host, device, span.reason), ())
        if remark.since_us <= span.until_us and remark.until_us >= span.since_us
    ]
    told = list(dict.fromkeys(near))
    more = f"; and {count(len(told) - _MOST_REMARKS)} more: gpuledger journal" if len(told) > _MOST_REMARKS else ""
    return "; ".join(told[:_MOST_REMARKS]) + more


def _naming_coverage(watches: Iterable[Watch], hosts: Iterable[str], *, since_us: int, until_us: int) -> list[Coverage]:
    """In which time names were taken on each host: what the coverage of a device is, of the naming watch."""
    naming = [replace(watch, source="driver", device="") for watch in watches if watch.source == "process"]
    return coverage(naming, [(host, "") for host in hosts], since_us=since_us, until_us=until_us)
