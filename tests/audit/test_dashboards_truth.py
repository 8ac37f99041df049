"""The published table of 166 expressions of seventeen real files: each verdict, and each difference argued."""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path

import pytest

from gpuledger.audit.dashboards import audit_dashboards
from gpuledger.model.findings import AuditReport, Level, Looked, Written

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "dashboards"

AS_IN_THE_TABLE = {
    "misattribution": {"misattribution"},
    "presence_only": {"presence-only"},
    # MIG instances joined to pods for a label of the node: right where one pod has the instance, which no text tells
    "ambiguous": {"undecidable"},
    "fine": {"fine"},
    # not about profiling metrics; of those that name a workload the table itself says "device-level too", which is the
    # separate warning device-scope
    "not_prof": {"fine", "device-scope"},
}


@pytest.fixture(scope="module")
def report() -> AuditReport:
    """The audit of all seventeen files together, as `gpuledger audit dashboards FOLDER` reads them."""
    if not SHARED.is_dir():
        if os.environ.get("CI"):
            pytest.fail("the real dashboards are not there: ../shared/data/dashboards")
        pytest.skip("the real dashboards are not there: ../shared/data/dashboards")
    texts = [
        Written(path=path.name, text=path.read_text(encoding="utf-8"))
        for path in sorted(SHARED.iterdir())
        if path.suffix in (".json", ".yaml")
    ]
    return audit_dashboards(texts)


@pytest.fixture(scope="module")
def rows(report: AuditReport) -> list[tuple[dict[str, str], Looked]]:
    """Each row of the table with what was said of that expression at that place."""
    found: list[tuple[dict[str, str], Looked]] = []
    with (SHARED / "truth_table.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            of_file = [looked for looked in report.looked if looked.where.path == row["file"]]
            if row["field"] == "filter":  # a filter of Cloud Monitoring, which we put into the words of PromQL
                at = [looked for looked in of_file if looked.where.name == row["panel_or_rule"]]
            else:
                at = [looked for looked in of_file if looked.text == row["expr"]]
            assert at, f"not looked at: {row}"
            found.append((row, at[0]))
    return found


def test_every_row_has_the_verdict_of_the_table(rows: list[tuple[dict[str, str], Looked]]) -> None:
    """166 of 166; where words differ, AS_IN_THE_TABLE argues it."""
    wrong = [
        (row["file"], row["expr"], row["verdict"], said)
        for row, said in rows
        if said.verdict not in AS_IN_THE_TABLE[row["verdict"]]
    ]
    assert wrong == []
    assert len(rows) == 166


def test_eighteen_misattributions_are_found_and_nothing_else_is_an_error(
    report: AuditReport, rows: list[tuple[dict[str, str], Looked]]
) -> None:
    """An expression that stands at several places of the table is one finding at each."""
    errors = [finding for finding in report.findings if finding.check.level is Level.ERROR]
    expected = [row for row, _ in rows if row["verdict"] == "misattribution"]
    assert len(errors) == len(expected) == 18
    assert Counter(each.where.path for each in errors) == Counter(row["file"] for row in expected)


def test_device_figures_are_warned_about_where_the_table_says_so(rows: list[tuple[dict[str, str], Looked]]) -> None:
    """The rows whose reason is 'with workload label', but for the variable that only lists namespaces."""
    said = {
        (row["file"], row["panel_or_rule"], row["expr"]) for row, looked in rows if looked.verdict == "device-scope"
    }
    wanted = {
        (row["file"], row["panel_or_rule"], row["expr"])
        for row, _ in rows
        if "with workload label" in row["why"] and not row["panel_or_rule"].startswith("$var:")
    }
    by_app = {
        each for each in said if "by (convox_app)" in each[2]
    }  # grouped by app: "wrong twice" in the table's words
    assert said - by_app == wanted
    assert len(by_app) == 1


def test_only_the_template_that_no_parser_reads_is_unread(report: AuditReport) -> None:
    """Its expressions stand in Helm's own language; no query of it is about GPUs."""
    assert {problem.where.split(":")[0] for problem in report.unread} <= {"soperator_vm-stack.helm.yaml"}


def test_lines_are_those_of_the_query(report: AuditReport) -> None:
    """Each finding's line holds the beginning of its expression, in JSON and in YAML."""
    for finding in report.findings:
        lines = (SHARED / finding.where.path).read_text(encoding="utf-8").splitlines()
        line = lines[finding.where.line - 1]
        assert "DCGM_FI_" in line or "container/accelerator/" in line, finding.where
