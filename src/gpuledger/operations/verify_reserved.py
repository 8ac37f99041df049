"""Records of reserved time, derived again: the part of ``verify`` that reads lifecycle events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpuledger.ledger.reserved import reading
from gpuledger.ledger.store import Ledger
from gpuledger.model.moments import HOUR_US, iso
from gpuledger.model.reserved import Difference
from gpuledger.model.rows import Pass
from gpuledger.operations.meter_reserved import Finality, contradictions
from gpuledger.operations.touched import seen_by

_CHUNK_HOURS = 7 * 24
"""Hours derived at a time: the rows of a week of a large cluster fit into memory."""


def differences(ledger: Ledger, *, now_us: int, progress: Callable[[int, int], None] | None = None) -> Iterator[str]:
    """Recorded hours that the events which passes had seen contradict, each as a sentence.

    What came late for a final hour is no such difference: ``blind`` lists it, until somebody books it.
    """
    passes = list(ledger.scan(Pass))
    seen = seen_by(passes)
    finality = Finality(passes, now_us=now_us)
    found: list[Difference] = []
    chunks = list(_chunks(finality.spans))
    with reading(ledger, seen) as read:
        for done, hours in enumerate(chunks, start=1):
            found += contradictions(read, hours, closed_us=finality.spans[-1][1], recorded_at_us=now_us)
            if progress is not None:
                progress(done, len(chunks))
    late: dict[int, set[str]] = {}
    for one in found:
        if finality.is_final(one.hour_us) and one.workload in _late(ledger, finality, one.hour_us, seen, late):
            continue
        yield (
            f"{one.meter} {iso(one.hour_us)} {one.host} {one.device} {one.workload}: "
            f"derived again it differs by {one.derived - one.recorded:+d}"
        )


def _late(
    ledger: Ledger, finality: Finality, hour_us: int, seen: dict[str, int], known: dict[int, set[str]]
) -> set[str]:
    """Workloads of which passes saw events, or heartbeats, only once the hour was final."""
    if hour_us not in known:
        before = finality.marks_at(hour_us)
        with reading(ledger, seen) as read:
            read.want_unseen(before)
            read.want_heard(before, until_us=hour_us + HOUR_US)
            known[hour_us] = read.wanted()
    return known[hour_us]


def _chunks(spans: Sequence[tuple[int, int]]) -> Iterator[Sequence[int]]:
    for since_us, until_us in spans:
        for start_us in range(since_us, until_us, _CHUNK_HOURS * HOUR_US):
            yield range(start_us, min(start_us + _CHUNK_HOURS * HOUR_US, until_us), HOUR_US)
