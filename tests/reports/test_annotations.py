"""Workflow commands: one line each, and nothing in them that the runner would take for another command."""

from __future__ import annotations

from dataclasses import replace

from gpuledger.model.findings import Where
from gpuledger.reports.annotations import to_annotations
from reports.audits import REPORT


def test_a_line_for_each_standing_finding_and_unread_part() -> None:
    """Level, file, line and check; the waived one is silent."""
    lines = to_annotations(REPORT).splitlines()
    assert lines == [
        (
            "::warning file=my boards/b%2C1.json,line=2,title=dashboards/device-scope::"
            "A figure of the device.%0AReally.%0AFix: Ask gpuledger audit exporter."
        ),
        (
            "::error file=a.json,line=7,title=dashboards/misattribution::"
            "Tensor / A: 100%25 of \x1b[2Jthe device.%0Asum(x) by (pod)%0AFix: by (UUID)"
        ),
        "::warning file=d.yaml,line=4,title=dashboards/unread::not judged: not YAML: no",
    ]


def test_an_endpoint_is_no_file() -> None:
    """Its address stands in the message."""
    one = replace(REPORT.findings[0], where=Where(path="http://x:9400/metrics"))
    line = to_annotations(replace(REPORT, findings=(one,), unread=()))
    assert line.startswith("::warning title=dashboards/device-scope::http://x:9400/metrics: ")
