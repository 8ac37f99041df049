"""The policy as values: rules match on what was read of a process, and on nothing that was not."""

from __future__ import annotations

import re
from dataclasses import fields

from gpuledger.model.identity import IdentityText
from gpuledger.model.policy import MATCH_FIELDS, Policy, ServiceRule


def test_a_rule_matches_only_on_fields_that_identities_have() -> None:
    """A field that no source can fill would be a rule that never matches."""
    assert set(MATCH_FIELDS) <= {field.name for field in fields(IdentityText)}


def test_a_declared_service_is_nothing_to_match_on() -> None:
    """A claim names its service by itself; a rule on it could rename somebody's word."""
    assert "service" not in MATCH_FIELDS


def test_an_empty_policy_owns_nothing() -> None:
    """No owner is made up."""
    bare = Policy(effective_from_us=0)
    assert (bare.services, dict(bare.users), dict(bare.namespaces), dict(bare.hosts)) == ((), {}, {}, {})


def test_two_policies_share_no_owners() -> None:
    """Each has mappings of its own."""
    assert Policy(effective_from_us=0).users is not Policy(effective_from_us=0).users
    rule = ServiceRule(service="ollama", match={"unit": re.compile("ollama")})
    assert (rule.team, rule.project) == ("", "")
