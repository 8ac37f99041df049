"""The list of checks."""

from __future__ import annotations

from gpuledger.audit.dashboard_checks import CHECKS
from gpuledger.model.findings import Level


def test_each_check_is_whole() -> None:
    """Ids are of this audit and stand once; errors come first."""
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    assert all(
        check.id.startswith("dashboards/") and check.rule.endswith(".") and check.fix.endswith(".") for check in CHECKS
    )
    levels = [list(Level).index(check.level) for check in CHECKS]
    assert levels == sorted(levels)


def test_only_what_is_wrong_for_certain_is_an_error() -> None:
    """The others need a person's look."""
    assert {check.verdict for check in CHECKS if check.level is Level.ERROR} == {"misattribution", "laundered"}
