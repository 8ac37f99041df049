"""``journal``: what each reading found, oldest to newest."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.journal import JournalReport, Level
from gpuledger.model.moments import iso
from gpuledger.reports import as_csv
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, device_name, heading, stacked
from gpuledger.reports.columns import LEAST_NAME, Column, Fitted

STYLES: dict[Level, str] = {Level.OK: "", Level.CHANGE: "bold", Level.UNKNOWN: "yellow"}
"""How a line of each level looks on a terminal; the words alone say it too."""

WIDE = 100
"""Columns from which the reference of each line has room."""

LEAST_SENTENCE = 32
"""Columns of a sentence below which its reference is left out."""


def to_json(report: JournalReport) -> dict[str, Json]:
    """The contract of ``journal --format json``."""
    return {
        "since": iso(report.since_us),
        "until": iso(report.until_us),
        "lines": [
            {
                "at": iso(line.at_us),
                "until": iso(line.until_us),
                "host": line.host,
                "device": line.device,
                "source": line.source,
                "level": line.level.value,
                "sentence": line.sentence,
                "ref": line.ref,
            }
            for line in report.lines
        ],
    }


def to_csv(report: JournalReport) -> str:
    """One line each."""
    header = ["at", "until", "host", "device", "source", "level", "sentence", "ref"]
    return as_csv.text(
        header,
        (
            [
                iso(line.at_us), iso(line.until_us), line.host, line.device, line.source, line.level.value,
                line.sentence, line.ref,
            ]
            for line in report.lines
        ),
    )  # fmt: skip


def to_table(report: JournalReport, *, width: int = 100) -> RenderableType:
    """For eyes; references are shown from :data:`WIDE` columns on.

    Args:
        report: what to show.
        width: columns of the terminal.
    """
    title = heading("Journal", f"{iso(report.since_us)} to {iso(report.until_us)}")
    lines = report.lines
    if not lines:
        return stacked(title, Text("nothing was written in this time"))
    # Whole seconds for eyes: the eye compares columns; JSON and CSV keep every digit.
    moments = [iso(line.at_us - line.at_us % 1_000_000) for line in lines]
    where = [cell(f"{line.host} {device_name(line.device)}".strip() or "ledger") for line in lines]
    found = [cell(line.sentence, STYLES[line.level]) for line in lines]
    columns = [
        Column(head="at", cells=moments, justify="left"),
        Column(head="where", cells=where, justify="left", least=LEAST_NAME),
        Column(head="what was found", cells=found, justify="left", least=LEAST_SENTENCE),
    ]
    if width >= WIDE:
        refs = [cell(line.ref, "dim") for line in lines]
        columns.append(Column(head="ref", cells=refs, justify="left", spare=1))
    return stacked(title, "", Fitted(columns))
