"""One call's transitions, judged one after the other in the order in which they happened; nothing is written here.

In: transitions, and what the ledger knows of their workloads. Out: the rows that follow, or the refusal. An importer
is not refused: what it tells happened, and what breaks a rule becomes a problem beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from gpuledger.errors import GpuledgerError, Misconfigured, Refused
from gpuledger.ledger import workloads
from gpuledger.ledger.engine import together
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import OPEN
from gpuledger.model.identity import IdentityText
from gpuledger.model.lifecycle import ENDED, Placement, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import MINUTE_US, iso
from gpuledger.model.problem import Problem
from gpuledger.model.rows import Row
from gpuledger.model.workload_rows import Hold, PlacementRow, WorkloadEvent
from gpuledger.operations.lives import (
    Life,
    confirmed_too_late,
    covers,
    hold_changes,
    in_order,
    refusals_next,
    refuse_between,
    settle_claim,
)
from gpuledger.operations.occupancy import listed, stays_of
from gpuledger.operations.workload_memory import Memory

MOST_AHEAD_US = 5 * MINUTE_US
"""How far ahead of now an event may lie: clocks differ, and a plan is no event."""

_OWNER = ("user", "team", "project", "labels")
_NOTHING = ("", "", "", "")
_PROVISIONING = State.PROVISIONING  # said once: a member of an enum is looked up through a descriptor
_WORDS = {state: state.value for state in State}
_NEVER = 1 << 63
_LONG = 256
"""Events of one workload beyond which it is read anew instead of remembered."""


class Batch:
    """The transitions of one call, judged one after the other in the order in which they happened."""

    def __init__(self, ledger: Ledger, memory: Memory, *, now_us: int, imported: bool) -> None:
        self._ledger = ledger
        self._memory = memory
        self._occupancy = memory.occupancy
        self._now_us = now_us
        self._imported = imported
        self._declared = int(imported)
        self._lives = memory.lives
        self._texts = memory.texts
        self._asked_ahead: tuple[set[str], dict[str, int]] = (set(), {})
        self._stored: dict[tuple[str, str], WorkloadEvent] = {}
        self._key_by_id: dict[int, str] = {}  # a placement is hashed once, not once for each of its events
        self._told: dict[str, Placement] = {}
        self._ends: dict[str, list[int]] = {}  # the stops of this very call: what it takes it may let go again
        self.known: list[tuple[str, str]] = []
        self.problems: list[Problem] = []

    def judge(self, transitions: Sequence[Transition]) -> list[Row]:
        """The rows that follow from the transitions.

        Raises:
            Refused, Misconfigured: as :func:`gpuledger.operations.transition.record_transitions` says.
        """
        return self.judge_known(self.know(transitions))

    def know(self, transitions: Sequence[Transition]) -> list[Transition]:
        """Those transitions that are not ahead, once all that the ledger knows of their workloads is remembered.

        Raises:
            Refused, Misconfigured: as :meth:`judge`.
        """
        connection = self._ledger.connection
        unmet = {each.workload for each in transitions if each.workload not in self._lives}
        with together(connection) if unmet else nullcontext():
            sequences = workloads.ask_last_sequences(connection, unmet) if unmet else ()
            self._memory.catch_up()
            self._asked_ahead = (unmet, dict(sequences))
        self._check_teams(transitions)
        told = self._not_ahead(transitions)
        if told:
            self._load(told)
        return self._not_archived(told)

    def judge_known(self, told: Sequence[Transition]) -> list[Row]:
        """As :meth:`judge`, for transitions of workloads that :meth:`know` was asked about in this transaction."""
        rows: list[Row] = []
        moved: list[Life] = []
        used: set[str] = set()
        ordered = in_order(told)
        pools = self._memory.pools_in_force(self._now_us)
        for transition in ordered:
            if transition.state in ENDED:
                self._ends.setdefault(transition.workload, []).append(transition.at_us)
        for transition in ordered:
            life = self._lives[transition.workload]
            is_late = life.is_late(transition.at_us)
            if (event := self._event(transition, life, is_late=is_late)) is None:
                continue
            for broken in pools.refusals(life, event, self._occupancy.placements):
                self._told_or_refused(broken, event)
            rows.append(event)
            used.add(event.placement)
            if not life.is_new:
                moved.append(life)
            if holds := self._place_between(life, event) if is_late else self._place_last(life, event):
                rows.extend(holds)
        if self._imported:
            for life in sorted(moved, key=lambda life: life.workload):
                rows.extend(self._claim(life, self._settle(life)))
        for life in moved:
            life.is_new = False
            if len(life.events) > _LONG:
                del self._lives[life.workload]
        used -= self._occupancy.stored
        rows.extend(PlacementRow.of(placement, key=key) for key, placement in self._told.items() if key in used)
        return rows

    # What is known

    def _load(self, told: Sequence[Transition]) -> None:
        """All that the ledger knows of these workloads and of who holds the devices they name."""
        lives, since_us, fresh = self._lives, dict[str, int](), set[str]()
        for each in told:
            name, at_us = each.workload, each.at_us
            if at_us < since_us.get(name, _NEVER):
                since_us[name] = at_us
                if (life := lives.get(name)) is None or life.known_from_us > at_us:
                    fresh.add(name)
            if each.placement is not None and id(each.placement) not in self._key_by_id:
                key = self._key_by_id[id(each.placement)] = self._occupancy.key_of(each.placement)
                self._told.setdefault(key, each.placement)
        if self._told:
            self._occupancy.tell(self._told)
            devices = {device for placement in self._told.values() for device in placement.devices}
            self._occupancy.watch(devices, min(since_us.values()))
        if fresh:
            self._load_lives({name: at_us for name, at_us in since_us.items() if name in fresh})
        met: list[tuple[str, str]] = []
        subjects = {lives[name].subject for name in since_us}
        for each in told:
            life = lives[each.workload]
            if life.known_from_us >= 0:
                met.append((each.workload, each.event_id))
            elif life.events and (event := life.event_of(each.event_id)) is not None:
                self._stored[each.workload, each.event_id] = event
            if life.is_late(each.at_us):
                subjects.add(life.subject_at(each.at_us))
        if met:
            self._stored |= workloads.known_events(self._ledger.connection, met)
        if self._stored:
            subjects.update(row.subject for row in self._stored.values())
        unread = {key for key in subjects if key and key not in self._texts}
        if unread:
            self._texts.update(self._ledger.texts(unread))

    def _load_lives(self, since_us: dict[str, int]) -> None:
        connection = self._ledger.connection
        asked, sequences = self._asked_ahead
        if unasked := since_us.keys() - asked:
            sequences |= workloads.last_sequences(connection, unasked)
        met = {name: at_us for name, at_us in since_us.items() if name in sequences}
        events = workloads.events_since_begin(connection, met) if met else {}
        claims = workloads.claims(connection, met) if met else {}
        for name, at_us in since_us.items():
            found = events.get(name, [])
            admitted = [each.at_us for each in found if each.state == State.PROVISIONING and each.at_us <= at_us]
            known_us = max(admitted, default=-1)
            self._lives[name] = Life(name, found, claims.get(name), sequences.get(name, 0), known_from_us=known_us)
        if met:
            self._occupancy.need({event.placement for found in events.values() for event in found})
            self._occupancy.need({claim.placement for claim in claims.values()})

    def _check_teams(self, transitions: Sequence[Transition]) -> None:
        named = {each.team for each in transitions} - {""}
        if not named:
            return
        teams = self._memory.teams_in_force(self._now_us)
        for team in sorted(named - teams) if teams else ():
            listed = ", ".join(sorted(teams)[:10])
            message = f"the policy in force knows no team {team!r}, only {listed}"
            if not self._imported:
                raise Misconfigured("unknown-team", message, hint="gpuledger policy   (or apply one that lists it)")
            self.problems.append(Problem(code="unknown-team", message=message, where=team))

    def _not_ahead(self, transitions: Sequence[Transition]) -> list[Transition]:
        latest_us = self._now_us + MOST_AHEAD_US
        ahead = [each for each in transitions if each.at_us > latest_us]
        for each in ahead:
            message = f"{each.workload} {each.state} at {iso(each.at_us)}, and it is {iso(self._now_us)}"
            if not self._imported:
                raise Refused("at-ahead", f"{message}: no more than 5 minutes ahead", hint="check both clocks")
            message = f"{message}: left out until then"
            self.problems.append(Problem(code="at-ahead", message=message, where=each.event_id))
        return [each for each in transitions if each.at_us <= latest_us] if ahead else list(transitions)

    def _not_archived(self, told: list[Transition]) -> list[Transition]:
        """Those that are known, or happened after what is archived: of all others nobody can tell whether they left.

        Raises:
            Refused: ``archived``, of a live control plane.
        """
        before_us = self._memory.archived_until()
        late = [each for each in told if each.at_us < before_us] if before_us else []
        late = [each for each in late if (each.workload, each.event_id) not in self._stored]
        if not late:
            return told
        first = late[0]
        said = f"{first.workload} {first.state} at {iso(first.at_us)}" + (
            f", and {len(late) - 1} more" if len(late) > 1 else ""
        )
        message = f"{said}: the events before {iso(before_us)} are archived, and their hours closed for good"
        if not self._imported:
            raise Refused("archived", message, hint="gpuledger explain record:...   (what was recorded stands)")
        self.problems.append(
            Problem(code="archived", message=f"{message}; not added, they may be there", where=first.event_id)
        )
        gone = {id(each) for each in late}
        return [each for each in told if id(each) not in gone]

    # One event

    def _event(self, transition: Transition, life: Life, *, is_late: bool) -> WorkloadEvent | None:
        """The row of a transition; None when it is known."""
        placement = "" if transition.placement is None else self._key_by_id[id(transition.placement)]
        identity = (transition.workload, transition.event_id)
        stored = self._stored.get(identity)
        if stored is not None:
            differing = self._differs(transition, stored, placement)
            if not differing:
                self.known.append(identity)
                return None
            message = f"event {transition.event_id!r} of {transition.workload} is known with other content: {differing}"
            if not self._imported:
                raise Refused("conflict", message, hint="give the new event an id of its own: --id")
            self.problems.append(Problem(code="conflict", message=f"{message}; the first stays", where=stored.ref))
            return None
        if not placement and transition.state is _PROVISIONING and not self._imported:
            held = life.active_claim(transition.at_us)
            if held is not None and not isinstance(held.expires_at_us, Missing):
                placement = held.placement  # what was admitted is what is provisioned
            elif held is None:
                self.problems.extend(confirmed_too_late(life, transition.event_id))
        life.sequence += 1
        subject = self._subject(transition, life, is_late=is_late)
        event = WorkloadEvent(
            workload=transition.workload, event_id=transition.event_id, sequence=life.sequence,
            state=_WORDS[transition.state], at_us=transition.at_us, recorded_at_us=self._now_us,
            source=transition.source, is_declared=self._declared, subject=subject,
            requested_class=transition.requested_class, placement=placement,
        )  # fmt: skip
        self._stored[identity] = event
        return event

    def _subject(self, transition: Transition, life: Life, *, is_late: bool) -> str:
        """The key of the owner's text; what a transition does not say stays as it was told of the time before it."""
        labels = transition.labels_json if transition.labels else ""
        told = (transition.user, transition.team, transition.project, labels)
        before = life.subject_at(transition.at_us) if is_late else life.subject
        if before and (told == _NOTHING or (told == life.told and not is_late)):
            return before
        if not is_late:
            life.told = told
        base = self._texts.get(before)
        if base is None:
            text = IdentityText(workload=life.workload, user=told[0], team=told[1], project=told[2], labels=labels)
        else:
            text = replace(base, **{name: value for name, value in zip(_OWNER, told, strict=True) if value})
            if text == base:
                return before
        key = self._ledger.key_of(text, is_new=not before)
        self._texts[key] = text
        if not is_late:
            life.subject = key
        return key

    def _differs(self, transition: Transition, stored: WorkloadEvent, placement: str) -> str:
        """What a known event says otherwise, in words; empty when it says the same."""
        pairs = [
            ("state", stored.state, transition.state),
            ("at", iso(stored.at_us), iso(transition.at_us)),
            ("source", stored.source, transition.source),
            ("requested class", stored.requested_class, transition.requested_class),
        ]
        if placement:
            pairs.append(("placement", self._words(stored.placement), self._words(placement)))
        text = self._texts.get(stored.subject)  # None where it was forgotten: nothing is left to compare
        if text is not None:
            told = (transition.user, transition.team, transition.project, transition.labels_json)
            pairs += [(name, getattr(text, name), value) for name, value in zip(_OWNER, told, strict=True) if value]
        return "; ".join(f"{name} {old or 'none'}, now {new or 'none'}" for name, old, new in pairs if old != new)

    def _words(self, key: str) -> str:
        self._occupancy.need({key})
        where = self._occupancy.placements.get(key)
        return f"{where.words} ({key[:8]})" if where else ""

    # Its place in the life, and what it holds

    def _place_last(self, life: Life, event: WorkloadEvent) -> list[Hold]:
        """Put an event after all others, by the rules. Returns the hold rows that follow."""
        for broken in refusals_next(life, event):
            self._told_or_refused(broken, event)
        held, placement = life.holds, life.placement
        if not life.put_last(event):
            return []
        holds: list[Hold] = []
        if not self._imported:
            holds, refusal = hold_changes(life, event)
            if refusal is not None:
                raise refusal
            if holds:
                self._claim(life, holds)
        holds_on, has_moved = life.holds, life.placement != placement
        if held and (has_moved or not holds_on):
            self._occupancy.end(life.workload, placement, event.at_us)
        if holds_on and (has_moved or not held):
            ends = self._ends.get(life.workload, ())
            until_us = next((at_us for at_us in ends if at_us > event.at_us), OPEN) if ends else OPEN
            self._check_capacity(life.placement, event.at_us, until_us, event)
            self._occupancy.begin(life.workload, life.placement, event.at_us)
        return holds

    def _place_between(self, life: Life, event: WorkloadEvent) -> list[Hold]:
        """As :meth:`_place_last`, an event that others already follow."""
        before, held = list(life.stand), life.stays()
        stands = life.put_between(event)
        if (refusal := refuse_between(life, before, event)) is not None:
            self._told_or_refused(refusal, event)
        if not stands:
            return []
        stays = life.stays()
        for stay in stays if event.state not in ENDED else ():
            if not any(covers(old, stay) for old in held):
                self._check_capacity(stay.placement, stay.since_us, stay.until_us, event)
        self._occupancy.replace(life.workload, stays_of(life.events, life.claim))
        if self._imported:
            return []
        return self._claim(life, settle_claim(life, event, is_late=True))

    def _claim(self, life: Life, holds: list[Hold]) -> list[Hold]:
        """What a workload claims from now on; what only an admission held is confirmed or let go."""
        if holds:
            if life.claim is not None:
                self._occupancy.unclaim(life.claim)
            life.claim = holds[-1]
        return holds

    def _settle(self, life: Life) -> list[Hold]:
        """What is left to claim once an importer has told all: only what is still open."""
        last = max((event for event in life.events if event.is_declared), key=lambda event: event.sequence)
        return settle_claim(life, last, is_late=False)

    def _told_or_refused(self, refusal: GpuledgerError, event: WorkloadEvent) -> None:
        if not self._imported:
            raise refusal
        if refusal.code == "no-placement":
            self.problems.append(Problem(code="unplaced", message=refusal.message, where=event.event_id))
        elif refusal.code != "forbidden-transition" or self._lives[event.workload].stand or event.state in ENDED:
            self.problems.append(Problem(code=refusal.code, message=refusal.message, where=event.event_id))

    def _check_capacity(self, placement: str, since_us: int, until_us: int | Missing, event: WorkloadEvent) -> None:
        """Refuse, or tell, when a device would be held beyond its shares."""
        where = self._occupancy.placements.get(placement)
        for device in where.devices if where else ():
            if not self._occupancy.knows(device):
                self._read_late(device, since_us)
            others = self._occupancy.beside(event.workload, device, since_us, until_us)
            assert where is not None
            if not others or sum(holder.share for holder in others) + where.share <= 1:
                continue
            message = f"{device} is held by {listed(others)}: {where.share} more for {event.workload} is too much"
            if not self._imported:
                raise Refused(
                    "device-full",
                    message,
                    hint=f"gpuledger transition {others[-1].workload} stopped   (or place {event.workload} elsewhere)",
                )
            self.problems.append(Problem(code="over-capacity", message=message, where=event.event_id))

    def _read_late(self, device: str, since_us: int) -> None:
        """Read who holds a device that no transition of this call names, and what this call has changed about it."""
        fresh = self._occupancy.watch({device}, since_us)
        for life in self._lives.values():
            if life.is_new:
                self._occupancy.replace(life.workload, stays_of(life.events, life.claim), on=fresh)
