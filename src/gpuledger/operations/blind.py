"""``blind``: what the ledger cannot see in a window, sized, by reason."""

from __future__ import annotations

from gpuledger.accounting.blind import blind_spots
from gpuledger.ledger.store import Ledger
from gpuledger.model.blind import BlindReport
from gpuledger.model.meters import GPU_CONTEXT
from gpuledger.operations.usage import answer_window


def blind(ledger: Ledger, *, since_us: int, until_us: int, now_us: int) -> BlindReport:
    """The blind spots of a window."""
    answer = answer_window(ledger, meters=(GPU_CONTEXT,), by=(), since_us=since_us, until_us=until_us, now_us=now_us)
    return blind_spots(
        since_us=since_us,
        until_us=until_us,
        amounts=answer.amounts,
        naming=answer.naming,
        coverage=answer.coverage,
        watches=ledger.coalesced_watches(since_us=since_us, until_us=until_us, source="process"),
        open_contexts=answer.open_contexts,
        seen_once=answer.seen_once,
    )
