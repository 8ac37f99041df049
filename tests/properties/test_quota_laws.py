"""Quotas: what is admitted never exceeds them, whoever asks in whatever order; a plain model answers the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from gpuledger.errors import Refused
from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, MINUTE_US, parse_moment
from gpuledger.model.quotas import HOLD_US, NO_END, AdmitReport, AdmitRequest
from gpuledger.model.rows import PolicyVersion
from gpuledger.operations.admit import admit
from gpuledger.operations.meter import meter
from gpuledger.operations.quota_book import QuotaBook, forget_book
from gpuledger.operations.transition import record_transitions
from gpuledger.operations.workload_memory import forget_memory
from quota_desk import Desk

ZONE = ZoneInfo("Europe/Berlin")
STARTS = ["2026-10-24T21:10:00Z", "2026-10-31T22:40:00Z", "2026-07-27T10:00:00Z"]
"""Before the longest day of the year in Berlin, before the end of a month there, and any day."""

TEAMS = {"al": "vision", "bo": "vision", "cy": "nlp"}
ROLES = {"al": ["student"], "bo": [], "cy": ["student", "guest"]}

# (scope, name, class, limit, per)
Entry = tuple[str, str, str, Fraction, str]
ENTRIES: list[Entry] = [
    ("team", "vision", "", Fraction(2), ""),
    ("team", "vision", "H*", Fraction(1), ""),
    ("user", "*", "", Fraction(3, 2), ""),
    ("user", "bo", "L4", Fraction(1, 4), ""),
    ("role", "student", "", Fraction(1), ""),
    ("role", "*", "H*", Fraction(1, 2), ""),
    ("team", "*", "nothing-like-it", Fraction(0), ""),
    ("team", "vision", "", Fraction(3), "day"),
    ("user", "*", "H*", Fraction(5, 2), "week"),
    ("team", "nlp", "", Fraction(4), "month"),
]


@dataclass
class Held:
    """One workload in the plain model."""

    user: str
    class_name: str
    amount: Fraction
    end_us: int | None
    expires_us: int | None
    runs_since_us: int | None = None


@dataclass
class Model:
    """Quotas by plain lists, walked from the start each time."""

    entries: list[Entry] = field(default_factory=list)
    held: dict[str, Held] = field(default_factory=dict)
    runs: list[tuple[str, str, Fraction, int, int]] = field(default_factory=list)

    def fits(self, name: str, user: str, class_name: str, amount: Fraction, end_us: int | None, now_us: int) -> bool:
        """Whether every quota that matches has room."""
        return all(
            self._fits(entry, name, user, class_name, amount, end_us, now_us)
            for entry in self.entries
            if _matches(entry[2], class_name) and self._binds(entry, user)
        )

    def _binds(self, entry: Entry, user: str) -> bool:
        scope, name, *_ = entry
        mine = {"team": [TEAMS[user]], "user": [user], "role": ROLES[user]}[scope]
        return bool(mine) if name == "*" else name in mine

    def _same(self, entry: Entry, user: str, other: str) -> bool:
        return TEAMS[user] == TEAMS[other] if entry[0] == "team" else user == other

    def _fits(
        self, entry: Entry, name: str, user: str, class_name: str, amount: Fraction, end_us: int | None, now_us: int
    ) -> bool:
        _, _, pattern, limit, per = entry
        live = [
            each
            for workload, each in self.held.items()
            if workload != name and self.is_live(each, now_us) and self._same(entry, user, each.user)
            and _matches(pattern, each.class_name)
        ]  # fmt: skip
        if not per:
            return sum((each.amount for each in live), amount) <= limit
        since_us, until_us = period(now_us, per)
        running = [
            (each.user, each.class_name, each.amount, each.runs_since_us, now_us)
            for each in self.held.values()
            if each.runs_since_us is not None
        ]
        used = sum(
            (run[2] * max(0, min(run[4], now_us) - max(run[3], since_us))
             for run in [*self.runs, *running]
             if self._same(entry, user, run[0]) and _matches(pattern, run[1])),
            Fraction(0),
        )  # fmt: skip
        promised = sum(
            (each.amount * max(0, min(each.end_us, until_us) - now_us) for each in live if each.end_us is not None),
            Fraction(0),
        )
        if end_us is None:
            return used + promised < limit * HOUR_US
        return used + promised + amount * (min(end_us, until_us) - now_us) <= limit * HOUR_US

    def is_live(self, held: Held, now_us: int) -> bool:
        """Confirmed, or not lapsed."""
        return held.expires_us is None or held.expires_us > now_us


def period(now_us: int, per: str) -> tuple[int, int]:
    """The period by walking hour by hour until the local calendar says another one."""

    def name(at_us: int) -> object:
        local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)).astimezone(ZONE)
        return {"day": local.date(), "week": local.isocalendar()[:2], "month": (local.year, local.month)}[per]

    hour_us = now_us - now_us % HOUR_US
    since_us = until_us = hour_us
    while name(since_us - HOUR_US) == name(hour_us):
        since_us -= HOUR_US
    while name(until_us) == name(hour_us):
        until_us += HOUR_US
    return since_us, until_us


def _matches(pattern: str, class_name: str) -> bool:
    return class_name.startswith(pattern[:-1]) if pattern.endswith("*") else pattern in ("", class_name)


def document(entries: list[Entry]) -> str:
    """The policy of these quotas."""
    users = ", ".join(f"{name}: {{team: {TEAMS[name]}, roles: [{', '.join(ROLES[name])}]}}" for name in TEAMS)
    lines = [f"owners: {{users: {{{users}}}}}", "billing: {zone: Europe/Berlin}", "quotas:"]
    for scope, name, pattern, limit, per in entries:
        unit = f"device_hours: {float(limit)}, per: {per}" if per else f"devices: {limit}"
        which = f', class: "{pattern}"' if pattern else ""
        lines.append(f'  - {{{scope}: "{name}"{which}, {unit}}}')
    return "\n".join(lines) if entries else "\n".join(lines[:2])


class Askers(RuleBasedStateMachine):
    """Two controllers that ask, confirm, stop and let lapse; meters run beside them."""

    root: Path
    made = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1
        place = self.root / f"{self.made}.db"
        self.ledgers = [Ledger.open(place, mode="append"), Ledger.open(place, mode="append")]
        self.model = Model()
        self.events = 0
        self.versions = 0

    @initialize(start=st.sampled_from(STARTS), entries=st.lists(st.sampled_from(ENTRIES), unique=True, max_size=6))
    def begin(self, start: str, entries: list[Entry]) -> None:
        """A policy, and a moment."""
        self.now_us = parse_moment(start, now_us=0)
        self._apply(entries)

    @rule(entries=st.lists(st.sampled_from(ENTRIES), unique=True, max_size=4))
    def another_policy(self, entries: list[Entry]) -> None:
        """From now on other quotas hold, for what is held already too."""
        self._apply(entries)

    def _apply(self, entries: list[Entry]) -> None:
        self.versions += 1
        row = PolicyVersion(
            version=self.versions, effective_from_us=self.now_us, applied_at_us=self.now_us,
            document=document(entries), document_hash=str(self.versions),
        )  # fmt: skip
        self.ledgers[0].append([row], writer="box.apply", at_us=self.now_us)
        self.model.entries = entries

    @rule(
        who=st.integers(0, 1), workload=st.sampled_from("vwxyz"), user=st.sampled_from(sorted(TEAMS)),
        class_name=st.sampled_from(["H100", "L4"]), count=st.integers(1, 2),
        share=st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 4)]),
        minutes=st.sampled_from([None, 20, 60, 180]), forgotten=st.booleans(),
    )  # fmt: skip
    def ask(
        self, who: int, workload: str, user: str, class_name: str, count: int, share: Fraction, minutes: int | None,
        forgotten: bool,
    ) -> None:  # fmt: skip
        """The answer is the model's; a check said so before; asked again nothing is added."""
        held = self.model.held.get(workload)
        if held is not None and self.model.is_live(held, self.now_us):
            return
        ledger = self.ledgers[who]
        request = AdmitRequest(
            workload=workload, placement=Placement(class_name=class_name, count=count, share=share), user=user,
            span_us=NO_END if minutes is None else minutes * MINUTE_US,
        )  # fmt: skip
        end_us = None if minutes is None else self.now_us + minutes * MINUTE_US
        expected = self.model.fits(workload, user, class_name, count * share, end_us, self.now_us)
        if forgotten:
            forget_book(ledger)
            forget_memory(ledger)
        before = self.ledgers[0].marks()
        said = admit(self.ledgers[1 - who], request, writer="box.x", now_us=self.now_us, is_check=True)
        assert self.ledgers[0].marks() == before
        report = self._ask(who, request)
        assert (said.admitted, report.admitted) == (expected, expected), report.reasons
        assert report.refusal().hint if not expected else not report.reasons
        if not expected:
            assert self.ledgers[0].marks() == before
            return
        assert not isinstance(report.hold, Missing)
        assert report.hold.expires_at_us == self.now_us + HOLD_US
        self.model.held[workload] = Held(user, class_name, count * share, end_us, self.now_us + HOLD_US)
        before = self.ledgers[0].marks()
        again = self._ask(1 - who, request)
        assert (again.admitted, again.known, again.hold) == (True, True, report.hold)
        assert self.ledgers[0].marks() == before

    def _ask(self, who: int, request: AdmitRequest) -> AdmitReport:
        return admit(self.ledgers[who], request, writer=f"box.{who}", now_us=self.now_us)

    @rule(who=st.integers(0, 1), workload=st.sampled_from("vwxyz"))
    def start(self, who: int, workload: str) -> None:
        """What was admitted is provisioned, and runs."""
        held = self.model.held.get(workload)
        if held is None or held.runs_since_us is not None or not self.model.is_live(held, self.now_us):
            return
        self._tell(who, workload, State.PROVISIONING, State.RUNNING)
        held.expires_us, held.runs_since_us = None, self.now_us

    @rule(who=st.integers(0, 1), workload=st.sampled_from("vwxyz"))
    def stop(self, who: int, workload: str) -> None:
        """It is given back, whether it ran or was only admitted."""
        held = self.model.held.get(workload)
        if held is None:
            return
        self._tell(who, workload, State.STOPPED)
        del self.model.held[workload]
        if held.runs_since_us is not None:
            self.model.runs.append((held.user, held.class_name, held.amount, held.runs_since_us, self.now_us))

    def _tell(self, who: int, workload: str, *states: State) -> None:
        told = []
        for state in states:
            self.events += 1
            told.append(
                Transition(workload=workload, event_id=str(self.events), state=state, at_us=self.now_us, source="ctl")
            )
        record_transitions(self.ledgers[who], told, writer=f"box.{who}", now_us=self.now_us)

    @rule(minutes=st.sampled_from([0, 1, 4, 9, 10, 30, 55, 130]))
    def wait(self, minutes: int) -> None:
        """Time passes: holds lapse, hours close, periods end."""
        self.now_us += minutes * MINUTE_US

    @rule(who=st.integers(0, 1))
    def record(self, who: int) -> None:
        """A metering pass changes no answer."""
        meter(self.ledgers[who], now_us=self.now_us, writer=f"box.meter{who}")

    @rule(workload=st.sampled_from("vwxyz"), count=st.integers(1, 2))
    def other_words(self, workload: str, count: int) -> None:
        """Something else under the name of what is held is a conflict, and adds nothing."""
        held = self.model.held.get(workload)
        if held is None or not self.model.is_live(held, self.now_us):
            return
        before = self.ledgers[0].marks()
        request = AdmitRequest(workload=workload, placement=Placement(class_name="T4", count=count), user=held.user)
        with pytest.raises(Refused) as caught:
            self._ask(0, request)
        assert caught.value.code == "conflict"
        assert self.ledgers[0].marks() == before

    @invariant()
    def what_is_held_is_what_the_model_holds(self) -> None:
        """By who remembers, and by who reads all of it anew."""
        if not self.versions:
            return
        expected = {
            name: (each.user, each.amount, each.end_us, each.expires_us)
            for name, each in self.model.held.items()
            if self.model.is_live(each, self.now_us)
        }
        book = QuotaBook(self.ledgers[0])
        book.prepare(self.now_us)
        found = {
            each.workload: (
                each.user,
                each.amount,
                None if isinstance(each.ends_us, Missing) else each.ends_us,
                None if isinstance(each.lapses_us, Missing) else each.lapses_us,
            )
            for each in book.holdings.everybody()
        }
        assert found == expected

    def teardown(self) -> None:
        """The ledger is sound."""
        assert verify_ledger(self.ledgers[0]) == []
        for ledger in self.ledgers:
            ledger.close()


