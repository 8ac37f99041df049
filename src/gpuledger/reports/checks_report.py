"""Checks with a verdict, as ``verify`` and ``doctor`` print them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.checks import Check, Verdict
from gpuledger.model.durations import count
from gpuledger.reports import as_csv
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import Hanging, cell, indented

STYLES: dict[Verdict, str] = {
    Verdict.OK: "green",
    Verdict.FOUND: "bold red",
    Verdict.DAMAGED: "bold red",
    Verdict.NOTE: "yellow",
    Verdict.SKIPPED: "dim",
}
"""How each verdict looks on a terminal; the word stands there too."""

MOST_FINDINGS = 10
"""Findings of one check printed for eyes; more are counted, and JSON has them all."""


def as_list(checks: Sequence[Check]) -> Json:
    """``[{name, verdict, sentence, findings, hint}]``."""
    return [
        {
            "name": check.name,
            "verdict": check.verdict.value,
            "sentence": check.sentence,
            "findings": list(check.findings),
            "hint": check.hint,
        }
        for check in checks
    ]


def to_csv(checks: Sequence[Check]) -> str:
    """One line for each check, and one more for each of its findings."""
    rows: list[list[as_csv.Value]] = []
    for check in checks:
        rows.append([check.name, check.verdict.value, check.sentence, "", check.hint])
        rows += [[check.name, check.verdict.value, check.sentence, finding, check.hint] for finding in check.findings]
    return as_csv.text(["check", "verdict", "sentence", "finding", "hint"], rows)


def lines(checks: Sequence[Check]) -> list[RenderableType]:
    """Each check as a paragraph: verdict, name, sentence, then findings and what helps."""
    widest = max((len(check.name) for check in checks), default=0)
    shown: list[RenderableType] = []
    for check in checks:
        line = Text.assemble((f"{check.verdict.value:<8}", STYLES[check.verdict]), f"{check.name:<{widest}}  ")
        head = line.cell_len
        line.append_text(cell(check.sentence))
        shown.append(Hanging(line, head, starts_at=head))
        shown += [indented(indented(cell(finding))) for finding in check.findings[:MOST_FINDINGS]]
        if len(check.findings) > MOST_FINDINGS:
            more = f"and {count(len(check.findings) - MOST_FINDINGS)} more; --format json lists all"
            shown.append(indented(indented(Text(more, style="dim"))))
        if check.hint:
            shown.append(indented(indented(Text.assemble("what helps: ", cell(check.hint, "bold")))))
    return shown
