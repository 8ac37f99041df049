"""Workloads while a batch of transitions is judged: what each has lived through, what it holds, what may come next.

In: what the ledger knows of the workloads of a batch. Out: for each new event its place in the life, whether it may
be there, and the hold rows that follow. Nothing is written here.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from gpuledger.errors import GpuledgerError, Refused
from gpuledger.metering.lifecycles import (
    Stay,
    forbidden,
    holdings,
    place_in_order,
    placements,
    standing,
    stands_after,
)
from gpuledger.model.lifecycle import ENDED, FOLLOWS, HOLDING, METERED, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.problem import Problem
from gpuledger.model.workload_rows import Hold, WorkloadEvent

STAYS = Missing("a confirmed hold does not expire")
"""The expiry of a hold that a workload's own events confirm."""

_BEGINS = frozenset({State.PENDING, State.PROVISIONING})
_NEXT: dict[str | None, frozenset[State]] = dict(FOLLOWS.items())


@dataclass(slots=True)
class Life:
    """One workload, as far back as its last admission.

    Args:
        workload: its id.
        events: its events in order.
        claim: its last hold row; None before the first.
        sequence: of the last event the ledger learned of.
        subject: key of the text that says whose it is at the end, empty before the first event.
    """

    workload: str
    events: list[WorkloadEvent] = field(default_factory=list)
    claim: Hold | None = None
    sequence: int = 0
    subject: str = ""
    stand: list[WorkloadEvent] = field(default_factory=list)
    """The events that count."""
    placement: str = ""
    """Key of the placement that counts at the end."""
    requested: bool = False
    """Whether this life says which class it asks for."""
    has_ended: bool = False
    state: str | None = None
    """Where it stands at the end; None before its first event."""
    is_new: bool = False
    """Whether it got an event in this batch."""
    known_from_us: int = -1
    """From when on all of its events are here."""
    told: tuple[str, str, str, str] | None = None
    """What was last said of its owner."""

    def __post_init__(self) -> None:
        if self.events:
            self._stand_anew()
            self.subject = self.subject or self.events[-1].subject

    @property
    def holds(self) -> bool:
        """Whether it holds capacity at the end, by its events."""
        return self.state in HOLDING

    def is_late(self, at_us: int) -> bool:
        """Whether what is told now of a moment lies before what is known already."""
        return bool(self.events) and at_us < self.events[-1].at_us

    def subject_at(self, at_us: int) -> str:
        """Whose it was at a moment by the events that are here: the last before it says so, else the first after."""
        place = bisect_right(self.events, at_us, key=lambda event: event.at_us)
        return self.events[max(place - 1, 0)].subject

    def event_of(self, event_id: str) -> WorkloadEvent | None:
        """The event of an id among those that are here; None where there is none."""
        for event in self.events:
            if event.event_id == event_id:
                return event
        return None

    def stays(self) -> list[Stay]:
        """When it held what."""
        return holdings(self.stand)

    def active_claim(self, at_us: int) -> Hold | None:
        """The hold it has at a moment: confirmed, or not lapsed yet."""
        claim = self.claim
        if claim is None or claim.change == "released":
            return None
        lapses_us = claim.expires_at_us
        return claim if isinstance(lapses_us, Missing) or lapses_us > at_us else None

    def put_last(self, event: WorkloadEvent) -> bool:
        """Add an event that comes after all others. Returns whether it stands."""
        state = event.state
        self.events.append(event)
        self.is_new = True
        if self.has_ended and not stands_after(self.stand[-1].state, state):
            return False
        if state in _BEGINS:
            if self.has_ended:
                self.requested = False
            if state == State.PROVISIONING:
                self.placement, self.has_ended = "", False
        elif state in ENDED:
            self.has_ended = True
        if event.placement:
            self.placement = event.placement
        if event.requested_class:
            self.requested = True
        self.stand.append(event)
        self.state = state
        return True

    def put_between(self, event: WorkloadEvent) -> bool:
        """Add an event that others already follow. Returns whether it stands."""
        insort(self.events, event, key=place_in_order)
        self.is_new = True
        self._stand_anew()
        return event in self.stand

    def _stand_anew(self) -> None:
        self.stand = standing(self.events)
        counts = placements(self.stand)
        self.placement = counts[-1] if counts else ""
        self.state = self.stand[-1].state if self.stand else None
        self.has_ended = False
        self.requested = False
        for event in self.stand:
            if self.has_ended and event.state in _BEGINS:
                self.requested = False
            self.requested = self.requested or bool(event.requested_class)
            self.has_ended = event.state in ENDED or (self.has_ended and event.state != State.PROVISIONING)


