"""``fairshare`` out of a ledger: recorded and open hours, owners of their time, who waits, and what is not known."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured, NotFound
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.meters import GPU_RESERVED
from gpuledger.model.missing import Missing
from gpuledger.model.quotas import AdmitRequest
from gpuledger.model.reasons import ReservedReason
from gpuledger.operations.admit import admit
from gpuledger.operations.apply import apply
from gpuledger.operations.fairshare import explain_fairshare, fairshare, of_user
from gpuledger.operations.meter import meter
from gpuledger.operations.transition import heartbeat, record_transitions
from gpuledger.operations.usage_reserved import usage_reserved

EVERY_STORE = True

L4 = Placement(class_name="L4", machine="n1", share=Fraction(1, 3))
H100 = Placement(class_name="H100", machine="n2", count=2)
HOUR = 60
POLICY = """\
effective_from: 2026-07-01
owners:
  users: {alice: {team: vision}, bob: {team: vision}, carol: {team: nlp}, dan: {team: vision}}
  namespaces: {lab: {team: bio}}
  hosts: {n1: {pool: small}, n2: {pool: big}}
shares:
  half_life: 1h
  class_weights: {"H100*": 2}
  tree:
    vision: {shares: 40, users: {alice: 1, bob: 1}}
    nlp: {shares: 60}
"""


def say(box, workload: str, user: str, *steps: tuple, team: str = "", now: float = 10 * HOUR, **words) -> None:
    """Steps of (state, minute, placement)."""
    told = [
        Transition(
            workload=workload, event_id=f"{state}@{minute}", state=State(state), at_us=box.at(minute), source="lab",
            user=user, team=team, placement=placement[0] if placement else None, **words,
        )
        for state, minute, *placement in steps
    ]  # fmt: skip
    record_transitions(box.ledger, told, writer="box.control", now_us=box.at(now))


def held(box, workload: str, user: str, since: float, until: float, placement: Placement = L4, **words) -> None:
    say(box, workload, user, ("provisioning", since, placement), ("running", since), ("stopped", until), **words)


def allow(box, tmp_path: Path, text: str = POLICY, minute: float = 0) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    apply(lambda: type(box.ledger).open(box.place, mode="append"), path, now_us=box.at(minute), writer="box.policy")


def ask(box, minute: float, **words):
    return fairshare(box.ledger, at_us=box.at(minute), now_us=box.at(max(minute, 10 * HOUR)), **words)


def lines_of(found) -> dict:
    return {line.place.user or line.place.account: line for line in found.report.lines}


def test_usage_is_decayed_by_the_hour_weighted_by_class_and_ranked(box, tmp_path: Path) -> None:
    """Two devices of weight 2 for an hour, two half-lives ago; a third of one in this hour."""
    allow(box, tmp_path)
    held(box, "a", "alice", 0, 60, H100)
    held(box, "b", "bob", 120, 150)
    lines = lines_of(ask(box, 150))
    assert lines["alice"].usage == 3600 * 2 * 2 * Fraction(1, 4)
    assert lines["bob"].usage == 1800 * Fraction(1, 3)
    assert lines["vision"].usage == lines["alice"].usage + lines["bob"].usage
    assert {name: line.rank for name, line in lines.items() if isinstance(line.rank, int)} == {
        "nlp": 1, "bob": 2, "alice": 3,
    }  # fmt: skip


def test_recorded_and_not_recorded_hours_say_the_same(box, tmp_path: Path) -> None:
    """Before a pass, after it, and after a correction that a late stop brought."""
    allow(box, tmp_path)
    held(box, "a", "alice", 10, 130, H100)
    say(box, "b", "bob", ("provisioning", 20, L4), ("running", 20))
    before = lines_of(ask(box, 190))
    meter(box.ledger, now_us=box.at(190), writer="box.meter")
    assert lines_of(ask(box, 190)) == before
    say(box, "b", "bob", ("stopped", 100))
    late = lines_of(ask(box, 190))
    assert late["bob"].usage < before["bob"].usage
    meter(box.ledger, now_us=box.at(200), writer="box.meter")
    assert lines_of(ask(box, 190)) == late


def test_without_decay_it_is_what_usage_says(box, tmp_path: Path) -> None:
    """A half-life of a hundred years; class weights of one."""
    allow(box, tmp_path, POLICY.replace("1h", "36500d").replace('"H100*": 2', '"H100*": 1'))
    held(box, "a", "alice", 10, 130, H100)
    held(box, "b", "bob", 20, 95)
    held(box, "c", "carol", 30, 40)
    meter(box.ledger, now_us=box.at(120), writer="box.meter")
    report = usage_reserved(
        box.ledger, meter=GPU_RESERVED, by=("user",), since_us=box.at(0), until_us=box.at(170), now_us=box.at(10 * HOUR)
    )
    used = {row.key[0]: row.quantity for row in report.rows}
    lines = lines_of(ask(box, 170))
    for user, line in (("alice", lines["alice"]), ("bob", lines["bob"]), ("carol", lines["nlp"])):
        assert abs(line.usage - used[user]) < Fraction(1, 10)


def test_an_hour_is_charged_to_the_team_of_its_time(box, tmp_path: Path) -> None:
    """Dan moved from vision to nlp at two o'clock."""
    allow(box, tmp_path)
    moved = POLICY.replace("dan: {team: vision}", "dan: {team: nlp}").replace("2026-07-01", "2026-07-27T02:00:00Z")
    allow(box, tmp_path, moved, minute=120)
    held(box, "d", "dan", 60, 180)
    found = ask(box, 180)
    assert lines_of(found)["nlp"].usage == 1200 * Fraction(1, 2)
    assert lines_of(found)["vision"].own_usage == 1200 * Fraction(1, 4)
    assert [(one.user, one.account, one.usage) for one in found.report.outside] == [("dan", "vision", 300)]


