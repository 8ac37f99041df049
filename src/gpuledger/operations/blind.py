"""``blind``: what the ledger cannot see in a window, sized, by reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpuledger.accounting.blind import blind_spots
from gpuledger.accounting.reserved import in_order
from gpuledger.ledger.store import Ledger
from gpuledger.metering.coverage import coverage
from gpuledger.model.blind import BlindReport
from gpuledger.model.meters import GPU_CONTEXT
from gpuledger.model.missing import Missing
from gpuledger.model.quantities import Coverage
from gpuledger.model.rows import Watch
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.blind_reserved import reserved_gaps
from gpuledger.operations.evidence import first_naming_watches
from gpuledger.operations.pulse import hear, unwritten_watches
from gpuledger.operations.usage import answer_window


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
    return replace(spots, reserved=in_order(gaps), is_told=told)


def _naming_coverage(watches: Iterable[Watch], hosts: Iterable[str], *, since_us: int, until_us: int) -> list[Coverage]:
    """In which time names were taken on each host: what the coverage of a device is, of the naming watch."""
    naming = [replace(watch, source="driver", device="") for watch in watches if watch.source == "process"]
    return coverage(naming, [(host, "") for host in hosts], since_us=since_us, until_us=until_us)
