"""The rules of one workload's life: the order of its events, what a stop voids, when it held and when it is metered.

In: all events of one workload, in any order. Out: those that stand, the spans in which it held capacity, and the
intervals that are metered. Plain Python, one workload at a time: the statement that meters all of them at once must
agree with this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuledger.model.lifecycle import ENDED, FOLLOWS, HOLDING, METERED, State
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US
from gpuledger.model.quickly import quickly_made
from gpuledger.model.workload_rows import WorkloadEvent

_BEGINS = frozenset({State.PENDING, State.PROVISIONING})

OPEN = Missing("still open")
"""The end of a span that has not ended."""

MISSED_BEATS = 2
"""Heartbeats that may be missing before a source counts as silent: one can be on its way."""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """A span of a workload on one placement.

    Args:
        since_us: start, microseconds UTC.
        until_us: end; Missing while it is open.
        placement: key of the placement that counts; empty where none is known.
    """

    since_us: int
    until_us: int | Missing
    placement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLife:
    """What of a workload's life is open after some of its events, taken up one by one in their order.

    Args:
        state: of the last event that stands; empty before the first.
        has_ended: after a stop that no ``provisioning`` has followed.
        subjects: keys of the texts that name it since its life began; none once it has ended.
        source: who told the last event that stands.
        at_us: when that happened, microseconds UTC.
        is_declared: whether that is history that an importer declares.
    """

    state: str = ""
    has_ended: bool = False
    subjects: frozenset[str] = frozenset()
    source: str = ""
    at_us: int = 0
    is_declared: bool = False

    def followed_by(self, event: WorkloadEvent) -> OpenLife:
        """What stands with one event more, the next in order."""
        if self.has_ended and not stands_after(self.state, event.state):
            return self
        ends = event.state in ENDED
        return OpenLife(
            state=event.state, has_ended=ends or (self.has_ended and event.state != State.PROVISIONING),
            subjects=frozenset() if ends else self.subjects | {event.subject}, source=event.source,
            at_us=event.at_us, is_declared=bool(event.is_declared),
        )  # fmt: skip


NEVER_LIVED = OpenLife()
"""Before the first event."""


def since_begin(events: Sequence[WorkloadEvent], at_us: int) -> Sequence[WorkloadEvent]:
    """Of events in order, those from the last ``provisioning`` at or before a moment on: no others matter then."""
    began = [each.at_us for each in events if each.state == State.PROVISIONING and each.at_us <= at_us]
    return [each for each in events if each.at_us >= began[-1]] if began else events


def place_in_order(event: WorkloadEvent) -> tuple[int, int]:
    """What orders the events of a workload: when it happened, then when the ledger learned of it."""
    return (event.at_us, event.sequence)


def standing(events: Iterable[WorkloadEvent]) -> list[WorkloadEvent]:
    """The events that count, in order.

    ``stopped`` and ``failed`` void what follows until the next ``provisioning``: what a controller that was down
    wrote meanwhile, or guessed, cannot have run. Waiting for a new life (``pending``, and giving that up) stands.
    """
    found: list[WorkloadEvent] = []
    has_ended = False
    for event in sorted(events, key=place_in_order):
        if has_ended and not stands_after(found[-1].state, event.state):
            continue
        has_ended = event.state in ENDED or (has_ended and event.state != State.PROVISIONING)
        found.append(event)
    return found


def stands_after(last: str, state: str) -> bool:
    """Whether an event counts after a stop that no ``provisioning`` has followed; ``last`` is what stood last."""
    return state in _BEGINS or (state in ENDED and last == State.PENDING)


def state_at(events: Iterable[WorkloadEvent], at_us: int) -> State | None:
    """Where a workload stood at a moment; None before its first event."""
    before = [event.state for event in standing(events) if event.at_us <= at_us]
    return State(before[-1]) if before else None


def placements(stand: Sequence[WorkloadEvent]) -> list[str]:
    """For each standing event the placement that counts from it on: the latest named in the same life, else empty.

    A ``provisioning`` lets go of the one before: a restart elsewhere never takes the old placement.
    """
    found: list[str] = []
    counts = ""
    for event in stand:
        if event.state == State.PROVISIONING:
            counts = ""
        counts = event.placement or counts
        found.append(counts)
    return found


def holdings(events: Iterable[WorkloadEvent]) -> list[Stay]:
    """When a workload held capacity, and which: from its first state that holds to its stop, cut where it moved."""
    return _stays(events, HOLDING, joined=True)


def intervals(events: Iterable[WorkloadEvent]) -> list[Stay]:
    """What is metered: from each ``running`` to the next event that stands. An empty placement is ``unplaced``."""
    return _stays(events, METERED, joined=False)


def forbidden(stand: Sequence[WorkloadEvent], after: int = 0) -> tuple[WorkloadEvent | None, WorkloadEvent] | None:
    """The first of two standing events in a row that may not follow each other; None when all may.

    Args:
        stand: standing events in order.
        after: looked at from this position on.
    """
    for position in range(after, len(stand)):
        before = stand[position - 1] if position else None
        if stand[position].state not in FOLLOWS[State(before.state) if before else None]:
            return before, stand[position]
    return None


def _stays(events: Iterable[WorkloadEvent], states: frozenset[State], *, joined: bool) -> list[Stay]:
    stand = standing(events)
    found: list[Stay] = []
    for position, (event, placement) in enumerate(zip(stand, placements(stand), strict=True)):
        if event.state not in states:
            continue
        until_us = stand[position + 1].at_us if position + 1 < len(stand) else OPEN
        last = found[-1] if found else None
        if joined and last is not None and last.until_us == event.at_us and last.placement == placement:
            found[-1] = Stay(since_us=last.since_us, until_us=until_us, placement=placement)
        elif until_us != event.at_us:
            found.append(Stay(since_us=event.at_us, until_us=until_us, placement=placement))
    return found


def is_hour_over(told_us: int, until_us: int) -> bool:
    """Whether the hour in which something was last told is over: an import promises no next time, so it has that."""
    return -(-told_us // HOUR_US) * HOUR_US < until_us
