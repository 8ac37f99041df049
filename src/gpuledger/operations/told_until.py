"""Until when lifecycle events tell: to now where a control plane lives, else to the end of declared history."""

from __future__ import annotations

from gpuledger.ledger.reserved import reading
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.workload_rows import WorkloadEvent


def told_until(ledger: Ledger, *, now_us: int) -> int:
    """Where a window of reserved time ends when nobody says so, microseconds UTC: now, or the end of the hour."""
    latest = ledger.latest(WorkloadEvent)
    if isinstance(latest, Missing) or not latest.is_declared:
        return now_us
    with reading(ledger, ledger.marks()) as read:
        beats = [beat for beat in read.beats.values() if not isinstance(beat, Missing)]
    return min(now_us, -(-max([latest.at_us, *beats]) // HOUR_US) * HOUR_US)
