"""``gpuledger policy``: the versions, or one document as it was applied."""

from __future__ import annotations

from pathlib import Path

import pytest

POLICY = "services: []   # none yet\n"


@pytest.fixture
def applied(gpuledger, tmp_path: Path) -> None:
    """One version."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    assert gpuledger("apply", path).status == 0


def test_a_version_is_printed_as_it_was_applied(gpuledger, applied) -> None:
    """Comments and all, so that it can be applied again."""
    assert gpuledger("policy", "1").out == POLICY
    assert gpuledger("policy", "--format", "json").json[0]["document"] == POLICY


def test_versions_are_listed(gpuledger, applied) -> None:
    """With their dates and hashes."""
    assert "owners hold from" in gpuledger("policy").out
    assert gpuledger("policy", "--format", "csv").out.startswith("version,effective_from,applied_at,document_hash")


def test_a_version_that_is_not_there_is_status_2(gpuledger, applied) -> None:
    """Not an empty answer."""
    done = gpuledger("policy", "9")
    assert (done.status, "no-such-policy" in done.err) == (2, True)
