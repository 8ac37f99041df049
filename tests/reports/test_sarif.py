"""SARIF: the shape that the standard asks for, and what code review makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gpuledger.model.findings import AuditReport, Where
from gpuledger.reports.sarif import to_sarif, uri
from reports.audits import REPORT


@pytest.fixture
def run() -> Any:
    """The one run of the document."""
    document = json.loads(json.dumps(to_sarif(REPORT)))
    assert document["version"] == "2.1.0"
    (only,) = document["runs"]
    return only


def test_what_the_standard_requires(run: Any) -> None:
    """Required properties of SARIF 2.1.0: tool.driver.name, rule ids, message texts, URIs, lines from 1, levels."""
    assert run["tool"]["driver"]["name"] == "gpuledger"
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules) == 3
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] in {"error", "warning", "note"}
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"]
        assert location["physicalLocation"].get("region", {"startLine": 1})["startLine"] >= 1
    for invocation in run["invocations"]:
        assert invocation["executionSuccessful"] is True
        for notification in invocation["toolExecutionNotifications"]:
            assert notification["message"]["text"]


def test_places_relative_to_where_it_was_run(run: Any) -> None:
    """As the checkout has them; blanks escaped; absolute files and addresses as such."""
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]]
    assert uris == ["my%20boards/b,1.json", "a.json", "file:///srv/c.json"]
    assert uri("http://exporter:9400/metrics") == "http://exporter:9400/metrics"
    assert "region" not in run["results"][2]["locations"][0]["physicalLocation"]
    assert uri("caf\udce9.yaml") == "caf%E9.yaml"


def test_waivers_are_suppressions(run: Any) -> None:
    """Signed and dated; the others have none."""
    assert ["suppressions" in result for result in run["results"]] == [False, False, True]
    (suppression,) = run["results"][2]["suppressions"]
    assert (suppression["kind"], suppression["status"]) == ("external", "accepted")
    assert "ana" in suppression["justification"]


def test_what_was_not_read_is_told(run: Any) -> None:
    """A notification of its place, as an error; notes as notes."""
    unread, note = run["invocations"][0]["toolExecutionNotifications"]
    assert (unread["level"], note["level"]) == ("error", "note")
    assert unread["locations"][0]["physicalLocation"]["region"]["startLine"] == 4


def test_fingerprints_outlive_moved_lines() -> None:
    """Another line is the same finding; two alike are two."""

    def prints(report: AuditReport) -> list[str]:
        return [each["partialFingerprints"]["gpuledgerPlace/v1"] for each in to_sarif(report)["runs"][0]["results"]]

    one = REPORT.findings[1]
    moved = replace(one, where=replace(one.where, line=70))
    first = prints(replace(REPORT, findings=(one,)))
    assert prints(replace(REPORT, findings=(moved,))) == first
    assert len(set(prints(replace(REPORT, findings=(one, moved))))) == 2
    elsewhere = replace(one, where=Where(path="b.json", line=7))
    assert prints(replace(REPORT, findings=(elsewhere,))) != first
