"""The list of rules."""

from __future__ import annotations

import re

from gpuledger.audit import exporter_checks as checks
from gpuledger.model.findings import AuditCheck


def test_every_rule_is_in_the_list_once() -> None:
    """A rule that is not in the list is not told, and not documented."""
    named = [value for value in vars(checks).values() if isinstance(value, AuditCheck)]
    assert sorted(check.id for check in named) == sorted(check.id for check in checks.CHECKS)
    assert len({check.id for check in named}) == len(named)


def test_each_says_what_must_hold_and_what_to_change() -> None:
    """Ids of this audit, a rule as a sentence, a fix to do."""
    for check in checks.CHECKS:
        assert re.fullmatch(r"exporter/[a-z]+(-[a-z]+)*", check.id)
        assert check.rule.endswith(".")
        assert check.fix
        assert not check.fix.endswith(".")