def test_the_shares_are_those_in_effect_at_the_moment(box, tmp_path: Path) -> None:
    """The past is asked by its own policy, and what was used later is not in it."""
    allow(box, tmp_path)
    allow(
        box,
        tmp_path,
        POLICY.replace("shares: 60", "shares: 5").replace("2026-07-01", "2026-07-27T05:00:00Z"),
        minute=300,
    )
    held(box, "a", "alice", 0, 30)
    held(box, "c", "carol", 240, 400)
    early, late = ask(box, 60), ask(box, 8 * HOUR)
    assert (early.report.policy, late.report.policy) == (1, 2)
    assert lines_of(early)["nlp"].usage == 0
    assert (lines_of(early)["nlp"].shares, lines_of(late)["nlp"].shares) == (60, 5)
    assert lines_of(late)["nlp"].usage > 0


def test_what_nobody_is_named_for_is_shown_and_counts_nowhere(box, tmp_path: Path) -> None:
    """A team that the tree does not have."""
    allow(box, tmp_path)
    held(box, "e", "eve", 0, 60, team="bio")
    found = ask(box, 60)
    assert [(one.user, one.team, one.account, one.usage, one.why) for one in found.report.outside] == [
        ("eve", "bio", "", 600, "no account is called bio")
    ]
    assert found.report.total == 0


def test_who_waits_is_listed_in_the_order_of_fair_share(box, tmp_path: Path) -> None:
    """By rank, then by how long; who started is gone; a pool is that of the class's machines, or of a label."""
    allow(box, tmp_path)
    held(box, "a", "alice", 0, 60, H100)
    held(box, "b", "bob", 0, 60)
    say(box, "a2", "alice", ("pending", 70), requested_class="H100")
    say(box, "c2", "carol", ("pending", 90), requested_class="L4")
    say(box, "c1", "carol", ("pending", 80), requested_class="L4")
    say(box, "b2", "bob", ("pending", 75), labels=(("pool", "big"),))
    say(box, "x2", "stranger", ("pending", 1))
    say(box, "gone", "carol", ("pending", 5), ("provisioning", 40, L4))
    found = ask(box, 100).report
    assert [(one.workload, one.pools) for one in found.waiting] == [
        ("c1", ("small",)), ("c2", ("small",)), ("b2", ("big",)), ("a2", ("big",)), ("x2", ()),
    ]  # fmt: skip
    assert [one.since_us for one in found.waiting][:2] == [box.at(80), box.at(90)]
    big = ask(box, 100, pool="big").report
    assert ([one.workload for one in big.waiting], big.poolless) == (["b2", "a2"], 1)
    assert [one.workload for one in ask(box, 78).report.waiting] == ["b2", "a2", "x2"]


def test_who_was_admitted_stands_in_line_and_is_marked(box, tmp_path: Path) -> None:
    """While the hold lives: whoever starts the next must not wait for it; at a past moment as it was then."""
    allow(box, tmp_path)
    request = AdmitRequest(workload="c1", placement=Placement(class_name="L4"), user="carol")
    assert admit(box.ledger, request, writer="box.admit", now_us=box.at(20)).admitted
    say(box, "b1", "bob", ("pending", 21), requested_class="L4", now=21)

    def admitted(minute: float) -> list[tuple[str, bool]]:
        found = ask(box, minute).report.waiting
        return [(one.workload, not isinstance(one.admitted_until_us, Missing)) for one in found]

    assert admitted(25) == [("c1", True), ("b1", False)]
    assert ask(box, 25).report.waiting[0].admitted_until_us == box.at(30)
    assert dict(admitted(30)) == {"b1": False, "c1": False}
    assert admit(box.ledger, request, writer="box.admit", now_us=box.at(40)).admitted
    say(box, "c1", "carol", ("provisioning", 45), now=45)
    assert [dict(admitted(minute)) for minute in (25, 35, 44)] == [
        {"b1": False, "c1": True}, {"b1": False, "c1": False}, {"b1": False, "c1": True},
    ]  # fmt: skip
    assert dict(admitted(45)) == {"b1": False}


