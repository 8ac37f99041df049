"""Records of reserved time, derived again: the part of ``verify`` that reads lifecycle events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gpuledger.ledger.booking import make_ready, ready_rows
from gpuledger.ledger.reserved import reading
from gpuledger.ledger.store import Ledger
from gpuledger.metering.reserved import Key, heads_of, seconds_of
from gpuledger.model.moments import HOUR_US, iso
from gpuledger.model.rows import Pass
from gpuledger.operations.finality import Finality
from gpuledger.operations.meter_reserved import placements, whole
from gpuledger.operations.reserved_windows import Window, windows
from gpuledger.operations.touched import seen_by

_ROWS_AT_ONCE = 100_000
"""Amounts compared at a time: a bound on memory."""


def differences(
    ledger: Ledger,
    *,
    now_us: int,
    since_us: int = -(2**62),
    until_us: int = 2**62,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[str]:
    """Recorded hours that the events which passes had seen contradict, each as a sentence.

    What came late for a final hour is no such difference: ``blind`` lists it, until somebody books it. Time in which
    nothing was told, nobody ran and nothing was recorded is passed over, however long. Only hours of [since, until) are
    looked at.
    """
    passes = list(ledger.scan(Pass))
    seen = seen_by(passes)
    finality = Finality(passes, now_us=now_us)
    found: dict[Key, int] = {}
    for done, (low_us, high_us) in enumerate(finality.spans, start=1):
        span = max(low_us, since_us), min(high_us, until_us)
        for window in windows(ledger, seen, *span, cut_us=finality.spans[-1][1]):
            found.update(_contradictions(ledger, window))
        if progress is not None:
            progress(done, len(finality.spans))
    late: dict[int, set[str]] = {}
    with reading(ledger, seen) as read:
        whose = {subject: read.workloads_of(subject) for subject in {key[4] for key in found}}
    for key, more in sorted(found.items()):
        meter, hour_us, host, device, subject = key
        may_be_late = finality.is_final(hour_us) or finality.is_behind
        if may_be_late and set(whose[subject]) & _late(ledger, finality, hour_us, seen, late, now_us):
            continue
        yield (
            f"{meter} {iso(hour_us)} {host} {device} {', '.join(whose[subject])}: derived again it differs by {more:+d}"
        )


def _contradictions(ledger: Ledger, window: Window) -> dict[Key, int]:
    """Of each key that differs, how much more the events say than is recorded."""
    read, span = window.read, (window.since_us, window.last_us)
    found: dict[Key, int] = {}
    with ledger.snapshot():
        known = placements(read, read.placed())
        heads, shared = heads_of(read.runs(*span), known)
        read.book_by_row(shared)
    for number, hours in enumerate(window.steps(_ROWS_AT_ONCE)):
        with ledger.snapshot():
            read.cut(whole(hours), open_hours=hours)
            make_ready(read, heads if not number else None, recorded_at_us=0)
            told: dict[Key, int] = seconds_of(list(read.times_by_row()), known)
            for meter, hour_us, host, device, subject, seconds in ready_rows(read):
                told[meter, hour_us, host, device, subject] = seconds
            found.update(_against(read.recorded(hours.start, hours.stop), told))
    with ledger.snapshot():
        found.update(_against(read.recorded(window.last_us, window.until_us), {}))
    return found


def _against(recorded: Iterator[tuple[str, int, str, str, str, int]], told: dict[Key, int]) -> dict[Key, int]:
    for meter, hour_us, host, device, subject, amount in recorded:
        key = (meter, hour_us, host, device, subject)
        told[key] = told.get(key, 0) - amount
    return {key: more for key, more in told.items() if more}


def _late(
    ledger: Ledger, finality: Finality, hour_us: int, seen: Mapping[str, int], known: dict[int, set[str]], now_us: int
) -> set[str]:
    """Workloads of which passes saw events, or heartbeats, only once the hour was final; by their own clocks.

    What a pass by a clock ahead of this one took for late is booked by the next.
    """
    if hour_us not in known:
        is_final = finality.is_final(hour_us)
        before = finality.marks_at(hour_us) if is_final else finality.seen_before(now_us + 1)
        with reading(ledger, seen) as read:
            read.want_unseen(before)
            read.want_heard(before, until_us=hour_us + HOUR_US)
            known[hour_us] = read.wanted()
    return known[hour_us]
