"""The words of every audit: what counts, and what a clean report was asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuledger.model.findings import AuditCheck, AuditReport, Finding, Level, Looked, Waiver, Where
from gpuledger.model.problem import Problem

CHECK = AuditCheck(id="nodes/x", verdict="x", rule="It holds.", fix="Mend it.", level=Level.ERROR)
FINDING = Finding(check=CHECK, where=Where(path="a.yaml", line=3, name="node n"), message="It does not hold.")
WAIVER = Waiver(check="nodes/x", where="*", reason="r", owner="o", expires_us=1, origin=Where(path="w.yaml"))


@pytest.mark.parametrize(
    ("level", "found", "strict"),
    [(Level.ERROR, True, True), (Level.WARNING, False, True), (Level.NOTE, False, False)],
)
def test_what_makes_the_command_exit_with_1(level: Level, found: bool, strict: bool) -> None:
    """Errors always, warnings where asked for, notes never; waived ones never."""
    report = AuditReport(audit="nodes", findings=(replace(FINDING, check=replace(CHECK, level=level)),))
    assert (report.found(), report.found(strict=True)) == (found, strict)
    waived = replace(report, findings=tuple(replace(each, waiver=WAIVER) for each in report.findings))
    assert not waived.found(strict=True)


def test_what_was_not_read_counts_where_asked_for() -> None:
    """An unread file is no clean one under --strict."""
    unread = (Problem(code="not-yaml", message="no"),)
    beside = AuditReport(audit="nodes", unread=unread, looked=(Looked(where=Where(path="n.yaml"), verdict="fine"),))
    assert (beside.found(), beside.found(strict=True)) == (False, True)
    assert AuditReport(audit="nodes", unread=unread).found(), "nothing at all was judged: that is no clean answer"


def test_the_rules_of_a_report() -> None:
    """Those that were applied, and those that struck; each once."""
    other = replace(CHECK, id="nodes/y")
    report = AuditReport(audit="nodes", findings=(FINDING, FINDING), checks=(other,))
    assert [rule.id for rule in report.rules] == ["nodes/y", "nodes/x"]


def test_places_and_advice_in_words() -> None:
    """A place reads as editors open it; a finding's own advice goes before the rule's."""
    assert str(FINDING.where) == "a.yaml:3 (node n)"
    assert str(Where(path="http://exporter:9400/metrics")) == "http://exporter:9400/metrics"
    assert FINDING.advice == "Mend it."
    assert replace(FINDING, fix="Here: so.").advice == "Here: so."
