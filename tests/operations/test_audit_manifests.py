"""Manifests of files and folders: read, judged, waived."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.model.moments import parse_moment
from gpuledger.operations.audit_manifests import manifests

NOW = parse_moment("2026-11-29", now_us=0)
VALUES = 'kubernetes: {enablePodUID: true}\nhostPID: true\nextraEnv: [{name: KUBERNETES_VIRTUAL_GPUS, value: "true"}]\n'
WAIVED = '# gpuledger: waive manifests/version-unknown reason="pinned by digest" owner=ana until=2027-01-31\n'
NOTHING = {"waivers": None, "draft": "", "owner": "", "until_us": None, "namespace": "", "now_us": NOW}


def test_comments_in_manifests_are_waivers(tmp_path: Path) -> None:
    """Read with the text, and laid over the finding below."""
    (tmp_path / "values.yaml").write_text(WAIVED + VALUES, encoding="utf-8")
    (tmp_path / "notes.md").write_text("not a manifest", encoding="utf-8")
    report = manifests([tmp_path], **NOTHING)
    assert [(finding.check.verdict, finding.stands) for finding in report.findings if not finding.stands] == [
        ("version-unknown", False)
    ]
    assert not report.found(strict=True)


def test_an_unknown_kind_of_draft_is_refused(tmp_path: Path) -> None:
    """With the kinds that there are."""
    (tmp_path / "values.yaml").write_text(VALUES, encoding="utf-8")
    with pytest.raises(Misconfigured, match="no kind of draft"):
        manifests([tmp_path], **NOTHING | {"draft": "opa"})