def test_a_pool_that_nothing_knows_is_said(box, tmp_path: Path) -> None:
    """With those there are, of the policy, of placements, of the waiting; one of which nothing waits is known."""
    allow(box, tmp_path)
    held(box, "a", "alice", 0, 60, Placement(class_name="T4", pool="old"))
    say(box, "b2", "bob", ("pending", 75), labels=(("pool", "night"),))

    def said(pool: str, minute: float = 100, **words: bool) -> list[str]:
        return [f"{each.message} [{each.code}]" for each in ask(box, minute, pool=pool, **words).report.problems]

    assert said("bgi") == ["nothing knows a pool called 'bgi'; known: big, night, old, small [unknown-name]"]
    assert said("night", 70) == ["nothing knows a pool called 'night'; known: big, old, small [unknown-name]"]
    assert said("bgi", sized=False)
    assert said("big") == said("old") == said("night") == said("") == []


def test_one_user_alone_keeps_the_rank_among_all(box, tmp_path: Path) -> None:
    """With the accounts above, and what waits."""
    allow(box, tmp_path)
    held(box, "a", "alice", 0, 60, H100)
    say(box, "a2", "alice", ("pending", 70))
    say(box, "b2", "bob", ("pending", 70))
    report = of_user(ask(box, 100).report, "alice")
    assert [line.place.words for line in report.lines] == ["vision", "alice in vision"]
    assert [line.rank for line in report.lines][1] == 3
    assert [one.workload for one in report.waiting] == ["a2"]
    with pytest.raises(NotFound) as refused:
        of_user(report, "nobody")
    assert refused.value.code == "no-such-share"


def test_a_policy_must_say_who_may_how_much(box, tmp_path: Path) -> None:
    """No policy, one that is not in effect yet, one without shares: each is an error with what to do."""
    for text in ("", POLICY.replace("2026-07-01", "2026-08-01"), "services: []\n"):
        if text:
            allow(box, tmp_path, text, minute=1)
        with pytest.raises(Misconfigured) as refused:
            ask(box, 100)
        assert refused.value.code == "no-shares"
        assert "half_life" in refused.value.hint
    with pytest.raises(Misconfigured, match="not over yet"):
        fairshare(box.ledger, at_us=box.at(200), now_us=box.at(100))


def test_what_is_unknown_is_sized_beside_it(box, tmp_path: Path) -> None:
    """A controller that fell silent; history that nothing ends."""
    allow(box, tmp_path)
    heartbeat(box.ledger, "lab", writer="box.control", at_us=box.at(60), interval_us=60_000_000)
    say(box, "a", "alice", ("provisioning", 0, L4), ("running", 0))
    found = ask(box, 120).report
    assert [(gap.reason, gap.seconds) for gap in found.gaps] == [(ReservedReason.CONTROLLER_SILENT, 3600)]
    assert ask(box, 120, sized=False).report.gaps == ()
    told = [
        Transition(workload="h", event_id="r", state=State.RUNNING, at_us=box.at(0), source="trace", placement=L4),
    ]
    record_transitions(box.ledger, told, writer="box.import", now_us=box.at(130), imported=True)
    (problem,) = ask(box, 140).report.problems
    assert (problem.code, "1 workload of declared history" in problem.message) == ("as-of-unknown", True)


def test_without_a_transition_nothing_is_known(box, tmp_path: Path) -> None:
    """The zeros of the tree are no answer."""
    allow(box, tmp_path)
    assert not ask(box, 60).report.told
    held(box, "a", "alice", 100, 160)
    assert [ask(box, minute).report.told for minute in (99, 100, 200)] == [False, True, True]


def test_every_factor_is_explained_and_a_stranger_is_said(box, tmp_path: Path) -> None:
    """By the same figures that the list shows."""
    allow(box, tmp_path)
    held(box, "a", "alice", 0, 60, H100)
    found = ask(box, 60)
    tree = explain_fairshare(found, "alice")
    assert tree.refs == ("policy:box.policy/1",)
    with pytest.raises(NotFound) as refused:
        explain_fairshare(found, "zoe")
    assert refused.value.code == "no-such-share"
