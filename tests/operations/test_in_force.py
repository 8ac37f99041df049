"""The policy in force: understood once, and another as soon as it holds."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest

from gpuledger.errors import Corrupt
from gpuledger.model.identity import IdentityText
from gpuledger.operations.in_force import InForce
from quota_desk import Desk


def test_the_policy_that_holds_now(tmp_path: Path) -> None:
    """None, then the first, then a later one from its date on; each change is told once."""
    desk = Desk(tmp_path / "l.db")
    force = InForce(desk.ledger)
    assert (force.look(desk.at(0)), force.number, force.policy.quotas, force.zone) == (True, 0, (), UTC)
    assert not force.look(desk.at(0))
    desk.apply("{user: al, devices: 1}", minute=1, zone="Europe/Berlin")
    assert force.look(desk.at(1))
    assert (force.number, str(force.zone)) == (1, "Europe/Berlin")
    assert force.roles("al") == ("student",)
    assert force.roles("zoe") == ()
    desk.apply("{user: al, devices: 2}", minute=2, effective=9)
    force.look(desk.at(3))
    assert force.number == 1
    assert force.look(desk.at(9))
    assert force.policy.quotas[0].limit == 2
    assert force.look(desk.at(8))
    assert force.number == 1
    desk.ledger.close()


def test_a_policy_applied_by_a_clock_that_is_ahead_is_not_missed(tmp_path: Path) -> None:
    """It is looked for again until it is there."""
    desk = Desk(tmp_path / "l.db")
    force = InForce(desk.ledger)
    desk.apply("{user: al, devices: 1}", minute=1)
    force.look(desk.at(0))
    assert force.number == 0
    assert not force.look(desk.at(0)), "nothing of what is in force has changed meanwhile"
    assert force.look(desk.at(1))
    assert force.number == 1
    desk.ledger.close()


def test_texts_are_read_once(tmp_path: Path) -> None:
    """And resolved by the policy in force."""
    desk = Desk(tmp_path / "l.db", "{user: al, devices: 1}")
    desk.ask("w", "al")
    force = InForce(desk.ledger)
    force.look(desk.at(1))
    (key,) = desk.ledger.texts(None)
    force.need([key, ""])
    assert force.texts[key] == IdentityText(workload="w", user="al")
    assert force.naming.owner(key, desk.at(1)).team == "vision"
    desk.ledger.close()


def test_texts_that_came_with_something_else_are_not_read_again(tmp_path: Path, monkeypatch) -> None:
    """Nor is one that is known taken anew; a damaged one is said."""
    desk = Desk(tmp_path / "l.db", "{user: al, devices: 1}")
    force = InForce(desk.ledger)
    force.learn({"key": '{"user": "al"}'})
    force.learn({"key": '{"user": "bo"}', "more": '{"user": "cy"}'})
    monkeypatch.setattr(desk.ledger, "texts", None)
    force.need(["key", "more"])
    assert {key: text.user for key, text in force.texts.items()} == {"key": "al", "more": "cy"}
    with pytest.raises(Corrupt, match="the identity text odd is damaged"):
        force.learn({"odd": '{"user"'})
    desk.ledger.close()
