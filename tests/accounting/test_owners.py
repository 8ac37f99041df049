"""Naming: policy first, then declarations, built-in rules, and the subject itself."""

from __future__ import annotations

import re

import pytest

from gpuledger.accounting.owners import Naming, Owner
from gpuledger.model.identity import IdentityText
from gpuledger.model.policy import MATCH_FIELDS, HostOwner, Policy, ServiceRule, UserOwner

TEXTS = {
    "o": IdentityText(unit="ollama.service", command="ollama serve", user="ollama"),
    "x": IdentityText(command="python3 /home/al/voice-clone/x.py", user="al"),
    "m": IdentityText(service="declared", command="ollama runner", user="al"),
    "p": IdentityText(pod="team-a/trainer-0", pod_uid="u", command="python t.py", user="root"),
    "j": IdentityText(slurm_job="77", slurm_account="phys", command="/opt/sim", user="bo"),
}


@pytest.mark.parametrize("key", TEXTS)
def test_who_answers_is_the_same_alone(key: str) -> None:
    """Also where a rule, the policy or the namespace names them."""
    policy = Policy(
        effective_from_us=5, services=(rule("x", team="voices", project="p", command="voice-clone"),),
        users={"al": UserOwner(team="lab", project="q"), "bo": UserOwner(team="phys")}, namespaces={"team-a": "a"},
    )  # fmt: skip
    naming = Naming(texts=TEXTS, versions=[(5, policy)])
    for at_us in (4, 5):
        owner = naming.owner_of(TEXTS[key], at_us)
        assert naming.answerer_of(TEXTS[key], at_us) == (owner.user, owner.team, owner.project)
        assert naming.answerer(key, at_us) == naming.answerer(key, at_us) == (owner.user, owner.team, owner.project)
        assert naming.answerer("forgotten", at_us) == ("-", "-", "-")


def rule(service: str, team: str = "", project: str = "", **match: str) -> ServiceRule:
    return ServiceRule(
        service=service,
        team=team,
        project=project,
        match={name: re.compile(pattern) for name, pattern in match.items()},
    )


def policy(*rules: ServiceRule, **owners: dict) -> Policy:
    return Policy(effective_from_us=0, services=rules, **owners)


def naming(*versions: tuple[int, Policy]) -> Naming:
    return Naming(texts=TEXTS, versions=versions)


def test_without_policy_built_ins_then_subjects_name() -> None:
    """A first answer needs no policy."""
    plain = naming()
    assert plain.owner("o", 0).service == "ollama"
    assert plain.owner("m", 0).service == "declared"
    assert plain.owner("x", 0) == Owner(
        service="script:/home/al/voice-clone/x.py by al",
        user="al",
        team="-",
        project="-",
        namespace="-",
        workload="-",
        subject="script:/home/al/voice-clone/x.py by al",
    )


def test_first_rule_that_matches_wins() -> None:
    """Rules are tried in order, before declarations and built-ins."""
    named = naming((0, policy(rule("first", command="ollama"), rule("second", command="ollama"))))
    assert named.owner("o", 0).service == "first"
    assert named.owner("m", 0).service == "first"


def test_every_pattern_of_a_rule_must_be_found() -> None:
    """A rule on two fields needs both; an empty field holds nothing to find."""
    assert naming((0, policy(rule("s", command="voice", user="^al$")))).service("x") == "s"
    assert naming((0, policy(rule("s", command="voice", user="^bo$")))).service("x") != "s"
    assert naming((0, policy(rule("s", unit=".*")))).service("x") != "s"


@pytest.mark.parametrize("name", MATCH_FIELDS)
def test_every_field_can_be_matched(name: str) -> None:
    """Each field that a policy may match on is a field of the text."""
    named = Naming(texts={"k": IdentityText(**{name: "v"})}, versions=((0, policy(rule("s", **{name: "^v$"}))),))
    assert named.service("k") == "s"


def test_team_comes_from_rule_then_user_then_namespace() -> None:
    """The nearest owner answers."""
    owners = {"users": {"al": UserOwner(team="vision", project="faces")}, "namespaces": {"team-a": "cluster"}}
    named = naming((0, policy(rule("xtts", team="home", project="voice", command="voice"), **owners)))
    assert (named.owner("x", 0).team, named.owner("x", 0).project) == ("home", "voice")
    assert (named.owner("m", 0).team, named.owner("m", 0).project) == ("vision", "faces")
    assert (named.owner("p", 0).team, named.owner("p", 0).namespace) == ("cluster", "team-a")
    assert named.owner("j", 0).team == "-"


def test_workloads_are_pods_and_jobs() -> None:
    """What a control plane started keeps its name there."""
    assert naming().owner("p", 0).workload == "pod:team-a/trainer-0"
    assert naming().owner("j", 0).workload == "job:77"


def test_service_rules_hold_for_all_time_owners_from_their_date() -> None:
    """A new version renames the past, but does not give it new owners."""
    old = policy(rule("old", command="voice"), users={"al": UserOwner(team="red")}, hosts={"lab": HostOwner(owner="x")})
    new = policy(
        rule("new", command="voice"), users={"al": UserOwner(team="blue")}, hosts={"lab": HostOwner(owner="y")}
    )
    named = naming((100, old), (200, new))
    assert [named.owner("x", at).service for at in (50, 150, 250)] == ["new"] * 3
    assert [named.owner("x", at).team for at in (50, 99, 100, 199, 200)] == ["-", "-", "red", "red", "blue"]
    assert [named.host_owner("lab", at) for at in (50, 150, 250)] == ["-", "x", "y"]
    assert named.host_owner("other", 250) == "-"
    assert named.changes_us == (100, 200)


def test_last_applied_document_replaces_from_its_own_date() -> None:
    """A correction dated back holds from there on; a document dated ahead waits."""
    wrong = policy(users={"al": UserOwner(team="wrong")})
    right = policy(users={"al": UserOwner(team="right")})
    ahead = policy(users={"al": UserOwner(team="ahead")})
    named = naming((200, wrong), (100, right), (300, ahead))
    assert [named.owner("x", at).team for at in (150, 250, 300)] == ["right", "right", "ahead"]


def test_forgotten_and_unattributed_have_no_owner() -> None:
    """A key whose text is gone is `forgotten`; an unnamed amount keeps its cause."""
    gone = naming((0, policy(rule("all", command=".")))).owner("dropped", 0)
    assert (gone.service, gone.subject, gone.user, gone.team) == ("forgotten", "forgotten", "-", "-")
    assert naming().owner("unattributed:pid-ambiguous", 0).service == "unattributed:pid-ambiguous"


@pytest.mark.parametrize("subject", ["x", "dropped", "unattributed:pid-ambiguous"])
def test_the_service_alone_is_the_owners(subject: str) -> None:
    """Asked for alone it is the same, whether one pattern or two decide, or none."""
    both = ServiceRule(service="both", match={"command": re.compile("voice"), "user": re.compile("^al$")})
    for rules in ((), (rule("one", command="voice"),), (rule("other", unit="."),), (both,)):
        named = naming((0, policy(*rules)))
        assert named.service(subject) == named.owner(subject, 5).service


def test_each_key_is_resolved_once() -> None:
    """The same key gives the same object."""
    named = naming()
    assert named.owner("x", 0) is named.owner("x", 10**15)
