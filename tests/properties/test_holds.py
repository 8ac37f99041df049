"""Holds: every metered state holds capacity, a stop lets it go, and no device is held beyond its shares."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from gpuledger.errors import GpuledgerError
from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.model.lifecycle import ENDED, FOLLOWS, HOLDING, Placement, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, MINUTE_US
from gpuledger.model.outcomes import TransitionReport
from gpuledger.model.workload_rows import Hold, PlacementRow, WorkloadEvent
from gpuledger.operations.judging import Batch
from gpuledger.operations.transition import record_transitions
from gpuledger.operations.workload_memory import Memory

START_US = 494_000 * HOUR_US
NOW_US = START_US + 24 * HOUR_US
END_US = NOW_US + HOUR_US

PLACEMENTS = [
    Placement(class_name="L4", devices=devices, count=len(devices), share=share)
    for devices in (("GPU-x",), ("GPU-y",), ("GPU-x", "GPU-y"))
    for share in (Fraction(1), Fraction(1, 2), Fraction(1, 3))
] + [Placement(class_name="cpu", count=0), Placement(class_name="L4", count=2)]

told = st.fixed_dictionaries(
    {
        "workload": st.sampled_from("abcd"),
        "state": st.sampled_from([*State, State.PROVISIONING, State.RUNNING, State.STOPPED]),
        "minute": st.integers(0, 30),
        "placement": st.one_of(st.none(), st.sampled_from(PLACEMENTS)),
        "requested_class": st.sampled_from(["", "L4"]),
    }
)


class _Judged(Exception):
    """What a batch would write, without writing it."""


class Controllers(RuleBasedStateMachine):
    """Two controllers that write to one ledger, each with its own memory of it; late, forbidden and wrong, too."""

    root: Path
    made = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1
        place = self.root / f"{self.made}.db"
        self.ledgers = [Ledger.open(place, mode="append"), Ledger.open(place, mode="append")]
        self.events = 0
        self.latest_us = START_US

    def _transition(self, words: dict[str, Any], *, now: bool) -> Transition:
        self.events += 1
        at_us = START_US + words["minute"] * MINUTE_US
        if now:
            at_us = self.latest_us = max(self.latest_us, at_us)
        return Transition(
            workload=words["workload"], event_id=str(self.events), state=words["state"], at_us=at_us, source="ctl",
            placement=words["placement"], requested_class=words["requested_class"],
        )  # fmt: skip

    @rule(who=st.integers(0, 1), batch=st.lists(told, min_size=1, max_size=4), now=st.booleans())
    def tell(self, who: int, batch: list[dict[str, Any]], now: bool) -> None:
        """Any transitions: what a remembering controller decides, one that reads all of it anew decides too."""
        transitions = [self._transition(words, now=now) for words in batch]
        ledger = self.ledgers[who]
        expected = self._judged(ledger, transitions)
        report = _told(ledger, transitions, f"box.{who}")
        if isinstance(report, GpuledgerError):
            assert report.hint
            assert expected == report.code
            return
        assert isinstance(expected, list), expected
        assert list(report.added) == [row for row in expected if isinstance(row, WorkloadEvent)]
        assert list(report.holds) == [row for row in expected if isinstance(row, Hold)]
        again = _told(self.ledgers[1 - who], transitions, f"box.{1 - who}")
        assert isinstance(again, TransitionReport), again
        assert (again.added, again.holds, len(again.known)) == ((), (), len(transitions))

    @rule(who=st.integers(0, 1), workload=st.sampled_from("abcd"), placement=st.sampled_from(PLACEMENTS))
    def live(self, who: int, workload: str, placement: Placement) -> None:
        """One step further on the straight way, so that lives get long."""
        stand = _standing(self._events().get(workload, []))
        way = {None: State.PROVISIONING, "provisioning": State.RUNNING, "running": State.STOPPED}
        state = way.get(stand[-1].state if stand else None, State.PROVISIONING)
        words = {"workload": workload, "state": state, "minute": 0, "placement": placement, "requested_class": ""}
        if stand and state not in FOLLOWS[State(stand[-1].state)]:
            return
        report = _told(self.ledgers[who], [self._transition(words, now=True)], f"box.{who}")
        assert isinstance(report, TransitionReport) or report.code in (
            "device-full", "forbidden-transition", "end-before-start",
        )  # fmt: skip

    def _judged(self, ledger: Ledger, transitions: list[Transition]) -> list[Any] | str:
        def make() -> list[Any]:
            batch = Batch(ledger, Memory(ledger), now_us=NOW_US, imported=False)
            raise _Judged(batch.judge(transitions))

        try:
            ledger.append_made(make, writer="box.none", at_us=NOW_US)
        except _Judged as judged:
            return list(judged.args[0])
        except GpuledgerError as error:
            return error.code
        raise AssertionError

    def _events(self) -> dict[str, list[WorkloadEvent]]:
        found: dict[str, list[WorkloadEvent]] = {}
        for event in self.ledgers[0].scan(WorkloadEvent):
            found.setdefault(event.workload, []).append(event)
        return found

    @invariant()
    def no_device_is_held_beyond_its_shares(self) -> None:
        """At any moment, by the events; and now, by the holds."""
        where = {row.placement: row.read() for row in self.ledgers[0].scan(PlacementRow)}
        spans = [span for events in self._events().values() for span in _held(events)]
        for moment in {since for since, _, _ in spans}:
            _within_shares([where[key] for since, until, key in spans if key and since <= moment < until])
        claims = [hold for hold in self._claims().values() if hold.change != "released" and hold.placement]
        _within_shares([where[hold.placement] for hold in claims])

    @invariant()
    def what_is_metered_holds_and_what_ended_does_not(self) -> None:
        """The last hold of a workload is what its events end with; each running span lies in a span that holds."""
        claims = self._claims()
        for workload, events in self._events().items():
            stand = _standing(events)
            held = _held(events)
            last = stand[-1]
            claim = claims.get(workload)
            if last.state in HOLDING:
                assert claim is not None
                assert (claim.change, isinstance(claim.expires_at_us, Missing)) == ("taken", True)
                assert claim.placement == held[-1][2]
            else:
                assert claim is None or claim.change == "released"
                if last.state in ENDED and claim is not None:
                    assert any(
                        hold.change == "released" and hold.at_us <= last.at_us
                        for hold in self.ledgers[0].scan(Hold)
                        if hold.workload == workload
                    )
            for event, after in zip(stand, [*stand[1:], None], strict=True):
                if event.state == State.RUNNING:
                    until_us = END_US if after is None else after.at_us
                    covered = sum(max(0, min(u, until_us) - max(s, event.at_us)) for s, u, key in held if key)
                    assert covered == until_us - event.at_us

    def _claims(self) -> dict[str, Hold]:
        rows = sorted(self.ledgers[0].scan(Hold), key=lambda hold: (hold.sequence, hold.change))
        return {hold.workload: hold for hold in rows}

    def teardown(self) -> None:
        """The ledger is sound."""
        assert verify_ledger(self.ledgers[0]) == []
        for ledger in self.ledgers:
            ledger.close()


def _told(ledger: Ledger, transitions: list[Transition], writer: str) -> TransitionReport | GpuledgerError:
    """What came of it, or why not."""
    try:
        return record_transitions(ledger, transitions, writer=writer, now_us=NOW_US)
    except GpuledgerError as error:
        return error


def _standing(events: list[WorkloadEvent]) -> list[WorkloadEvent]:
    """The rule once more, spelled differently: an event counts unless a stop before it has no provisioning between."""
    found: list[WorkloadEvent] = []
    for event in sorted(events, key=lambda each: (each.at_us, each.sequence)):
        states = [each.state for each in found]
        stops = [place for place, state in enumerate(states) if state in ENDED]
        admissions = [place for place, state in enumerate(states) if state == State.PROVISIONING]
        is_over = bool(stops) and (not admissions or admissions[-1] < stops[-1])
        waits = bool(states) and states[-1] == State.PENDING
        if not is_over or event.state in (State.PROVISIONING, State.PENDING) or (waits and event.state in ENDED):
            found.append(event)
    return found


def _held(events: list[WorkloadEvent]) -> list[tuple[int, int, str]]:
    """(since, until, placement key) of each standing event that holds; open ends at the end of time."""
    stand, key, found = _standing(events), "", list[tuple[int, int, str]]()
    for event, after in zip(stand, [*stand[1:], None], strict=True):
        key = event.placement or ("" if event.state == State.PROVISIONING else key)
        if event.state in HOLDING:
            found.append((event.at_us, END_US if after is None else after.at_us, key))
    return found


def _within_shares(held: list[Placement]) -> None:
    for device in {device for placement in held for device in placement.devices}:
        assert sum(placement.share for placement in held if device in placement.devices) <= 1


def test_holds_keep_their_laws(tmp_path: Path) -> None:
    """Two controllers, any transitions in any order: capacity is held while it is metered, and never twice."""
    machine = type("Machine", (Controllers,), {"root": tmp_path})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
