"""What all audits share: five formats, waivers, strictness, and what is said of the unread."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOW = ("--now", "2026-11-29T12:00:00Z")
VALUES = 'kubernetes: {enablePodUID: true}\nhostPID: true\nextraEnv: [{name: KUBERNETES_VIRTUAL_GPUS, value: "true"}]\n'
WAIVER = "- {check: manifests/version-unknown, where: '*', reason: r, owner: ana, until: 2027-01-31}\n"


@pytest.fixture
def values(tmp_path: Path) -> Path:
    """Values with one warning, that their version is not told, and notes."""
    file = tmp_path / "values.yaml"
    file.write_text(VALUES, encoding="utf-8")
    return file


def test_five_formats(gpuledger, values: Path) -> None:
    """Each is what it says."""
    assert gpuledger("audit", "manifests", values, *NOW).out.startswith("audit manifests")
    assert gpuledger("audit", "manifests", values, "--format", "json", *NOW).json["audit"] == "manifests"
    assert gpuledger("--format", "json", "audit", "manifests", values, *NOW).json["standing"]["warning"] == 1
    assert gpuledger("audit", "manifests", values, "--format", "csv", *NOW).out.startswith("check,verdict,")
    sarif = json.loads(gpuledger("audit", "manifests", values, "--format", "sarif", *NOW).out)
    assert sarif["version"] == "2.1.0"
    assert "::warning file=" in gpuledger("audit", "manifests", values, "--format", "github", *NOW).out


def test_warnings_count_when_strict(gpuledger, values: Path, tmp_path: Path) -> None:
    """And no longer when they are waived; the waiver is printed."""
    waivers = tmp_path / "waivers.txt"
    waivers.write_text(WAIVER, encoding="utf-8")
    assert gpuledger("audit", "manifests", values, *NOW).status == 0
    assert gpuledger("audit", "manifests", values, "--strict", *NOW).status == 1
    done = gpuledger("audit", "manifests", values, "--strict", "--waivers", waivers, *NOW)
    assert (done.status, "by ana until 2027-01-31" in done.out) == (0, True)


def test_an_expired_waiver_is_told(gpuledger, values: Path, tmp_path: Path) -> None:
    """On stderr, with who signed it; the finding stands again."""
    waivers = tmp_path / "waivers.txt"
    waivers.write_text(WAIVER.replace("2027", "2026"), encoding="utf-8")
    done = gpuledger("audit", "manifests", values, "--strict", "--waivers", waivers, *NOW)
    assert (done.status, "[waiver-expired]" in done.err) == (1, True)


def test_what_was_not_read_is_said(gpuledger, values: Path, tmp_path: Path) -> None:
    """In every format, on stderr; with --strict it counts, and where nothing else was judged."""
    broken, web = tmp_path / "broken.yaml", tmp_path / "web.yaml"
    broken.write_text("a: [", encoding="utf-8")
    web.write_text("{kind: Pod, spec: {containers: [{name: web, image: nginx}]}}", encoding="utf-8")
    for words in ((), ("--format", "json"), ("--format", "sarif"), ("--format", "github")):
        done = gpuledger("audit", "manifests", broken, web, *words, *NOW)
        assert (done.status, "1 part could not be read" in done.err) == (0, True)
    assert gpuledger("audit", "manifests", broken, web, "--strict", *NOW).status == 1
    assert gpuledger("audit", "manifests", broken, *NOW).status == 1


def test_a_waiver_without_owner_is_an_error(gpuledger, values: Path, tmp_path: Path) -> None:
    """Nothing is audited under a word that nobody gave."""
    waivers = tmp_path / "waivers.txt"
    waivers.write_text(WAIVER.replace("owner: ana, ", ""), encoding="utf-8")
    done = gpuledger("audit", "manifests", values, "--waivers", waivers, "--format", "json", *NOW)
    assert (done.status, done.error["code"]) == (2, "waiver-missing-key")
