"""A life while it is judged: adding at the end agrees with building it anew; holds follow its state."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.metering.lifecycles import OPEN, Stay
from gpuledger.model.lifecycle import State
from gpuledger.model.missing import Missing
from gpuledger.model.workload_rows import Hold, WorkloadEvent
from gpuledger.operations.lives import Life, covers, hold_changes, refusals_next, refuse_between, settle_claim


def event(sequence: int, state: str, at_us: int, placement: str = "", requested: str = "") -> WorkloadEvent:
    """One of workload w."""
    return WorkloadEvent(
        workload="w", event_id=str(sequence), sequence=sequence, state=state, at_us=at_us, recorded_at_us=0,
        source="ctl", subject="k", placement=placement, requested_class=requested,
    )  # fmt: skip


def hold(change: str, placement: str = "p", *, expires_us: int | None = None) -> Hold:
    """Its last hold row."""
    expires = Missing("confirmed") if expires_us is None else expires_us
    return Hold(workload="w", sequence=1, change=change, at_us=1, placement=placement, expires_at_us=expires)


steps = st.lists(
    st.tuples(
        st.sampled_from([*State, State.PROVISIONING, State.STOPPED]),
        st.integers(0, 2),
        st.sampled_from(["", "p", "q"]),
        st.sampled_from(["", "L4"]),
    ),
    max_size=10,
)


@settings(max_examples=200)
@given(steps)
def test_adding_at_the_end_agrees_with_building_anew(told: list) -> None:
    """State, placement, the class asked for and what stands are the same, however a life came together."""
    grown, events, at_us = Life("w"), [], 0
    for sequence, (state, later, placement, requested) in enumerate(told, 1):
        at_us += later
        events.append(event(sequence, state.value, at_us, placement, requested))
        assert not grown.is_late(at_us)
        grown.put_last(events[-1])
        built = Life("w", list(events))
        for name in ("stand", "placement", "requested", "has_ended", "state"):
            assert getattr(grown, name) == getattr(built, name), name


def test_a_hold_lapses_and_a_released_one_is_none() -> None:
    """Only what is active can be confirmed."""
    assert Life("w", claim=hold("taken", expires_us=10)).active_claim(9) is not None
    assert Life("w", claim=hold("taken", expires_us=10)).active_claim(10) is None
    assert Life("w", claim=hold("released")).active_claim(1) is None
    assert Life("w").active_claim(1) is None


@pytest.mark.parametrize(
    ("claim", "last", "changes"),
    [
        (None, event(2, "provisioning", 2, "p"), ["taken"]),
        (None, event(2, "provisioning", 2, requested="L4"), ["taken"]),
        (hold("taken", expires_us=9), event(2, "provisioning", 2, "p"), ["confirmed"]),
        (hold("taken", expires_us=9), event(2, "provisioning", 2, "q"), ["released", "taken"]),
        (hold("taken", expires_us=2), event(2, "provisioning", 2, "q"), ["released", "taken"]),
        (hold("taken"), event(2, "running", 2, "p"), []),
        (hold("taken"), event(2, "running", 2, "q"), ["released", "taken"]),
        (hold("taken"), event(2, "stopped", 2), ["released"]),
        (hold("released"), event(2, "stopped", 2), []),
        (hold("taken", expires_us=9), event(2, "pending", 2), []),
    ],
)
def test_the_hold_rows_that_follow(claim: Hold | None, last: WorkloadEvent, changes: list[str]) -> None:
    """Taken, confirmed, moved, released, as the state has it."""
    life = Life("w", claim=claim)
    life.put_last(last)
    rows, refusal = hold_changes(life, last)
    assert refusal is None
    assert [row.change for row in rows] == changes
    assert all((row.sequence, row.at_us) == (2, 2) for row in rows)


@pytest.mark.parametrize("state", ["provisioning", "running"])
def test_what_holds_nothing_is_refused(state: str) -> None:
    """Neither a placement nor a class, or a metered state without a hold."""
    life = Life("w")
    life.put_last(event(1, state, 1))
    rows, refusal = hold_changes(life, life.events[-1])
    assert rows == []
    assert refusal is not None
    assert refusal.code == "no-hold"


def test_what_cannot_come_next_is_said_in_full() -> None:
    """A first running without a placement breaks two rules."""
    assert [error.code for error in refusals_next(Life("w"), event(1, "running", 1))] == [
        "forbidden-transition", "no-placement",
    ]  # fmt: skip
    assert [error.code for error in refusals_next(Life("w"), event(1, "failed", 1))] == ["end-before-start"]
    assert refusals_next(Life("w"), event(1, "provisioning", 1)) == []


def test_old_faults_are_not_the_late_events_own() -> None:
    """An importer's forbidden pair stays where it was; a late event is judged by what it changes."""
    life = Life("w", [event(1, "stopping", 1), event(2, "running", 5, "p"), event(3, "booting", 9)])
    before = list(life.stand)
    late = event(4, "booting", 7)
    assert life.put_between(late)
    assert refuse_between(life, before, late) is None


def test_a_late_provisioning_may_not_take_the_placement_of_what_follows() -> None:
    """Running would have none any more."""
    life = Life("w", [event(1, "provisioning", 1, "p"), event(2, "running", 5)])
    before = list(life.stand)
    late = event(3, "provisioning", 3)
    life.put_between(late)
    refusal = refuse_between(life, before, late)
    assert refusal is not None
    assert refusal.code == "no-placement"


def test_a_late_stop_is_a_release_of_its_own() -> None:
    """Earlier than the one that was written, or before a new life that goes on."""
    life = Life("w", [event(1, "provisioning", 1, "p"), event(2, "stopped", 9)], hold("released"))
    stop = event(3, "stopped", 5)
    life.put_between(stop)
    assert [(row.change, row.at_us) for row in settle_claim(life, stop, is_late=True)] == [("released", 5)]
    life = Life("w", [event(1, "provisioning", 1, "p"), event(2, "provisioning", 9, "q")], hold("taken", "q"))
    life.put_between(stop)
    changes = [(row.change, row.at_us, row.placement) for row in settle_claim(life, stop, is_late=True)]
    assert changes == [("released", 5, "q"), ("taken", 9, "q")]


def test_an_importers_open_life_is_claimed_once() -> None:
    """Not again where it is held already."""
    life = Life("w", [event(1, "running", 1, "p")])
    (taken,) = settle_claim(life, life.events[-1], is_late=False)
    assert (taken.change, taken.at_us, taken.placement) == ("taken", 1, "p")
    life.claim = taken
    assert settle_claim(life, life.events[-1], is_late=False) == []


def test_an_event_is_found_by_its_id() -> None:
    """Whether it stands or not; none where it is not here."""
    life = Life("w", [event(1, "provisioning", 1), event(2, "stopped", 2), event(3, "running", 3)])
    assert [life.event_of("3"), life.event_of("4")] == [event(3, "running", 3), None]


def test_a_span_lies_within_another() -> None:
    """On the same placement, from no earlier and to no later; an open one within an open one alone."""
    whole, part = Stay(since_us=1, until_us=9, placement="p"), Stay(since_us=2, until_us=9, placement="p")
    is_open = replace(whole, until_us=OPEN)
    assert covers(whole, part)
    assert covers(is_open, part)
    assert covers(is_open, is_open)
    for old, new in ((part, whole), (whole, is_open), (whole, replace(part, placement="q"))):
        assert not covers(old, new)