def test_quotas_keep_their_laws(tmp_path: Path) -> None:
    """Two controllers, any order of asking, starting, stopping and lapsing, over midnights and changes of the clock."""
    machine = type("Machine", (Askers,), {"root": tmp_path})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


HELD = st.tuples(st.sampled_from(["1", "1/2", "2"]), st.sampled_from([None, 3, 10, 16, 20, 30, 45, 70]))
"""Devices, and for how many hours; None: nobody said, and it stays."""


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    held=st.lists(HELD, max_size=5), asked=HELD, later=st.sampled_from([0, 9, 15]),
    at_once=st.integers(1, 6), hours=st.sampled_from([6, 20, 30, 48]),
)  # fmt: skip
def test_a_place_that_was_told_is_there(
    tmp_path_factory: pytest.TempPathFactory, held: list[tuple[str, int | None]], asked: tuple[str, int | None],
    later: int, at_once: int, hours: int,
) -> None:  # fmt: skip
    """Whoever said so ended when they said, and nobody came before: asked again at that moment, the answer is yes."""
    desk = Desk(tmp_path_factory.mktemp("told") / "l.db", "{user: al, devices: 99}")

    def ask(name: str, what: tuple[str, int | None], minute: float, *, check: bool = False) -> AdmitReport:
        amount, length = Fraction(what[0]), what[1]
        where = Placement(class_name="L4", count=max(1, int(amount)), share=min(amount, Fraction(1)))
        return desk.ask(name, "al", minute, placement=where, span=length and length * 60, check=check)

    for number, what in enumerate(held):
        assert ask(str(number), what, 0).admitted
        desk.run(str(number), 0)
    desk.apply(f"{{user: al, devices: {at_once}}}\n{{team: vision, device_hours: {hours}, per: day}}", minute=0)
    now = later * 60
    ends = sorted((60 * length, str(number)) for number, (_, length) in enumerate(held) if length)
    for end, name in [each for each in ends if each[0] <= now]:
        desk.tell(name, "stopped", end, now=now)
    said = ask("more", asked, now)
    frees = said.frees_us
    if not said.admitted and not isinstance(frees, Missing):
        assert frees > desk.at(now)
        minute = Fraction(frees - desk.start_us, MINUTE_US)
        for end, name in [each for each in ends if now < each[0] <= minute]:
            desk.tell(name, "stopped", end)
        assert ask("more", asked, minute, check=True).admitted, said.reasons
    desk.ledger.close()
