"""``gpuledger audit exporter``: formats, exit statuses, and what a person reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exporter_texts import Exporter, duplicated, mapped


@pytest.fixture
def scrape(tmp_path: Path) -> Path:
    """A scrape of an exporter that does not map processes."""
    path = tmp_path / "scrape.prom"
    path.write_text(duplicated().text(), encoding="utf-8")
    return path


def test_a_person_reads_what_is_wrong_and_what_to_change(gpuledger, scrape: Path) -> None:
    """Errors make it 1; the scope, its evidence and the steps are there."""
    done = gpuledger("audit", "exporter", scrape)
    assert done.status == 1
    assert "3 pods that are not idle share one device, and each has the same figure: the device's" in done.out
    assert "scope of figures on pods: device" in done.out
    assert "1. Run dcgm-exporter 4.5.3-4.8.2 or later" in done.out


def test_warnings_alone_are_0_and_strict_makes_them_1(gpuledger, tmp_path: Path) -> None:
    """As every audit."""
    path = tmp_path / "scrape.prom"
    path.write_text(Exporter().pod("a/x", util=5).text(), encoding="utf-8")
    assert gpuledger("audit", "exporter", path).status == 0
    assert gpuledger("audit", "exporter", path, "--strict").status == 1


def test_formats(gpuledger, scrape: Path) -> None:
    """JSON with figures as facts, CSV by finding, SARIF and GitHub's annotations for reviews."""
    found = gpuledger("audit", "exporter", scrape, "--format", "json").json
    facts = {fact["name"]: fact["value"] for fact in found["facts"]}
    assert (found["audit"], facts["samples"], facts["pods"][:2]) == ("exporter", "12", "3:")
    assert found["standing"]["error"] == 2
    assert "exporter/device-scope,device-scope,error" in gpuledger("audit", "exporter", scrape, "--format", "csv").out
    sarif = json.loads(gpuledger("audit", "exporter", scrape, "--format", "sarif").out)
    assert sarif["runs"][0]["results"][0]["ruleId"] == "exporter/device-scope"
    assert "::error" in gpuledger("audit", "exporter", scrape, "--format", "github").out


def test_text_from_stdin(gpuledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """`curl ... | gpuledger audit exporter -`."""
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(mapped().text().encode())))
    done = gpuledger("audit", "exporter", "-", "--format", "json")
    assert {fact["value"] for fact in done.json["facts"]} >= {"process: each pod's figures are of its own processes"}


def test_what_cannot_be_reached_is_5(gpuledger) -> None:
    """With a code and the command that helps."""
    done = gpuledger("audit", "exporter", "http://127.0.0.1:9/metrics", "--format", "json")
    assert (done.status, done.error["code"]) == (5, "exporter-unreachable")
    assert "port-forward" in done.error["hint"]


def test_no_ledger_is_touched(gpuledger, scrape: Path, tmp_path: Path) -> None:
    """An audit is a function of text."""
    gpuledger("audit", "exporter", scrape)
    assert not (tmp_path / "box.db").exists()
