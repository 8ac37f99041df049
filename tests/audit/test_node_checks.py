"""The rules of the audit of nodes."""

from __future__ import annotations

from gpuledger.audit.node_checks import CHECKS


def test_every_check_is_whole() -> None:
    """An id of its own, its verdict in it, a rule and a fix in a sentence each."""
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        assert check.id == f"nodes/{check.verdict}"
        assert check.rule.endswith(".")
        assert check.fix.endswith(".")
