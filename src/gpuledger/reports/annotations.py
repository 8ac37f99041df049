"""Findings as workflow commands, which GitHub shows beside the changed lines; one line each.

Waived findings are not told. What could not be read is told as a warning.
"""

from __future__ import annotations

from gpuledger.model.findings import AuditReport, Level, Where

WORDS: dict[Level, str] = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
"""GitHub's word for each level."""


def to_annotations(report: AuditReport) -> str:
    """The whole report, a line for each standing finding and for each part that could not be read."""
    lines = []
    for finding in report.findings:
        if finding.stands:
            fix = f"\nFix: {finding.advice}" if finding.advice else ""
            evidence = "".join(f"\n{line}" for line in finding.evidence)
            word = WORDS[finding.check.level]
            lines.append(_command(word, finding.where, finding.check.id, f"{finding.message}{evidence}{fix}"))
    for problem in report.unread:
        path, _, line = problem.where.rpartition(":")
        where = Where(path=path, line=int(line)) if path and line.isdecimal() else Where(path=problem.where)
        lines.append(_command("warning", where, f"{report.audit}/unread", f"not judged: {problem.message}"))
    return "".join(f"{line}\n" for line in lines)


def _command(word: str, where: Where, title: str, message: str) -> str:
    is_file = where.path and "://" not in where.path
    properties = [f"file={_property(where.path.removeprefix('./'))}"] if is_file else []
    properties += [f"line={where.line}"] if is_file and where.line else []
    properties.append(f"title={_property(title)}")
    name = where.name or ("" if is_file else where.path)
    return f"::{word} {','.join(properties)}::{_message(f'{name}: {message}' if name else message)}"


def _message(text: str) -> str:
    """Escaped as the runner unescapes it (actions/runner, ActionCommand): percent signs first."""
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
