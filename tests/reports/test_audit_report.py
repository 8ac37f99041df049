"""An audit as a table, as JSON, as CSV."""

from __future__ import annotations

import csv
import io

from gpuledger.model.findings import AuditReport
from gpuledger.model.problem import Problem
from gpuledger.reports import audit_report
from reports.audits import REPORT


def test_findings_by_check_the_heaviest_first(printed) -> None:
    """Rule, place, why, evidence and fix; counts of what was looked at; then the rest."""
    shown = printed(audit_report.to_table(REPORT), 100)
    order = [
        "audit dashboards  1 error, 1 warning, 1 waived",
        "looked at 2: misattribution 1, fine 1; by 3 rules",
        "error  dashboards/misattribution  1 place",
        "A device's figure is not shown as a pod's.",
        "./a.json:7 (Tensor / A)",
        "sum(x) by (pod)",
        "fix: by (UUID)",
        "warning  dashboards/device-scope  1 place",
        "fix: Ask gpuledger audit exporter.",
        "waived",
        "by ana until 2027-01-31T00:00:00Z: one pod a GPU",
        "not read, and so not judged",
        "d.yaml:4: not YAML: no [not-yaml]",
        "process scope: cannot tell",
        "1. Set hostPID: true.",
        "kind: Namespace",
    ]
    at = 0
    for words in order:
        assert words in shown[at:]
        at = shown.index(words, at) + len(words)
    assert "laundered" not in shown


def test_it_fits_a_terminal(printed) -> None:
    """Nothing runs over 80 columns, and no text of others reaches the terminal's controls."""
    shown = printed(audit_report.to_table(REPORT), 80)
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "\x1b" not in shown


def test_many_places_are_counted(printed) -> None:
    """Eyes get fifty of one check; JSON has all."""
    many = AuditReport(audit="dashboards", findings=REPORT.findings[:1] * 60)
    assert "and 10 more; --format json lists all" in printed(audit_report.to_table(many))
    assert len(audit_report.to_json(many)["findings"]) == 60


def test_a_clean_report_says_of_what(printed) -> None:
    """Nothing found means something only beside what was looked at."""
    shown = printed(audit_report.to_table(AuditReport(audit="nodes", checks=REPORT.checks)))
    assert "nothing found" in shown
    unread = AuditReport(audit="nodes", unread=(Problem(code="not-yaml", message="no"),))
    assert "nothing could be judged" in printed(audit_report.to_table(unread))
    assert "nothing was looked at; by 3 rules" in shown


def test_json() -> None:
    """The contract: everything, waived ones with their waiver."""
    found = audit_report.to_json(REPORT)
    assert (found["standing"], found["waived"]) == ({"error": 1, "warning": 1, "note": 0}, 1)
    assert [each["fix"] for each in found["findings"]] == [
        "Ask gpuledger audit exporter.",
        "by (UUID)",
        "Show it by device.",
    ]
    assert found["findings"][2]["waiver"]["owner"] == "ana"
    assert found["findings"][0]["waiver"] is None
    assert found["verdicts"] == {"fine": 1, "misattribution": 1}
    assert [check["id"] for check in found["checks"]] == [check.id for check in REPORT.checks]
    assert set(found) == {
        "audit", "standing", "waived", "findings", "verdicts", "looked", "unread", "notes", "facts", "checklist",
        "draft", "checks",
    }  # fmt: skip


def test_csv() -> None:
    """A row a finding, and one for what was not read."""
    rows = list(csv.DictReader(io.StringIO(audit_report.to_csv(REPORT))))
    assert [row["verdict"] for row in rows] == ["device-scope", "misattribution", "misattribution", "unread"]
    assert [row["waived_by"] for row in rows] == ["", "", "ana", ""]
