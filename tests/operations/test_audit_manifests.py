"""Manifests of files and folders: read, judged, waived."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.model.moments import parse_moment
from gpuledger.operations import audit_files
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


POD = "{hostPID: false, containers: [{name: exporter, image: 'nv/dcgm-exporter:4.5.3-4.8.2'}]}"
HEAD = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: dcgm}\n"
DAEMONS = f"{HEAD}spec: {{selector: {{}}, template: {{spec: {POD}}}}}\n"
ON = f"{HEAD}spec: {{template: {{spec: {{hostPID: true}}}}}}\n"


def test_a_kustomization_is_judged_as_it_is_built(tmp_path: Path) -> None:
    """Given the overlay alone, its base and its patches are read where they lie, as kubectl kustomize does."""
    (tmp_path / "base").mkdir()
    (tmp_path / "on").mkdir()
    (tmp_path / "base" / "Kustomization").write_text("resources: [ds.yaml]\n", encoding="utf-8")
    (tmp_path / "base" / "ds.yaml").write_text(DAEMONS, encoding="utf-8")
    overlay = tmp_path / "on" / "kustomization.yaml"
    overlay.write_text("resources: [../base, gone.yaml]\npatches: [{path: p.patch}]\n", encoding="utf-8")
    (tmp_path / "on" / "p.patch").write_text(ON, encoding="utf-8")
    for given in (tmp_path, tmp_path / "on", overlay):
        report = manifests([given], **NOTHING)
        assert {finding.where.name for finding in report.findings} == {f"DaemonSet dcgm built by {overlay}"}
        assert "no-host-pid" not in {finding.check.verdict for finding in report.findings}
        assert dict(report.facts)["kustomize resources that are not here"] == "gone.yaml"
    base = manifests([tmp_path / "base"], **NOTHING)
    assert "no-host-pid" in {finding.check.verdict for finding in base.findings}


def chain(folder: Path, length: int) -> Path:
    """Kustomizations, each the base of the one before it; the first one's folder."""
    for number in range(length):
        place = folder / f"{number}"
        place.mkdir()
        base = f"../{number + 1}" if number + 1 < length else "ds.yaml"
        (place / "kustomization.yaml").write_text(f"resources: [{base}]\n", encoding="utf-8")
    (folder / f"{length - 1}" / "ds.yaml").write_text(DAEMONS, encoding="utf-8")
    return folder / "0"


@pytest.mark.parametrize("most", ["MOST_FILES", "MOST_SIGNS"])
def test_bounds_are_of_all_that_a_kustomization_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    """Not of each round of bases anew; what is left out is told once."""
    first = chain(tmp_path, 6)
    sign = len("resources: [../1]\n")
    monkeypatch.setattr(audit_files, most, 3 if most == "MOST_FILES" else 3 * sign)
    report = manifests([first], **NOTHING)
    told = [problem.where for problem in report.unread if problem.code == "too-many-files"]
    assert [Path(where).parent.name for where in told] == ["3"]


def test_bases_without_an_end_are_told(tmp_path: Path) -> None:
    """After twenty rounds the rest is not read, and not passed over either."""
    report = manifests([chain(tmp_path, 30)], **NOTHING)
    (told,) = [problem for problem in report.unread if "rounds" in problem.message]
    assert (told.code, Path(told.where).parent.name) == ("kustomize-not-built", "21")
    assert "kubectl kustomize" in told.message
    (tmp_path / "short").mkdir()
    short = manifests([chain(tmp_path / "short", 5)], **NOTHING)
    assert not [problem for problem in short.unread if "rounds" in problem.message]
