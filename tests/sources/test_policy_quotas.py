"""Quotas and the billing zone of a policy, with the line of what is wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpuledger.errors import BadInput
from gpuledger.model.policy import Policy
from gpuledger.model.quotas import Per, Quota, Scope
from gpuledger.sources.policy_file import parse


def read(text: str) -> Policy:
    """The policy of a document."""
    policy, problems = parse(text, path="p.yaml", now_us=0)
    assert not problems
    return policy


def one(entry: str) -> Quota:
    """The quota of one entry."""
    (quota,) = read(f"quotas:\n  - {entry}\n").quotas
    return quota


@pytest.mark.parametrize(
    ("entry", "quota"),
    [
        ("{role: student, devices: 1}", (Scope.ROLE, "student", Per.AT_ONCE, Fraction(1), "")),
        ("{team: vision, devices: 1/4}", (Scope.TEAM, "vision", Per.AT_ONCE, Fraction(1, 4), "")),
        ("{user: al, devices: 0.5, class: L4}", (Scope.USER, "al", Per.AT_ONCE, Fraction(1, 2), "L4")),
        ("{user: '*', devices: 0}", (Scope.USER, "*", Per.AT_ONCE, Fraction(0), "")),
        (
            "{team: vision, class: 'H100*', device_hours: 2000, per: month}",
            (Scope.TEAM, "vision", Per.MONTH, Fraction(2000), "H100*"),
        ),
        ("{team: '*', device_hours: 12.5, per: week}", (Scope.TEAM, "*", Per.WEEK, Fraction(25, 2), "")),
        ("{role: '*', device_hours: 24, per: day}", (Scope.ROLE, "*", Per.DAY, Fraction(24), "")),
    ],
)
def test_each_form_of_a_quota_is_understood(entry: str, quota: tuple[object, ...]) -> None:
    """Whole numbers, fractions and decimals, exactly; a pattern of classes; each user, team or role."""
    found = one(entry)
    assert (found.scope, found.name, found.per, found.limit, found.class_glob) == quota


@pytest.mark.parametrize(
    ("entry", "code", "said"),
    [
        ("{devices: 1}", "policy-missing-key", "one user, one team or one role"),
        ("{}", "policy-missing-key", "one user, one team or one role"),
        ("{user: al, team: vision, devices: 1}", "policy-bad-value", "not of 2"),
        ("{team: vision}", "policy-missing-key", "one of the two"),
        ("{team: vision, devices: 1, device_hours: 2, per: day}", "policy-bad-value", "one of the two"),
        ("{team: vision, devices: -1}", "policy-bad-value", "less than nothing"),
        ("{team: vision, devices: -1/4}", "policy-bad-value", "less than nothing"),
        ("{team: vision, devices: many}", "policy-bad-value", "must be a number"),
        ("{team: vision, devices: 1/0}", "policy-bad-value", "must be a number"),
        ("{team: vision, devices: 1e999999999}", "policy-bad-value", "must be a number"),
        ("{team: vision, devices: 9999999999999}", "policy-bad-value", "must be a number"),
        ("{team: vision, devices: .inf}", "policy-bad-value", "must be a number"),
        ("{team: vision, devices: true}", "policy-bad-value", "must be a number"),
        ("{team: vision, devices: [1]}", "policy-bad-value", "must be text"),
        ("{team: vision, devices: 1, per: day}", "policy-bad-value", "at once"),
        ("{team: vision, device_hours: 1}", "policy-missing-key", "lacks `per`"),
        ("{team: vision, device_hours: 1, per: year}", "policy-bad-value", "no period"),
        ("{team: 'vis*', devices: 1}", "policy-bad-value", "no name"),
        ("{team: vision, devices: 1, pool: x}", "policy-unknown-key", "unknown key 'pool'"),
        ("{team: 7, devices: 1}", "policy-bad-value", "must be text"),
        ("vision", "policy-bad-value", "must be a mapping"),
    ],
)
def test_what_is_no_quota_names_its_line(entry: str, code: str, said: str) -> None:
    """Nothing is guessed, and nothing of the document is applied."""
    with pytest.raises(BadInput) as caught:
        parse(f"owners: {{}}\nquotas:\n  - {entry}\n", path="p.yaml", now_us=0)
    assert (caught.value.code, caught.value.line) == (code, 3)
    assert said in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("zone", ["localtime", "posixrules"])
def test_the_zone_of_a_machine_is_no_zone_of_a_policy(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two machines would cut the same hours into other months; a version that was stored before is still read."""
    with pytest.raises(BadInput) as caught:
        parse(f"billing: {{zone: {zone}}}", path="p.yaml", now_us=0)
    assert (caught.value.code, caught.value.line) == ("policy-bad-value", 1)
    assert "another machine" in caught.value.message
    monkeypatch.setattr("gpuledger.sources.policy_quotas._OF_THE_MACHINE", ("UTC",))
    with pytest.raises(BadInput):
        parse("billing: {zone: UTC}", path="p.yaml", now_us=0)
    assert parse("billing: {zone: UTC}", path="p.yaml", now_us=0, is_stored=True)[0].zone == "UTC"


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Etc/GMT+5"])
def test_a_zone_of_whole_hours_is_taken(zone: str) -> None:
    """Its midnights are hours of the UTC clock, the year round."""
    assert read(f"billing: {{zone: {zone}}}").zone == zone


@pytest.mark.parametrize(
    ("billing", "code", "said"),
    [
        ("{zone: Asia/Kolkata}", "policy-bad-value", "+0530 from UTC"),
        ("{zone: Australia/Lord_Howe}", "policy-bad-value", "from UTC"),
        ("{zone: Mars/Olympus}", "policy-bad-value", "not a time zone"),
        ("{zone: ../../etc/passwd}", "policy-bad-value", "not a time zone"),
        ("{}", "policy-missing-key", "lacks `zone`"),
        ("{zone: UTC, day: 1}", "policy-unknown-key", "unknown key 'day'"),
        ("UTC", "policy-bad-value", "must be a mapping"),
    ],
)
def test_a_zone_that_cannot_be_billed_in_names_its_line(billing: str, code: str, said: str) -> None:
    """Records are hours of the UTC clock: none can be cut at a half."""
    with pytest.raises(BadInput) as caught:
        parse(f"owners: {{}}\nbilling: {billing}\n", path="p.yaml", now_us=0)
    assert (caught.value.code, caught.value.line) == (code, 2)
    assert said in caught.value.message


def test_no_quotas_are_none() -> None:
    """A policy without them, and with an empty list."""
    assert read("owners: {}").quotas == read("quotas: []").quotas == ()
