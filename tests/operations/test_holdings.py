"""Who holds what now: read once, then only what changes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from gpuledger.ledger.holders import standing
from gpuledger.model.lifecycle import Placement
from gpuledger.model.missing import Missing
from gpuledger.model.quotas import Scope
from gpuledger.operations.holdings import KEPT_US, Holdings
from gpuledger.operations.in_force import InForce
from quota_desk import Desk

EVERY_STORE = True

L4 = Placement(class_name="L4", machine="n1", count=2, share=Fraction(1, 4))


@pytest.fixture
def desk(new_place) -> Iterator[Desk]:
    made = Desk(new_place("l.db"), "{team: vision, devices: 9}")
    yield made
    made.ledger.close()


def take_in(found: Holdings, desk: Desk, names: list[str], now_us: int) -> None:
    """Read anew what these hold."""
    found.take_in(names, standing(desk.ledger.connection, dict.fromkeys(names, now_us)), now_us)


def held(desk: Desk, minute: float) -> Holdings:
    """What a process that starts at a minute knows."""
    force = InForce(desk.ledger)
    force.look(desk.at(minute))
    found = Holdings(desk.ledger, force)
    found.load(desk.at(minute))
    return found


def test_whoever_holds_is_found_by_user_and_team(desk) -> None:
    """Placed, admitted, and not placed yet; who waits, ended or lapsed is not."""
    desk.tell("runs", "provisioning", 0, L4, user="al")
    desk.tell("odd", "provisioning", 1, user="bo", requested="T4")
    desk.ask("new", "bo", 2, until=60)
    desk.ask("other", "cy", 2, class_name="L4")
    desk.tell("waits", "pending", 2, user="al")
    desk.tell("ended", "provisioning", 2, L4, user="al")
    desk.tell("ended", "stopped", 3, user="al")
    found = held(desk, 5)
    team = {each.workload: each for each in found.of((Scope.TEAM, "vision"))}
    assert sorted(team) == ["new", "odd", "runs"]
    assert [each.workload for each in found.of((Scope.USER, "cy"))] == ["other"]
    assert (team["runs"].amount, team["runs"].class_name, team["runs"].since_us) == (Fraction(1, 2), "L4", desk.at(0))
    assert (isinstance(team["odd"].amount, Missing), team["odd"].class_name) == (True, "T4")
    assert (team["new"].is_confirmed, team["new"].ends_us, team["new"].lapses_us) == (False, desk.at(60), desk.at(12))
    assert found.get("ended") is None
    assert len(found.everybody()) == 4


def test_what_changes_is_read_anew(desk) -> None:
    """A move, a stop, a stop that lies ahead."""
    desk.tell("w", "provisioning", 0, L4, user="al")
    found = held(desk, 1)
    desk.tell("w", "provisioning", 2, Placement(class_name="T4"))
    take_in(found, desk, ["w"], desk.at(2))
    assert [(each.class_name, each.amount) for each in found.everybody()] == [("T4", 1)]
    desk.tell("w", "stopped", 5, now=3)
    take_in(found, desk, ["w"], desk.at(3))
    (holder,) = found.everybody()
    assert (holder.lapses_us, holder.is_held(desk.at(4)), holder.is_held(desk.at(5))) == (desk.at(5), True, False)
    take_in(found, desk, ["w"], desk.at(5))
    assert not found.everybody()


def test_who_lapsed_is_let_go_after_a_while(desk) -> None:
    """Memory does not grow with those who were admitted and never came."""
    for number in range(5):
        desk.ask(f"w{number}", "bo", 0, class_name="L4")
    found = held(desk, 1)
    assert len(found.everybody()) == 5
    desk.ask("last", "bo", 19, class_name="L4")
    take_in(found, desk, ["last"], desk.at(10) + KEPT_US)
    assert [each.workload for each in found.everybody()] == ["last"]


def test_a_moment_of_the_past_is_read_as_it_was(desk) -> None:
    """By events before it, with the ends that came later."""
    desk.tell("w", "provisioning", 0, L4, user="al")
    desk.tell("w", "stopped", 60, user="al")
    desk.tell("v", "provisioning", 70, L4, user="al")
    assert [each.workload for each in held(desk, 30).everybody()] == ["w"]
    assert [each.workload for each in held(desk, 62).everybody()] == []
    assert [each.workload for each in held(desk, 80).everybody()] == ["v"]
