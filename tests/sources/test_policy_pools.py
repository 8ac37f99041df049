"""Pools in a policy: their two rules, what is kept, and what earlier versions stored."""

from __future__ import annotations

import pytest

from gpuledger.errors import BadInput
from gpuledger.model.policy import PoolRule
from gpuledger.sources import policy_file

NOW_US = 1_790_000_000_000_000


@pytest.mark.parametrize(
    ("written", "code", "line"),
    [
        ("shared: {colour: red}", "policy-unknown-key", 2),
        ("shared: {release: told}", "policy-bad-value", 2),
        ("shared: [1]", "policy-bad-value", 2),
        ('" ": {}', "policy-bad-value", 2),
    ],
)
def test_what_is_no_rule_is_refused_with_its_line(written: str, code: str, line: int) -> None:
    """And nothing of the document holds."""
    with pytest.raises(BadInput) as refused:
        policy_file.parse(f"pools:\n  {written}", path="p", now_us=NOW_US)
    assert (refused.value.code, refused.value.line) == (code, line)


def test_rules_and_what_is_kept() -> None:
    """A pool without rules is one; what is not acted on is told with its line."""
    text = "pools:\n  a: {source: portal, release: confirmed}\n  b: {}\n  c:\n    replicas: 4\n"
    policy, problems = policy_file.parse(text, path="p", now_us=NOW_US)
    assert policy.pools == {"a": PoolRule(source="portal", is_release_confirmed=True), "b": PoolRule(), "c": PoolRule()}
    assert [(problem.code, problem.where) for problem in problems] == [("policy-unused", "p:5")]


def test_pools_of_stored_versions_that_nobody_read() -> None:
    """They were stored before pools were acted on: told, and the rest of the version holds."""
    text = "owners: {users: {al: {team: t}}}\npools: {shared: {colour: red}}"
    policy, problems = policy_file.parse(text, path="p", now_us=NOW_US, is_stored=True)
    assert (policy.pools, [problem.code for problem in problems]) == ({}, ["policy-unused"])
    assert policy.users["al"].team == "t"
