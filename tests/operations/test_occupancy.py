"""Who holds a device from when to when, as it is asked, written and overwritten by others."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from gpuledger.ledger import workloads
from gpuledger.metering.lifecycles import OPEN, Stay
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.workload_rows import Hold, PlacementRow
from gpuledger.operations.occupancy import Occupancy, follows
from gpuledger.operations.transition import record_transitions

HALF = Placement(class_name="L4", devices=("GPU-a",), share=Fraction(1, 2))
THIRD = Placement(class_name="L4", devices=("GPU-a", "GPU-b"), count=2, share=Fraction(1, 3))


@pytest.fixture
def occupancy(box) -> Occupancy:
    """Of a ledger in which v held half of a device for minutes 10 to 20, and w holds a third of two from 15 on."""
    steps = [
        ("v", "provisioning", 10, HALF), ("v", "stopped", 20, None), ("w", "provisioning", 15, THIRD),
    ]  # fmt: skip
    told = [
        Transition(
            workload=name, event_id=state, state=State(state), at_us=box.at(minute), source="ctl", placement=placement
        )
        for name, state, minute, placement in steps
    ]
    record_transitions(box.ledger, told, writer="box.a", now_us=box.at(60))
    found = Occupancy(box.ledger)
    found.catch_up()
    return found


def beside(occupancy: Occupancy, box, device: str, since: float, until: float | None, workload: str = "x") -> list:
    """Who holds most of a device at once, by name."""
    until_us = OPEN if until is None else box.at(until)
    return [holder.workload for holder in occupancy.beside(workload, device, box.at(since), until_us)]


def test_the_most_at_once_within_a_span(occupancy: Occupancy, box) -> None:
    """Half-open: who lets go at a moment is not there at it."""
    assert occupancy.watch({"GPU-a", "GPU-b"}, box.at(0)) == {"GPU-a", "GPU-b"}
    assert beside(occupancy, box, "GPU-a", 0, 10) == []
    assert beside(occupancy, box, "GPU-a", 0, 12) == ["v"]
    assert beside(occupancy, box, "GPU-a", 0, None) == ["v", "w"]
    assert beside(occupancy, box, "GPU-a", 20, None) == ["w"]
    assert beside(occupancy, box, "GPU-a", 0, None, "w") == ["v"]
    assert beside(occupancy, box, "GPU-b", 0, None) == ["w"]


def test_only_what_is_asked_for_is_read(occupancy: Occupancy, box) -> None:
    """And read again when an earlier moment is asked for."""
    assert not occupancy.knows("GPU-a")
    occupancy.watch({"GPU-a"}, box.at(30))
    assert beside(occupancy, box, "GPU-a", 30, None) == ["w"]
    assert occupancy.watch({"GPU-a"}, box.at(40)) == set()
    assert occupancy.watch({"GPU-a"}, box.at(5)) == {"GPU-a"}
    assert beside(occupancy, box, "GPU-a", 5, None) == ["v", "w"]


def test_what_is_judged_is_remembered_at_once(occupancy: Occupancy, box) -> None:
    """Begun, ended, replaced; devices that nobody asked about cost nothing."""
    occupancy.watch({"GPU-a"}, box.at(0))
    occupancy.begin("u", HALF.key, box.at(25))
    assert beside(occupancy, box, "GPU-a", 25, None) == ["w", "u"]
    occupancy.end("u", HALF.key, box.at(27))
    assert beside(occupancy, box, "GPU-a", 27, None) == ["w"]
    assert beside(occupancy, box, "GPU-a", 26, 27) == ["w", "u"]
    occupancy.replace("u", [Stay(since_us=box.at(40), until_us=box.at(50), placement=HALF.key)])
    assert beside(occupancy, box, "GPU-a", 26, 27) == ["w"]
    assert beside(occupancy, box, "GPU-a", 30, None) == ["w", "u"]
    occupancy.end("nobody", HALF.key, box.at(27))
    occupancy.begin("u", "unknown placement", 1)


def test_what_others_wrote_is_caught_up_with(occupancy: Occupancy, box) -> None:
    """By any writer, and only what changed is read."""
    occupancy.watch({"GPU-a"}, box.at(0))
    stop = Transition(workload="w", event_id="s", state=State.STOPPED, at_us=box.at(30), source="ctl")
    record_transitions(box.ledger, [stop], writer="box.b", now_us=box.at(60))
    assert beside(occupancy, box, "GPU-a", 35, None) == ["w"]
    assert occupancy.catch_up() == {"w"}
    assert beside(occupancy, box, "GPU-a", 35, None) == []
    assert occupancy.catch_up() == set()


def test_after_a_few_devices_placements_are_known_and_not_asked_for(occupancy: Occupancy, box, monkeypatch) -> None:
    """All are read once; those that others write, and those of this process, are known too."""
    occupancy.watch({f"GPU-{number}" for number in range(workloads.FEW)}, box.at(0))
    assert occupancy.watch({"GPU-x"}, box.at(0)) == {"GPU-x"}
    new = Placement(class_name="L4", devices=("GPU-a", "GPU-z"), count=2, share=Fraction(1, 7))
    told = [Transition(workload="o", event_id="p", state=State.PROVISIONING, at_us=box.at(30), source="ctl",
                       placement=new)]  # fmt: skip
    record_transitions(box.ledger, told, writer="box.other", now_us=box.at(60))
    assert occupancy.catch_up() == {"o"}
    for name in ("placements_on", "every_placement"):
        monkeypatch.setattr(workloads, name, lambda *_: pytest.fail("asked again"))
    occupancy.watch({"GPU-a", "GPU-z"}, box.at(0))
    assert beside(occupancy, box, "GPU-a", 0, 20) == ["v", "w"]
    assert beside(occupancy, box, "GPU-z", 30, None) == ["o"]
    assert beside(occupancy, box, "GPU-a", 30, None) == ["w", "o"]
    asked: list[object] = []
    monkeypatch.setattr(workloads, "placement_rows", lambda *found: asked.append(found) or [])
    mine = replace(new, share=Fraction(1, 9), devices=("GPU-m", "GPU-z"))
    occupancy.tell({new.key: new, mine.key: mine})
    assert asked == [], "what does not stand there is known not to"
    occupancy.wrote("box.me", [replace(PlacementRow.of(mine), writer="box.me", number=1)])
    occupancy.need([new.key, mine.key])
    assert asked == []


def test_a_placement_that_others_left_again_is_known_to_stand_there(occupancy: Occupancy, box) -> None:
    """No event that is read names it any more, and it would be written a second time."""
    occupancy.watch({f"GPU-{number}" for number in range(workloads.FEW + 1)}, box.at(50))
    left, now = replace(HALF, machine="n1"), replace(HALF, machine="n2")
    told = [
        Transition(workload="o", event_id=f"{minute}", state=state, at_us=box.at(minute), source="ctl", placement=where)
        for minute, state, where in (
            (30, State.PROVISIONING, left), (40, State.STOPPED, None), (45, State.PROVISIONING, now),
        )
    ]  # fmt: skip
    record_transitions(box.ledger, told, writer="box.other", now_us=box.at(60))
    occupancy.catch_up()
    occupancy.tell({left.key: left})
    assert {left.key, now.key} <= occupancy.stored


def test_an_unconfirmed_hold_counts_until_it_lapses_or_is_let_go(occupancy: Occupancy, box) -> None:
    """And is no longer there once it is confirmed: a workload never counts twice."""
    hold = Hold(
        workload="h", sequence=1, change="taken", at_us=box.at(30), placement=HALF.key, expires_at_us=box.at(40)
    )
    occupancy.placements[HALF.key] = HALF
    occupancy.watch({"GPU-a"}, box.at(0))
    occupancy.claim(hold)
    assert beside(occupancy, box, "GPU-a", 30, None) == ["w", "h"]
    assert beside(occupancy, box, "GPU-a", 40, None) == ["w"]
    occupancy.unclaim(hold)
    occupancy.unclaim(hold)
    assert beside(occupancy, box, "GPU-a", 30, None) == ["w"]
    occupancy.claim(replace(hold, change="released"))
    occupancy.claim(replace(hold, expires_at_us=OPEN))
    assert beside(occupancy, box, "GPU-a", 30, None) == ["w"]


def test_rows_follow_a_mark_or_others_stand_between() -> None:
    """Several processes may write to one chain: only the very next rows leave nothing unseen."""
    rows = [
        Hold(writer="a", number=number, workload="w", sequence=1, change="taken", at_us=1, placement="p",
             expires_at_us=2)
        for number in (4, 5)
    ]  # fmt: skip
    assert follows({"a": 3}, "a", rows)
    assert not follows({"a": 2}, "a", rows)
    assert not follows({}, "a", rows)
    assert follows({"b": 9}, "a", [replace(rows[0], number=1)])


def test_a_placement_is_hashed_once(occupancy: Occupancy, monkeypatch) -> None:
    """Equal ones have one key, whoever made them; another has another."""
    made: list[Placement] = []
    key_of = Placement.key.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Placement, "key", property(lambda self: made.append(self) or key_of(self)))
    assert occupancy.key_of(HALF) == occupancy.key_of(replace(HALF)) == key_of(HALF)
    assert occupancy.key_of(THIRD) == key_of(THIRD) != key_of(HALF)
    assert made == [HALF, THIRD]
