"""``forget``: what would lose its name, or has lost it, with its size; never dropped blindly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.durations import count, duration_ms, percent, several
from gpuledger.model.forgetting import ForgetReport, ForgottenLine
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.reports import as_csv, as_json
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, heading, indented, known, stacked
from gpuledger.reports.columns import LEAST_NAME, Column, Fitted

MOST_LINES = 20
"""Subjects listed; more are counted, and JSON has them all."""


def to_json(report: ForgetReport) -> dict[str, Json]:
    """The contract of ``forget --format json``."""
    return {
        "done": report.done,
        "texts": report.texts,
        "dropped": report.dropped,
        "meter": "gpu.context",
        "unit": "ms",
        "quantity": report.quantity,
        "total": report.total,
        "open": report.open,
        "lines": [
            {
                "subject": line.subject,
                "service": line.service,
                "user": line.user,
                "texts": line.texts,
                "last_read": as_json.moment(line.read_us),
                "quantity": line.quantity,
                "open": line.open,
                **as_json.missing(last_read=line.read_us),
            }
            for line in report.lines
        ],
        "verified": None if isinstance(report.verified, Missing) else report.verified,
        "problems": as_json.problems(report.problems),
    }


def to_csv(report: ForgetReport) -> str:
    """One line for each subject and user."""
    header = ("subject", "service", "user", "texts", "last_read", "quantity", "unit", "open")
    rows = [
        (
            line.subject, line.service, line.user, line.texts,
            line.read_us if isinstance(line.read_us, Missing) else iso(line.read_us), line.quantity, "ms", line.open,
        )
        for line in report.lines
    ]  # fmt: skip
    return as_csv.text(header, rows)


def to_table(report: ForgetReport) -> RenderableType:
    """For eyes: the texts by subject, their size, and what was done or what to type."""
    if not report.lines:
        return stacked(cell("no identity text fits: nothing to forget"))
    verb = "Forgotten" if report.done else "Would forget"
    share = f", {percent(Fraction(report.quantity, report.total))} of all" if report.total else ""
    size = f"{several(report.dropped if report.done else report.texts, 'text')}, naming "
    size += f"{duration_ms(report.quantity)} of gpu.context ({count(report.quantity)} ms{share})"
    shown = [indented(_lines(report.lines[:MOST_LINES]))]
    more = len(report.lines) - MOST_LINES
    if more > 0:
        shown.append(indented(Text(f"and {several(more, 'subject')} more", style="dim")))
    return stacked(heading(verb, size), *shown, "", *_said(report))


def _lines(lines: Sequence[ForgottenLine]) -> RenderableType:
    moments = [known(line.read_us, lambda at_us: iso(at_us - at_us % 1_000_000)) for line in lines]
    return Fitted(
        [
            Column(head="subject", cells=[cell(line.subject) for line in lines], justify="left", least=30),
            Column(
                head="service", cells=[cell(line.service) for line in lines], justify="left", least=LEAST_NAME, spare=3
            ),
            Column(head="user", cells=[cell(line.user) for line in lines], justify="left", least=6),
            Column(head="texts", cells=[count(line.texts) for line in lines]),
            Column(head="last read", cells=[*moments], justify="left", spare=2),
            Column(head="time", cells=[duration_ms(line.quantity) for line in lines], spare=1),
            Column(head="ms", cells=[count(line.quantity) for line in lines]),
        ]
    )


def _said(report: ForgetReport) -> list[RenderableType]:
    open_ones = several(report.open, "context")
    living = f"{open_ones} of them may still be open: that process stays nameless, its next start is read anew"
    if not report.done:
        lines: list[RenderableType] = [
            cell("Nothing is dropped yet. Amounts and totals would stand; names would not come back.")
        ]
        if report.open:
            lines.append(cell(living))
        return [*lines, Text.assemble("to drop them: ", (f"gpuledger forget {report.words} --yes", "bold"))]
    lines = [
        cell(f"Totals do not change: {duration_ms(report.total)} ({count(report.total)} ms) of gpu.context in all.")
    ]
    if report.open:
        lines.append(cell(living))
    passed = report.verified is True
    return [
        *lines,
        cell(
            "Verified: rows, chains and seals are as they were."
            if passed
            else "The check found something: gpuledger verify"
        ),
    ]
