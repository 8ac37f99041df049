"""``audit``: findings by check, with the place, what they rest on and what to change; what was looked at; what was not.

For eyes, for programs, for sheets. Values in, text out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.durations import count, several
from gpuledger.model.findings import AuditCheck, AuditReport, Finding, Level, Waiver
from gpuledger.model.moments import iso
from gpuledger.model.problem import Problem
from gpuledger.reports import as_csv, as_json
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, heading, indented, stacked

STYLES: dict[Level, str] = {Level.ERROR: "bold red", Level.WARNING: "bold yellow", Level.NOTE: "cyan"}
"""How each level looks on a terminal; the word stands there too."""

MOST_PLACES = 50
"""Findings of one check printed for eyes; more are counted, and JSON has them all."""

FINE = "fine"
"""The verdict of what was looked at and has no fault on the question of the audit."""


def to_table(report: AuditReport) -> RenderableType:
    """Findings grouped by check, the heaviest first; then the waived, the unread, figures, what to do, the draft."""
    parts: list[RenderableType] = [heading(f"audit {report.audit}", _size(report)), *_looked(report)]
    for check in sorted(report.rules, key=lambda rule: list(Level).index(rule.level)):
        standing = [finding for finding in report.findings if finding.stands and finding.check.id == check.id]
        if standing:
            parts += ["", *_of_check(check, standing)]
    for section in (_waived(report), _unread(report), _facts(report), _checklist(report), _draft(report)):
        if section:
            parts += ["", *section]
    return stacked(*parts)


def to_json(report: AuditReport) -> dict[str, Json]:
    """The contract of ``audit ... --format json``."""
    return {
        "audit": report.audit,
        "standing": {level.value: _standing(report, level) for level in Level},
        "waived": sum(not finding.stands for finding in report.findings),
        "findings": [_finding(finding) for finding in report.findings],
        "verdicts": dict(sorted(Counter(each.verdict for each in report.looked).items())),
        "looked": [
            {
                "verdict": each.verdict, "path": each.where.path, "line": each.where.line, "name": each.where.name,
                "why": each.why, "text": each.text,
            }
            for each in report.looked
        ],
        "unread": as_json.problems(report.unread),
        "notes": as_json.problems(report.notes),
        "facts": [{"name": name, "value": value} for name, value in report.facts],
        "checklist": list(report.checklist),
        "draft": report.draft,
        "checks": [
            {
                "id": check.id, "verdict": check.verdict, "level": check.level.value, "rule": check.rule,
                "fix": check.fix,
            }
            for check in report.rules
        ],
    }  # fmt: skip


def to_csv(report: AuditReport) -> str:
    """One row a finding, waived ones among them, and one for each part that could not be read."""
    header = (
        "check", "verdict", "level", "path", "line", "name", "message", "evidence", "fix", "waived_by", "waived_until",
        "waived_because",
    )  # fmt: skip
    rows: list[Sequence[as_csv.Value]] = []
    for each in report.findings:
        signed = (
            [each.waiver.owner, iso(each.waiver.expires_us), each.waiver.reason]
            if isinstance(each.waiver, Waiver)
            else ["", "", ""]
        )
        rows.append([
            each.check.id, each.check.verdict, each.check.level.value, each.where.path, each.where.line,
            each.where.name, each.message, "\n".join(each.evidence), each.advice, *signed,
        ])  # fmt: skip
    rows += [
        [f"{report.audit}/unread", "unread", "", problem.where, "", "", problem.message, "", "", "", "", ""]
        for problem in report.unread
    ]
    return as_csv.text(header, rows)


def _finding(finding: Finding) -> Json:
    waiver = finding.waiver
    return {
        "check": finding.check.id,
        "verdict": finding.check.verdict,
        "level": finding.check.level.value,
        "path": finding.where.path,
        "line": finding.where.line,
        "name": finding.where.name,
        "message": finding.message,
        "evidence": list(finding.evidence),
        "fix": finding.advice,
        "waiver": {
            "check": waiver.check,
            "where": waiver.where,
            "reason": waiver.reason,
            "owner": waiver.owner,
            "until": iso(waiver.expires_us),
            "origin": str(waiver.origin),
        }
        if isinstance(waiver, Waiver)
        else None,
    }


def _standing(report: AuditReport, level: Level) -> int:
    return sum(finding.stands and finding.check.level is level for finding in report.findings)


def _size(report: AuditReport) -> str:
    counted = [
        several(found, word)
        for level, word in ((Level.ERROR, "error"), (Level.WARNING, "warning"), (Level.NOTE, "note"))
        if (found := _standing(report, level))
    ]
    waived = sum(not finding.stands for finding in report.findings)
    counted += [f"{count(waived)} waived"] if waived else []
    if not counted and report.unread and not report.looked:
        return "nothing could be judged"
    return ", ".join(counted) or "nothing found"


def _looked(report: AuditReport) -> Iterator[Text]:
    verdicts = Counter(each.verdict for each in report.looked)
    ordered = sorted(verdicts, key=lambda word: (word == FINE, -verdicts[word], word))
    told = ", ".join(f"{word} {count(verdicts[word])}" for word in ordered)
    said = f"looked at {count(len(report.looked))}: {told}" if report.looked else "nothing was looked at"
    rules = f"; by {several(len(report.rules), 'rule')}" if report.rules else ""
    yield cell(f"{said}{rules}", "dim")


def _of_check(check: AuditCheck, findings: list[Finding]) -> Iterator[RenderableType]:
    yield Text.assemble(
        (check.level.value, STYLES[check.level]), "  ", (check.id, "bold"), f"  {several(len(findings), 'place')}"
    )
    yield indented(cell(check.rule, "dim"))
    for finding in findings[:MOST_PLACES]:
        yield indented(cell(str(finding.where), "bold"))
        yield indented(indented(cell(finding.message)))
        for line in finding.evidence:
            yield indented(indented(cell(" ".join(line.split()), "dim")))
        if finding.fix:
            yield indented(indented(Text.assemble("fix: ", cell(finding.fix))))
    if len(findings) > MOST_PLACES:
        yield indented(Text(f"and {count(len(findings) - MOST_PLACES)} more; --format json lists all", style="dim"))
    if check.fix and not all(finding.fix for finding in findings):
        yield indented(Text.assemble(("fix: ", "bold"), cell(check.fix)))


def _waived(report: AuditReport) -> list[RenderableType]:
    shown: list[RenderableType] = []
    for finding in report.findings:
        if isinstance(waiver := finding.waiver, Waiver):
            shown.append(indented(cell(f"{finding.where}: {finding.check.verdict}")))
            until = f"by {waiver.owner} until {iso(waiver.expires_us)}: {waiver.reason}"
            shown.append(indented(indented(cell(until, "dim"))))
    return [heading("waived"), *shown] if shown else []


def _unread(report: AuditReport) -> list[RenderableType]:
    return _problems("not read, and so not judged", report.unread)


def _problems(title: str, problems: Sequence[Problem]) -> list[RenderableType]:
    return [heading(title), *(indented(cell(str(problem), "yellow")) for problem in problems)] if problems else []


def _facts(report: AuditReport) -> list[RenderableType]:
    return [indented(cell(f"{name}: {value}")) for name, value in report.facts]


def _checklist(report: AuditReport) -> list[RenderableType]:
    if not report.checklist:
        return []
    steps = (indented(cell(f"{place}. {step}")) for place, step in enumerate(report.checklist, 1))
    return [heading("what to change, in this order"), *steps]


def _draft(report: AuditReport) -> list[RenderableType]:
    return [heading("draft"), *(Text(line) for line in report.draft.rstrip("\n").split("\n"))] if report.draft else []
