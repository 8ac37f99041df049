"""``gpuledger audit manifests``: statuses, formats, the draft."""

from __future__ import annotations

from pathlib import Path

import pytest

NOW = ("--now", "2026-11-29T12:00:00Z")
VALUES = "kubernetes: {enablePodUID: false}\nhostPID: false\nimage: {tag: 4.5.3-4.8.2-ubi9}\n"


@pytest.fixture
def values(tmp_path: Path) -> Path:
    """Values of the chart as they come: nothing is switched on."""
    file = tmp_path / "values.yaml"
    file.write_text(VALUES, encoding="utf-8")
    return file


def test_findings_end_with_1(gpuledger, values: Path) -> None:
    """The table names the check and what to change."""
    done = gpuledger("audit", "manifests", values, *NOW)
    assert done.status == 1
    assert "manifests/no-host-pid" in done.out
    assert "what to change, in this order" in done.out


def test_the_draft_alone_is_printed(gpuledger, values: Path) -> None:
    """Ready for a file; the rest is talk."""
    words = ("--draft", "plain", "--owner", "ana", "--until", "2027-01-31", "--namespace", "gpu", *NOW)
    done = gpuledger("audit", "manifests", values, *words)
    assert done.out.startswith("# The namespace gpu")
    assert "read it before you apply it" in done.err
    assert gpuledger("audit", "manifests", values, *words, "--format", "json").json["draft"] == done.out


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        (("--draft", "plain"), "exception-needs-owner", 4),
        (("--draft", "plain", "--owner", "ana"), "exception-needs-end", 4),
        (("--draft", "plain", "--owner", "ana", "--until", "2027-01-31"), "exception-needs-namespace", 2),
        (("--draft", "opa"), "bad-draft", 2),
    ],
)
def test_unsigned_drafts_are_refused(gpuledger, values: Path, words: tuple[str, ...], code: str, status: int) -> None:
    """Owner, end and namespace are asked for."""
    done = gpuledger("audit", "manifests", values, *words, *NOW, "--format", "json")
    assert (done.status, done.error["code"]) == (status, code)
    assert done.out == ""
