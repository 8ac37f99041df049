"""One workload's life: order, what a stop voids, when it held, when it is metered."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.metering.lifecycles import (
    NEVER_LIVED,
    OPEN,
    forbidden,
    holdings,
    intervals,
    placements,
    since_begin,
    standing,
    state_at,
)
from gpuledger.model.lifecycle import ENDED, State
from gpuledger.model.missing import Missing
from gpuledger.model.workload_rows import WorkloadEvent


def life(text: str) -> list[WorkloadEvent]:
    """``1:provisioning@p 2:running``: events in the order in which they were learned of."""
    events = []
    for sequence, word in enumerate(text.split(), 1):
        at, state = word.split(":")
        state, _, placement = state.partition("@")
        events.append(
            WorkloadEvent(
                workload="w", event_id=str(sequence), sequence=sequence, state=state, at_us=int(at),
                recorded_at_us=0, source="ctl", subject="k", placement=placement,
            )
        )  # fmt: skip
    return events


def spans(stays) -> list[tuple[object, ...]]:
    """As (since, until, placement); ``None`` for an open end."""
    return [(s.since_us, None if isinstance(s.until_us, Missing) else s.until_us, s.placement) for s in stays]


@pytest.mark.parametrize(
    ("told", "metered", "held"),
    [
        ("1:provisioning@p 2:running 5:stopped", [(2, 5, "p")], [(1, 5, "p")]),
        ("1:provisioning@p 2:running", [(2, None, "p")], [(1, None, "p")]),
        ("1:provisioning@p 2:running 3:running@q 5:failed", [(2, 3, "p"), (3, 5, "q")], [(1, 3, "p"), (3, 5, "q")]),
        ("1:provisioning@p 2:running 3:booting 4:running 5:stopped", [(2, 3, "p"), (4, 5, "p")], [(1, 5, "p")]),
        ("1:provisioning@p 2:running 6:running@q 8:stopped 4:stopped", [(2, 4, "p")], [(1, 4, "p")]),
        ("1:provisioning@p 2:running 4:stopped 6:provisioning@q 7:running", [(2, 4, "p"), (7, None, "q")],
         [(1, 4, "p"), (6, None, "q")]),
        ("1:provisioning@p 2:running 4:stopped 6:pending 7:running 8:stopped", [(2, 4, "p")], [(1, 4, "p")]),
        ("1:provisioning@p 2:running 4:provisioning 5:running", [(2, 4, "p"), (5, None, "")],
         [(1, 4, "p"), (4, None, "")]),
        ("2:running 5:stopped", [(2, 5, "")], [(2, 5, "")]),
        ("2:running 2:running@p 5:stopped", [(2, 5, "p")], [(2, 5, "p")]),
        ("1:provisioning@p 2:running 2:stopped", [], [(1, 2, "p")]),
        ("1:pending 5:stopped", [], []),
    ],
)  # fmt: skip
def test_what_is_metered_and_what_is_held(told: str, metered: list, held: list) -> None:
    """Restarts elsewhere, flapping, late stops, waiting, no placement."""
    events = life(told)
    assert spans(intervals(events)) == metered
    assert spans(holdings(events)) == held


def test_a_stop_voids_until_the_next_provisioning() -> None:
    """Waiting anew stands, and giving that up; running does not."""
    events = life(
        "1:provisioning@p 2:running 3:stopped 4:running 5:pending 6:running 7:failed 8:stopped 9:provisioning"
    )
    assert [event.at_us for event in standing(events)] == [1, 2, 3, 5, 7, 9]


def test_the_order_of_arrival_breaks_ties_only() -> None:
    """Two events of one moment keep the order in which the ledger learned of them."""
    assert [event.state for event in standing(life("2:running 1:provisioning@p 2:stopped"))] == [
        "provisioning", "running", "stopped",
    ]  # fmt: skip


def test_where_it_stood() -> None:
    """At any moment, by what stands."""
    events = life("1:provisioning@p 2:running 4:stopped 5:running")
    assert [state_at(events, at) for at in (0, 1, 3, 4, 9)] == [
        None, State.PROVISIONING, State.RUNNING, State.STOPPED, State.STOPPED,
    ]  # fmt: skip


def test_what_may_not_follow_is_found() -> None:
    """The first such pair, from a position on."""
    events = life("1:provisioning@p 2:stopping 3:running 4:stopped")
    pair = forbidden(events)
    assert pair is not None
    assert pair[0] is not None
    assert (pair[0].state, pair[1].state) == ("stopping", "running")
    assert forbidden(events, 3) is None
    assert forbidden(life("1:running")) is not None


def test_a_provisioning_lets_the_old_placement_go() -> None:
    """A restart elsewhere never takes the machine before."""
    assert placements(life("1:provisioning@p 2:running 3:provisioning 4:running@q")) == ["p", "p", "", "q"]


words = st.tuples(st.integers(0, 9), st.sampled_from(list(State)), st.sampled_from(["", "p", "q"]))


@settings(max_examples=150)
@given(st.lists(words, max_size=9), st.randoms())
def test_order_of_evidence_does_not_matter_and_spans_are_apart(told: list, shuffle: random.Random) -> None:
    """Shuffled events give the same spans; these never overlap; what is metered is held."""
    events = life(" ".join(f"{at}:{state}@{place}" for at, state, place in told))
    shuffled = list(events)
    shuffle.shuffle(shuffled)
    assert intervals(shuffled) == intervals(events)
    assert holdings(shuffled) == holdings(events)
    for stays in (intervals(events), holdings(events)):
        for before, after in pairwise(stays):
            assert not isinstance(before.until_us, Missing)
            assert before.until_us <= after.since_us
    for stay in intervals(events):
        until = 99 if stay.until_us is OPEN else stay.until_us
        assert any(
            held.since_us <= stay.since_us and (held.until_us is OPEN or until <= held.until_us)
            for held in holdings(events)
            if held.placement == stay.placement
        )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(list(State)), max_size=9))
def test_one_event_after_the_other_gives_what_stands_last(states: list[State]) -> None:
    """Taken up in their order, the events leave the state that all of them together give."""
    events = life(" ".join(f"{at}:{state.value}" for at, state in enumerate(states)))
    found = NEVER_LIVED
    for event in events:
        found = found.followed_by(event)
    stand = standing(events)
    assert found.state == (stand[-1].state if stand else "")
    assert (found.at_us, found.source) == ((stand[-1].at_us, "ctl") if stand else (0, ""))
    assert bool(found.subjects) == (bool(stand) and stand[-1].state not in ENDED)


@pytest.mark.parametrize(("at_us", "first"), [(0, 1), (1, 1), (3, 1), (4, 3), (9, 3)])
def test_a_life_from_its_last_admission_on(at_us: int, first: int) -> None:
    """What comes after is kept, also other admissions; without any before, all."""
    events = life("1:provisioning 2:running 4:stopped 4:provisioning 9:running")
    kept = [event.sequence for event in since_begin(events, at_us)]
    assert kept == list(range(first, 6))
    assert since_begin(life("2:running 5:stopped"), 7) == life("2:running 5:stopped")