_moment = attrgetter("at_us")


def in_order(transitions: Sequence[Transition]) -> list[Transition]:
    """By time; at one moment devices are let go before others take them, and each workload keeps its order."""
    if not any(each.state in ENDED for each in transitions):
        return sorted(transitions, key=_moment)
    seen: set[tuple[str, int]] = set()
    keyed: list[tuple[int, int, int]] = []
    for place, each in enumerate(transitions):
        moment = (each.workload, each.at_us)
        keyed.append((each.at_us, int(each.state not in ENDED or moment in seen), place))
        seen.add(moment)
    return [transitions[place] for _, _, place in sorted(keyed)]


def covers(old: Stay, new: Stay) -> bool:
    """Whether one span lies within another, on the same placement."""
    if old.placement != new.placement or old.since_us > new.since_us:
        return False
    return isinstance(old.until_us, Missing) or (not isinstance(new.until_us, Missing) and new.until_us <= old.until_us)


def refusals_next(life: Life, event: WorkloadEvent) -> list[GpuledgerError]:
    """Why an event may not come after all others of its workload; empty when it may."""
    found = []
    if event.state not in _NEXT[life.state]:
        found.append(_forbidden(life.stand[-1] if life.stand else None, event))
    if event.state in METERED and not event.placement and not life.placement:
        found.append(_unplaced(event))
    return found


def refuse_between(life: Life, before: list[WorkloadEvent], event: WorkloadEvent) -> GpuledgerError | None:
    """Why an event may not stand where it was put, or what followed may not any more; None when all may.

    Args:
        life: with the event put in.
        before: what stood without it; faults that were there already are not the event's.
        event: the one in question.
    """
    if event not in life.stand:
        last = [each for each in life.stand if place_in_order(each) < place_in_order(event)]
        # a second stop after a stop is nothing new, and anything else there would be void
        return None if event.state in ENDED else _forbidden(last[-1] if last else None, event)
    place = life.stand.index(event)
    known = set(zip([None, *map(place_in_order, before)], map(place_in_order, before), strict=False))
    while (pair := forbidden(life.stand, place)) is not None:
        first, second = pair
        place = life.stand.index(second) + 1
        if (None if first is None else place_in_order(first), place_in_order(second)) not in known:
            return _forbidden(first, second, late=event)
    unplaced = {place_in_order(each) for each, key in zip(before, placements(before), strict=True) if not key}
    for each, key in zip(life.stand, placements(life.stand), strict=True):
        if each.state in METERED and not key and place_in_order(each) not in unplaced:
            return _unplaced(each)
    return None


def hold_changes(life: Life, event: WorkloadEvent) -> tuple[list[Hold], GpuledgerError | None]:
    """The hold rows that follow from an event that came last and stands, or why it may not be."""
    state = event.state
    if state in ENDED:
        return ([_change(event, "released", life.claim.placement)] if _is_taken(life) and life.claim else []), None
    if state not in HOLDING:
        return [], None
    held, wanted = life.active_claim(event.at_us), life.placement
    if held is None:
        lapsed = [_change(event, "released", life.claim.placement)] if _is_taken(life) and life.claim else []
        if state != State.PROVISIONING or not (wanted or life.requested):
            return [], _no_hold(life, event)
        return [*lapsed, _change(event, "taken", wanted)], None
    if not isinstance(held.expires_at_us, Missing) and wanted in ("", held.placement):
        return [_change(event, "confirmed", held.placement)], None
    if wanted == held.placement:
        return [], None
    return [_change(event, "released", held.placement), _change(event, "taken", wanted)], None


