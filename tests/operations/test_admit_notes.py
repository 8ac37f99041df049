"""What an answer of ``admit`` says beside yes or no: quotas that are nobody's, and what is held or used untold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpuledger.model.moments import MINUTE_US
from gpuledger.operations.transition import heartbeat
from quota_desk import Desk

QUOTAS = """
{role: student, devices: 1}
{team: vision, devices: 2}
{team: vision, class: "H100*", device_hours: 10, per: day}
"""


@pytest.fixture
def desk(tmp_path) -> Iterator[Desk]:
    """A policy with a quota of each kind."""
    made = Desk(tmp_path / "desk.db", QUOTAS)
    yield made
    made.ledger.close()


def test_of_any_card_no_quota_of_a_class_can_tell(desk) -> None:
    """Who asks hears so, and so does whoever asks while it is held."""
    yes = desk.ask("w", "al", class_name="gpu")
    assert [(each.code, each.where) for each in yes.problems] == [("any-class", "w")]
    assert [use.bound.quota.class_glob for use in yes.uses] == ["", ""]
    other = desk.ask("v", "bo", 1)
    assert [
        (use.used, [each.workload for each in use.unknown]) for use in other.uses if use.bound.quota.class_glob
    ] == [(0, ["w"])]
    assert [each.message for each in other.problems] == ["w holds gpu, and nothing says of which class: not counted"]


def test_hours_that_nobody_told_are_said(desk) -> None:
    """A controller that fell silent: what its workload used since is in no quota's hours, and the answer says so."""
    heartbeat(desk.ledger, "ctl", writer="box.ctl", at_us=desk.at(0), interval_us=MINUTE_US)
    desk.ask("w", "al")
    desk.run("w", 1)
    heartbeat(desk.ledger, "ctl", writer="box.ctl", at_us=desk.at(30), interval_us=MINUTE_US)
    assert desk.ask("v", "bo", 31, check=True).problems == ()
    (problem,) = desk.ask("v", "bo", 90).problems
    assert (problem.code, problem.where) == ("controller-silent", "ctl")
    assert "nothing told since 2026-07-27T10:30:00Z: what 1 open workload used since is UNKNOWN" in problem.message
    assert desk.ask("u", "cy", 90, class_name="L4").problems == ()  # none of its quotas counts hours


def test_nobodys_quota_is_said(desk) -> None:
    """Of who is listed nowhere, and has no team."""
    assert [each.code for each in desk.ask("w", "zoe").problems] == ["no-quotas", "no-roles"]
    assert desk.ask("v", "al").problems == ()
