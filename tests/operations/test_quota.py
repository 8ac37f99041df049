"""``quota``: who has what, also where more is used than allowed, and what nobody told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.operations.quota import quota
from gpuledger.operations.transition import heartbeat, record_transitions
from quota_desk import Desk

EVERY_STORE = True

QUOTAS = """
{role: student, devices: 1}
{team: "*", devices: 2}
{user: "*", class: "H100*", device_hours: 3, per: day}
{user: bo, devices: 1/4}
"""


@pytest.fixture
def desk(new_place) -> Iterator[Desk]:
    made = Desk(new_place("l.db"), QUOTAS)
    yield made
    made.ledger.close()


def told(desk: Desk, minute: float, **words: str) -> list[tuple[str, Fraction, Fraction]]:
    """Whose, used, left."""
    report = quota(desk.ledger, now_us=desk.at(minute), **words)
    return [(use.bound.scope_words, use.used, use.left) for use in report.uses]


def test_every_quota_with_everybody_whom_it_binds(desk) -> None:
    """Whom the policy lists, and who holds anything without being listed."""
    desk.tell("w", "provisioning", 0, Placement(class_name="H100-80GB"), user="al")
    desk.tell("w", "running", 0)
    desk.tell("z", "provisioning", 0, Placement(class_name="L4"), user="zoe")
    assert told(desk, 30) == [
        ("role student of al", 1, 0),
        ("role student of cy", 0, 1),
        ("team nlp", 0, 2),
        ("team vision", 1, 1),
        ("user al", Fraction(1, 2), Fraction(5, 2)),
        ("user bo", 0, 3),
        ("user cy", 0, 3),
        ("user zoe", 0, 3),
        ("user bo", 0, Fraction(1, 4)),
    ]


def test_only_what_is_asked_about(desk) -> None:
    """A user's own, their roles' and their team's; a team's; a role's; what counts a class."""
    desk.ask("w", "al")
    assert [line[0] for line in told(desk, 1, user="al")] == ["role student of al", "team vision", "user al"]
    assert [line[0] for line in told(desk, 1, user="zoe")] == ["user zoe"], "each user has one, known or not"
    assert [line[0] for line in told(desk, 1, team="nlp")] == ["team nlp"]
    assert [line[0] for line in told(desk, 1, role="student")] == ["role student of al", "role student of cy"]
    assert [line[0] for line in told(desk, 1, role="prof")] == []
    assert len(told(desk, 1, class_name="L4")) == len(told(desk, 1)) - 3


def test_more_than_allowed_is_told_as_it_is(desk) -> None:
    """An import is a fact."""
    desk.tell("w", "running", -300, Placement(class_name="H100-80GB", count=4), user="al", imported=True, now=0)
    report = quota(desk.ledger, now_us=desk.at(0))
    over = [(use.bound.scope_words, use.left) for use in report.uses if use.is_over]
    assert over == [("role student of al", -3), ("team vision", -2)]


def test_what_nobody_told_is_sized_beside_it(desk) -> None:
    """Time of a controller that is not heard, and of what runs nobody knows on what."""
    desk.tell("w", "provisioning", 0, Placement(class_name="H100-80GB"), user="al")
    desk.tell("w", "running", 0)
    heartbeat(desk.ledger, "ctl", writer="box.ctl", at_us=desk.at(30), interval_us=60_000_000)
    report = quota(desk.ledger, now_us=desk.at(90))
    assert [(gap.reason, gap.seconds) for gap in report.unknown] == [("controller-silent", 3600)]
    assert next(use.used for use in report.uses if use.bound.scope_words == "user al") == Fraction(1, 2)


def test_a_past_moment_is_told_as_it_was(desk) -> None:
    """Who held then; the hours until then."""
    desk.tell("w", "provisioning", 0, Placement(class_name="H100-80GB"), user="al")
    desk.tell("w", "running", 0)
    desk.tell("w", "stopped", 120)
    assert told(desk, 60, user="al")[0] == ("role student of al", 1, 0)
    assert told(desk, 180, user="al")[0] == ("role student of al", 0, 1)
    assert told(desk, 180, user="al")[-1] == ("user al", 2, 1)


def test_a_name_that_nothing_knows_is_said(desk) -> None:
    """With those there are: a slip of the pen would read as if nothing bound it, and nothing was held."""
    desk.tell("w", "provisioning", 0, Placement(class_name="L4"), user="zoe")

    def said(**words: str) -> list[str]:
        return [f"{each.message} [{each.code}]" for each in quota(desk.ledger, now_us=desk.at(1), **words).problems]

    assert said(team="visoin") == ["nothing knows a team called 'visoin'; known: nlp, vision [unknown-name]"]
    assert said(role="prof") == ["nothing knows a role called 'prof'; known: student [unknown-name]"]
    assert said(user="bob") == ["nothing knows a user called 'bob'; known: al, bo, cy, zoe [unknown-name]"]
    assert said(class_name="H100") == ["nothing knows a class called 'H100'; known: L4 [unknown-name]"]
    assert len(said(user="bob", team="visoin")) == 2
    assert said() == said(user="zoe", class_name="L4") == said(team="nlp") == said(role="student") == []


def test_who_only_stands_in_the_ledger_is_known(desk) -> None:
    """Who ran on another day, listed by no policy, has nothing now: that is no slip of the pen."""
    run = Transition(
        workload="w", event_id="1", state=State.PROVISIONING, at_us=desk.at(-3000), source="ctl",
        placement=Placement(class_name="L4"), user="ida", team="audio",
    )  # fmt: skip
    stop = replace(run, event_id="2", state=State.STOPPED, at_us=desk.at(-2900), placement=None)
    record_transitions(desk.ledger, [run, stop], writer="box.ctl", now_us=desk.at(-2900))

    def said(**words: str) -> list[str]:
        return [each.message for each in quota(desk.ledger, now_us=desk.at(1), **words).problems]

    assert said(user="ida", team="audio") == []
    assert said(user="adi") == ["nothing knows a user called 'adi'; known: al, bo, cy, ida"]
    assert said(team="adio") == ["nothing knows a team called 'adio'; known: audio, nlp, vision"]


def test_nothing_told_and_no_policy(new_place) -> None:
    """No transition is no zero, and no policy is no quota."""
    desk = Desk(new_place("bare.db"))
    report = quota(desk.ledger, now_us=desk.at(0))
    assert (report.uses, report.version, report.told) == ((), 0, False)
    desk.ledger.close()