def settle_claim(life: Life, event: WorkloadEvent, *, is_late: bool) -> list[Hold]:
    """The hold rows that bring a workload's claim to what its events now end with.

    For an event that others follow (``is_late``), and for what an importer declares: only where a workload stands in
    the end is claimed. A late stop is a release of its own, earlier than the one that was written.
    """
    held = life.active_claim(event.at_us)
    rows: list[Hold] = []
    last = life.stays()[-1] if life.holds else None
    is_same = held is not None and last is not None and held.placement == last.placement
    if held is not None and is_same and not isinstance(held.expires_at_us, Missing):
        return [_change(event, "confirmed", held.placement)]
    if held is not None and (not is_same or event.state in ENDED):
        rows.append(_change(event, "released", held.placement))
    elif is_late and event.state in ENDED and life.claim is not None:
        rows.append(_change(event, "released", life.claim.placement))
    if last is not None and (rows or held is None):
        rows.append(replace(_change(event, "taken", last.placement), at_us=last.since_us))
    return rows


def _is_taken(life: Life) -> bool:
    return life.claim is not None and life.claim.change != "released"


def _change(event: WorkloadEvent, change: str, placement: str) -> Hold:
    return Hold(
        workload=event.workload,
        sequence=event.sequence,
        change=change,
        at_us=event.at_us,
        placement=placement,
        expires_at_us=STAYS,
    )


def _forbidden(
    before: WorkloadEvent | None, event: WorkloadEvent, *, late: WorkloadEvent | None = None
) -> GpuledgerError:
    allowed = _NEXT[before.state if before else None]
    hint = f"{event.workload} may become {', '.join(state for state in State if state in allowed)}"
    if before is None and event.state in ENDED:
        return Refused(
            "end-before-start",
            f"{event.workload} {event.state} at {iso(event.at_us)}: it had not begun by then",
            hint=f"send its beginning first, or the right time: {hint} first",
        )
    stood = f"was {before.state} since {iso(before.at_us)}" if before else "was not known"
    because = f": {late.state} at {iso(late.at_us)} does not fit" if late is not None and late is not event else ""
    return Refused(
        "forbidden-transition",
        f"{event.workload} {stood} and cannot become {event.state} at {iso(event.at_us)}{because}",
        hint=hint,
    )


def _unplaced(event: WorkloadEvent) -> GpuledgerError:
    return Refused(
        "no-placement",
        f"{event.workload} {event.state} at {iso(event.at_us)}: nothing says where since it was provisioned",
        hint=f"gpuledger transition {event.workload} {event.state} --class H100-80GB --devices 1",
    )


def confirmed_too_late(life: Life, event_id: str) -> list[Problem]:
    """That an admission came to nothing, of a workload that has no hold now; nothing where it had none."""
    claim = life.claim
    if claim is None or claim.change == "released" or isinstance(claim.expires_at_us, Missing):
        return []
    message = (
        f"the hold of {life.workload} lapsed at {iso(claim.expires_at_us)}, and what it said with it: nothing tells "
        "on what it is, so it counts in no quota until an event says so with --class and --devices"
    )
    return [Problem(code="hold-lapsed", message=message, where=event_id)]


def _no_hold(life: Life, event: WorkloadEvent) -> GpuledgerError:
    claim = life.claim
    if claim is not None and claim.change == "taken" and not isinstance(claim.expires_at_us, Missing):
        why = f"its hold lapsed at {iso(claim.expires_at_us)}"
    elif event.state == State.PROVISIONING:
        why = "it says neither on what nor of which class, so nothing would be held"
    else:
        why = "it holds no capacity"
    return Refused(
        "no-hold",
        f"{event.workload} {event.state} at {iso(event.at_us)}: {why}",
        hint=f"gpuledger transition {event.workload} provisioning --class H100-80GB --devices 1",
    )
