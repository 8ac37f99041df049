"""``admit``: may this run? The check of every quota and the hold are one transaction; no two take the last place.

The documented Python call: :func:`admit`. It answers yes with a hold of ten minutes, which ``provisioning`` confirms,
or no with every reason. Guide: docs/guides/quotas.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from gpuledger.accounting.capacity import alternatives
from gpuledger.accounting.quota import bounds, full_device
from gpuledger.accounting.room import Wish, joint_room
from gpuledger.errors import Misconfigured, Refused, Unavailable
from gpuledger.ledger.holders import expected_ends
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.workloads import claims
from gpuledger.metering.lifecycles import OPEN
from gpuledger.model.identity import IdentityText
from gpuledger.model.lifecycle import State, Transition, event_id_of
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, iso
from gpuledger.model.quotas import HOLD_US, NO_END, AdmitReport, AdmitRequest, FullDevice, Holder, Per, QuotaUse, Scope
from gpuledger.model.rows import Row
from gpuledger.model.usage import NO_NAME
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent
from gpuledger.operations.admit_notes import notes
from gpuledger.operations.judging import Batch
from gpuledger.operations.lives import Life
from gpuledger.operations.quota_book import QuotaBook, book_of, forget_book
from gpuledger.operations.workload_memory import Memory, forget_memory, memory_of

NOT_HELD = Missing("nothing was taken")
_LONGEST_US = 36_525 * DAY_US
_TRIES = 8
"""How often a question is asked again because the policy, or closed hours, changed while it was asked."""


def admit(ledger: Ledger, request: AdmitRequest, *, writer: str, now_us: int, is_check: bool = False) -> AdmitReport:
    """Whether a workload may have what it asks for; and if so, it is held for ten minutes.

    A yes is three or four rows: a ``pending`` event that says whose the workload is, the hold, its placement, and the
    end that it expects. The same request again, while the hold lives or once it runs, is answered the same and adds
    nothing. A no writes nothing.

    Args:
        ledger: open to append; to read is enough for a check.
        request: who asks for what.
        writer: the chain, ``HOST.ROLE``.
        now_us: now, microseconds UTC.
        is_check: only answer; nothing is taken.

    Raises:
        Refused: ``conflict`` where the workload holds something else, or by other words.
        Misconfigured: ``bad-end`` for an end that is not ahead, ``bad-placement`` for several classes;
            ``unknown-team``, ``bad-transition`` as of transitions.
        Unavailable: ``ledger-busy`` and the like.
    """
    _check(request, now_us)
    text: IdentityText | None = None
    for _ in range(_TRIES):
        book = book_of(ledger)
        asking = Asking(ledger, memory_of(ledger), book, request, now_us=now_us, is_check=is_check)
        try:
            with ledger.mapped():
                book.prepare(now_us)
                asking.look_ahead(text)
            if is_check:
                with ledger.snapshot():
                    asking.judge()
            else:
                appended = ledger.append_made(
                    asking.judge, writer=writer, at_us=now_us, are_new=True, scopes=asking.scopes
                )
                if appended is not None:
                    return asking.took(writer, appended.added)
        except BaseException as error:
            if asking.is_judged or not isinstance(error, Refused | Misconfigured):
                forget_memory(ledger)
                forget_book(ledger)
            raise
        if asking.answer is not None:
            return asking.answer
        text = asking.text
    raise Unavailable("ledger-busy", "the policy or closed hours changed while this was asked", hint="ask again")


class Asking:
    """One request, judged in the transaction that may grant it.

    Attributes:
        scopes: what the answer depends on, by names, sorted: whoever answers by one of them at the same time waits.
            Known before the transaction begins.
        text: whose it is, as the ledger knew it in the transaction.
        answer: any answer but a yes that is to be written.
        is_judged: whether what is remembered counts on the rows of a yes.
    """

    def __init__(
        self, ledger: Ledger, memory: Memory, book: QuotaBook, request: AdmitRequest, *, now_us: int, is_check: bool
    ) -> None:
        self._ledger = ledger
        self._memory = memory
        self._book = book
        self._request = request
        self._now_us = now_us
        self._is_check = is_check
        self._key = request.placement.key
        self._told = self._transition(now_us, 0)
        self._granted: AdmitReport | None = None
        self.scopes: tuple[str, ...] = ()
        self.text: IdentityText | None = None
        self.answer: AdmitReport | None = None
        self.is_judged = False

    def look_ahead(self, text: IdentityText | None) -> None:
        """Settle the scopes; ``text`` is whose it was found to be, where it was asked before."""
        self._memory.occupancy.need({self._key})
        if text is None:
            text = self._text(self._memory.lives.get(self._request.workload))
        self.scopes = self._scopes(text)

    def _scopes(self, text: IdentityText) -> tuple[str, ...]:
        request = self._request
        user, team, _ = self._book.in_force.naming.answerer_of(text, self._now_us)
        names = [f"workload:{request.workload}", *(f"device:{device}" for device in request.placement.devices)]
        if self._key not in self._memory.occupancy.stored:
            names.append(f"placement:{self._key}")  # else two who write the first of its kind would collide
        names += [f"{scope}:{name}" for scope, name in ((Scope.USER, user), (Scope.TEAM, team)) if name != NO_NAME]
        return tuple(sorted(names))

    def judge(self) -> list[Row] | None:
        """The rows of a yes; None for any other answer, or for none yet: what is known is to be read anew."""
        request = self._request
        batch = Batch(self._ledger, self._memory, now_us=self._now_us, imported=False)
        batch.know([self._told])
        occupancy = self._memory.occupancy
        if not self._book.catch_up(occupancy.marks, self._now_us, occupancy.news):
            return None
        life = self._memory.lives[request.workload]
        claim = life.active_claim(self._now_us)
        text = self.text = self._text(life)
        if not set(self._scopes(text)) <= set(self.scopes):
            return None  # it is somebody else's than was thought, whose quotas are not locked
        at_us = max([self._now_us, *(event.at_us for event in life.events[-1:])])
        ends: tuple[int, int] | None = None
        if life.events or life.claim is not None:
            ends = expected_ends(self._ledger.connection, [request.workload]).get(request.workload)
        if life.holds or claim is not None:
            self._refuse_other(life, claim, text, ends)
            held = claims(self._ledger.connection, [request.workload]).get(request.workload)
            self.answer = self._answered(text, at_us=self._now_us, hold=held, ends_us=_end_of(ends), is_known=True)
            return None
        answer = self._answered(text, at_us=at_us, hold=None, ends_us=request.ends_us(at_us))
        if not answer.admitted or self._is_check:
            self.answer = answer
            return None
        self.is_judged = True
        rows = batch.judge_known([self._transition(at_us, life.sequence)])
        (event,) = (row for row in rows if isinstance(row, WorkloadEvent))
        self._granted = answer
        return [*rows, *self._rows(life, event, answer.ends_us)]

    def took(self, writer: str, added: Sequence[Row]) -> AdmitReport:
        """The answer yes, once its rows are there."""
        self._memory.wrote(writer, added)
        (hold,) = (row for row in added if isinstance(row, Hold) and row.change == "taken")
        answer = self._granted
        assert answer is not None
        holder = _holder(answer, hold)
        self._book.took(holder, writer, added)
        uses = tuple(self._with(use, holder) for use in answer.uses)
        return replace(answer, hold=hold, uses=uses)

    def _with(self, use: QuotaUse, holder: Holder) -> QuotaUse:
        """A quota with what was just taken of it."""
        asked = use.asked if not isinstance(use.asked, Missing) else Fraction(0)
        at_once = use.bound.quota.per is Per.AT_ONCE
        return replace(
            use,
            used=use.used + (asked if at_once else 0),
            promised=use.promised + (0 if at_once else asked),
            holders=(*use.holders, holder),
        )

    # What is known of it

    def _transition(self, at_us: int, sequence: int) -> Transition:
        request = self._request
        words = (request.workload, at_us, sequence, self._key, request.user, request.team, request.project)
        return Transition(
            workload=request.workload,
            event_id=event_id_of("admit", *words, request.labels),
            state=State.PENDING,
            at_us=at_us,
            source=request.source,
            user=request.user,
            team=request.team,
            project=request.project,
            requested_class=request.placement.class_name,
            labels=request.labels,
        )

    def _text(self, life: Life | None) -> IdentityText:
        """Whose it is: what is not said stays as it was told before."""
        told = self._told
        known = self._memory.texts.get(life.subject) if life is not None else None
        base = known or IdentityText(workload=told.workload)
        said = {"user": told.user, "team": told.team, "project": told.project, "labels": told.labels_json}
        return replace(base, **{name: value for name, value in said.items() if value})

    def _refuse_other(self, life: Life, claim: Hold | None, text: IdentityText, ends: tuple[int, int] | None) -> None:
        """Refuse what is not the same request again."""
        request = self._request
        held = claim.placement if claim is not None else life.placement
        differing = []
        if held != self._key:
            self._memory.occupancy.need({held})
            where = self._memory.occupancy.placements.get(held)
            differing.append(
                f"it holds {where.words if where else 'what nothing names'}, and asks for {request.placement.words}"
            )
        if text != self._memory.texts.get(life.subject, text):
            differing.append("it is known by another user, team, project or labels")
        wanted = request.ends_us(ends[0] if ends else self._now_us)
        if wanted != _end_of(ends) and not (isinstance(wanted, Missing) and ends is None):
            differing.append(f"it gave {_end_words(_end_of(ends))}, and now {_end_words(wanted)}")
        if differing:
            raise Refused(
                "conflict",
                f"{request.workload} was admitted before, by other words: {'; '.join(differing)}",
                hint=f"gpuledger transition {request.workload} stopped   (or ask for another workload)",
            )

    # The answer

    def _answered(
        self, text: IdentityText, *, at_us: int, hold: Hold | None, ends_us: int | Missing, is_known: bool = False
    ) -> AdmitReport:
        request, force = self._request, self._book.in_force
        user, team, _ = force.naming.answerer_of(text, self._now_us)
        roles = force.roles(user)
        applying = bounds(
            force.policy.quotas,
            user=user,
            team=team,
            roles=roles,
            class_name=request.placement.class_name,
        )
        uses = [
            self._book.use(
                bound,
                now_us=self._now_us,
                asked=Fraction(0) if is_known else request.amount,
                ends_us=ends_us,
                without="" if is_known else request.workload,
                is_asked=not is_known,
            )
            for bound in applying
        ]
        full = () if is_known else tuple(self._full(at_us))
        admitted = all(use.fits for use in uses) and not full
        frees_us: int | Missing = self._now_us
        if not admitted:
            wish = Wish.until(ends_us, request.amount, at_us=self._now_us)
            moments = [each.frees_us for each in full]
            frees_us = joint_room(uses, moments, wish, at_us=self._now_us, zone=force.zone)
        return AdmitReport(
            request=request,
            at_us=at_us,
            user=user,
            team=team,
            roles=roles,
            admitted=admitted,
            known=is_known,
            is_check=self._is_check,
            hold=NOT_HELD if hold is None else hold,
            ends_us=ends_us,
            uses=tuple(sorted(uses, key=lambda use: (use.fits, use.left))),
            full=full,
            frees_us=frees_us,
            problems=tuple(notes(self._book, request, user=user, team=team, uses=uses, now_us=self._now_us)),
        )

    def _full(self, at_us: int) -> list[FullDevice]:
        placement, occupancy = self._request.placement, self._memory.occupancy
        if not placement.devices:
            return []
        occupancy.placements.setdefault(self._key, placement)
        occupancy.watch(placement.devices, at_us)
        found = []
        for device in placement.devices:
            others = [
                self._on_device(each.workload, each.share, each.since_us)
                for each in occupancy.beside(self._request.workload, device, at_us, OPEN)
            ]
            full = full_device(device, placement.share, others, at_us=self._now_us)
            if full is not None:
                found.append(full)
        return found

    def _on_device(self, workload: str, share: Fraction, since_us: int) -> Holder:
        known = self._book.holdings.get(workload)
        if known is not None:
            return replace(known, amount=share)
        return Holder(
            workload=workload, user=NO_NAME, team=NO_NAME, class_name="", amount=share, since_us=since_us,
            ends_us=NO_END, lapses_us=NO_END,
        )  # fmt: skip

    def _rows(self, life: Life, event: WorkloadEvent, ends_us: int | Missing) -> list[Row]:
        """The hold of a yes, and what stands behind it."""
        placement, occupancy = self._request.placement, self._memory.occupancy
        rows: list[Row] = []
        occupancy.placements.setdefault(self._key, placement)
        occupancy.need({self._key})
        if self._key not in occupancy.stored:
            rows.append(PlacementRow.of(placement))
        hold = Hold(
            workload=event.workload,
            sequence=event.sequence,
            change="taken",
            at_us=event.at_us,
            placement=self._key,
            expires_at_us=event.at_us + HOLD_US,
        )
        if life.claim is not None and life.claim.change != "released":  # it lapsed, and nobody let it go
            lapsed = replace(hold, change="released", placement=life.claim.placement, expires_at_us=NOT_HELD)
            rows.append(lapsed)
        rows.append(hold)
        if not isinstance(ends_us, Missing):
            rows.append(
                ExpectedEnd(workload=event.workload, sequence=event.sequence, at_us=event.at_us, until_us=ends_us)
            )
        if life.claim is not None:
            occupancy.unclaim(life.claim)
        life.claim = hold
        occupancy.claim(hold)
        return rows


def _holder(answer: AdmitReport, hold: Hold) -> Holder:
    request = answer.request
    return Holder(
        workload=request.workload,
        user=answer.user,
        team=answer.team,
        class_name=request.placement.class_name,
        amount=request.amount,
        since_us=hold.at_us,
        ends_us=answer.ends_us,
        lapses_us=hold.expires_at_us,
        is_confirmed=False,
        devices=request.placement.devices,
    )


def _check(request: AdmitRequest, now_us: int) -> None:
    if len(wanted := alternatives(request.placement.class_name)) > 1:
        message = f"{request.placement.class_name} names {len(wanted)} classes, and a place is held of one"
        raise Misconfigured("bad-placement", message, hint=f"--class {wanted[0]}")
    ends_us = request.ends_us(now_us)
    if isinstance(ends_us, Missing):
        return
    if ends_us <= now_us:
        message = f"{request.workload} would end at {iso(max(0, ends_us))}, and it is {iso(now_us)}"
        raise Misconfigured("bad-end", message, hint="--until 4h")
    if ends_us - now_us > _LONGEST_US:
        raise Misconfigured("bad-end", f"{request.workload} would end in more than a hundred years", hint="--until 4h")


def _end_of(ends: tuple[int, int] | None) -> int | Missing:
    return NO_END if ends is None else ends[1]


def _end_words(ends_us: int | Missing) -> str:
    return "no end" if isinstance(ends_us, Missing) else f"the end {iso(ends_us)}"
