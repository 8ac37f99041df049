"""Findings as SARIF 2.1.0, which code review shows beside the line.

Rules are the checks, results the findings; a waiver is a suppression; what could not be read is a notification of the
tool, so that no viewer shows an unread file as a clean one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from urllib.parse import quote

from gpuledger import __version__
from gpuledger.model.findings import AuditCheck, AuditReport, Finding, Waiver, Where
from gpuledger.model.moments import iso
from gpuledger.model.problem import Problem
from gpuledger.reports.as_json import Json

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
"""The schema that the document keeps to."""


def to_sarif(report: AuditReport) -> dict[str, Json]:
    """The report as one run of one tool."""
    rules = report.rules
    numbers = {check.id: number for number, check in enumerate(rules)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "gpuledger", "version": __version__, "rules": [_rule(check) for check in rules]}
                },
                "automationDetails": {"id": f"gpuledger/audit-{report.audit}/"},
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            *(_notification(problem, "error") for problem in report.unread),
                            *(_notification(problem, "note") for problem in report.notes),
                        ],
                    }
                ],
                "results": _results(report.findings, numbers),
            }
        ],
    }


def _rule(check: AuditCheck) -> Json:
    return {
        "id": check.id,
        "name": "".join(word.capitalize() for word in check.id.replace("/", "-").split("-")),
        "shortDescription": {"text": check.verdict},
        "fullDescription": {"text": check.rule},
        "help": {"text": check.fix},
        "defaultConfiguration": {"level": check.level.value},
    }


def _results(findings: Sequence[Finding], numbers: dict[str, int]) -> list[Json]:
    seen: dict[str, int] = {}
    return [_result(finding, numbers[finding.check.id], seen) for finding in findings]


def _result(finding: Finding, number: int, seen: dict[str, int]) -> Json:
    evidence = "".join(f"\n{line}" for line in finding.evidence)
    fix = f"\nFix: {finding.advice}" if finding.advice else ""
    result: dict[str, Json] = {
        "ruleId": finding.check.id,
        "ruleIndex": number,
        "level": finding.check.level.value,
        "message": {"text": f"{finding.message}{evidence}{fix}"},
        "locations": [_location(finding.where)],
        "partialFingerprints": {"gpuledgerPlace/v1": _fingerprint(finding, seen)},
    }
    if isinstance(waiver := finding.waiver, Waiver):
        result["suppressions"] = [
            {
                "kind": "external" if waiver.where else "inSource",
                "status": "accepted",
                "justification": f"{waiver.reason} ({waiver.owner}, until {iso(waiver.expires_us)})",
                "location": _location(waiver.origin),
            }
        ]
    return result


def _fingerprint(finding: Finding, seen: dict[str, int]) -> str:
    """What stays when lines move: check, file, name and evidence, numbered where several are alike."""
    parts = (finding.check.id, finding.where.path, finding.where.name, *finding.evidence)
    words = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    seen[words] = seen.get(words, 0) + 1
    return f"{words}:{seen[words]}"


def _location(where: Where) -> Json:
    physical: dict[str, Json] = {"artifactLocation": {"uri": uri(where.path)}}
    if where.line:
        physical["region"] = {"startLine": where.line}
    named: dict[str, Json] = {"logicalLocations": [{"fullyQualifiedName": where.name}]} if where.name else {}
    return {"physicalLocation": physical, **named}


def _notification(problem: Problem, level: str) -> Json:
    path, _, line = problem.where.rpartition(":")
    where = Where(path=path, line=int(line)) if path and line.isdecimal() else Where(path=problem.where)
    found: dict[str, Json] = {
        "level": level,
        "message": {"text": problem.message},
        "descriptor": {"id": problem.code},
    }
    if problem.where:
        found["locations"] = [_location(where)]
    return found


def uri(path: str) -> str:
    """A file relative to where the command was run, an absolute one as ``file:``; addresses as they are."""
    if "://" in path:
        return path
    written = quote(path.encode("utf-8", "surrogateescape"), safe="/-._~+@,=!$&'()*")
    if path.startswith("/"):
        return f"file://{written}"
    return written.removeprefix("./")
