"""``archive``: what would leave the ledger or has left it, and what stays and why."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.archive import ArchiveReport
from gpuledger.model.durations import count, several, size_bytes
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.reports import as_csv
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, heading, indented, stacked
from gpuledger.reports.columns import Column, Fitted

WORDS = {
    "driver": "finished processes",
    "sighting": "looks at living processes",
    "event": "workload events",
    "hold": "holds",
    "expected": "expected ends",
}
"""What the rows of each kind are called for eyes."""


def to_json(report: ArchiveReport) -> dict[str, Json]:
    """The contract of ``archive --format json``."""
    return {
        "done": report.done,
        "before": iso(report.before_us),
        "folder": report.folder or None,
        "rows": report.row_count,
        "bytes": report.size,
        "leaving": [
            {
                "month": line.month,
                "kind": line.rows_of,
                "rows": line.row_count,
                "bytes": line.size,
                "file": line.file_name or None,
                "file_bytes": None if isinstance(line.file_size, Missing) else line.file_size,
            }
            for line in report.leaving
        ],
        "staying": [{"kind": line.rows_of, "rows": line.row_count, "reason": line.reason} for line in report.staying],
        "root": report.root or None,
    }


def to_csv(report: ArchiveReport) -> str:
    """One line for each file; then one for each reason to stay."""
    rows: list[list[as_csv.Value]] = [
        [
            "leaves",
            line.month,
            line.rows_of,
            line.row_count,
            line.size,
            line.file_name,
            "" if isinstance(line.file_size, Missing) else line.file_size,
            "",
        ]
        for line in report.leaving
    ]
    rows += [["stays", "", line.rows_of, line.row_count, "", "", "", line.reason] for line in report.staying]
    return as_csv.text(["what", "month", "kind", "rows", "bytes", "file", "file_bytes", "reason"], rows)


def to_table(report: ArchiveReport) -> RenderableType:
    """For eyes: the files by month, what stays and why, and what was done or what to type."""
    if not report.leaving:
        return stacked(cell(f"no row of evidence from before {iso(report.before_us)} can leave"), *_staying(report))
    verb = "Archived" if report.done else "Would archive"
    size = f"{several(report.row_count, 'row')} from before {iso(report.before_us)}, {size_bytes(report.size)}"
    return stacked(heading(verb, size), indented(_lines(report)), *_staying(report), "", *_said(report))


def _lines(report: ArchiveReport) -> RenderableType:
    lines = report.leaving
    written = ["" if isinstance(line.file_size, Missing) else size_bytes(line.file_size) for line in lines]
    columns = [
        Column(head="month", cells=[line.month for line in lines], justify="left"),
        Column(head="kind", cells=[line.rows_of for line in lines], justify="left"),
        Column(head="what", cells=[WORDS[line.rows_of] for line in lines], justify="left", least=12, spare=2),
        Column(head="rows", cells=[count(line.row_count) for line in lines]),
        Column(head="size", cells=[size_bytes(line.size) for line in lines]),
    ]
    if report.done:
        columns += [
            Column(head="in the file", cells=written, spare=1),
            Column(head="file", cells=[cell(line.file_name) for line in lines], justify="left", least=20),
        ]
    return Fitted(columns)


def _staying(report: ArchiveReport) -> list[RenderableType]:
    if not report.staying:
        return []
    lines = [
        indented(cell(f"{several(line.row_count, 'row')} of {line.rows_of} {line.reason}")) for line in report.staying
    ]
    always = "devices, watches, identities, placements: `usage` and `blind` read them for any month"
    return ["", Text("What stays of that time, and why:"), *lines, indented(cell(always, "dim"))]


def _said(report: ArchiveReport) -> list[RenderableType]:
    if report.done:
        root = f"Latest root, worth keeping elsewhere: {report.root}" if report.root else "Nothing of it is sealed yet."
        return [
            cell(f"Written to {report.folder}, read back, and then dropped. Keep the folder: it is evidence."),
            cell(f"Records, corrections and seals stand. {root}"),
        ]
    before = iso(report.before_us)[:7]
    return [
        cell("Nothing has left yet. Once it has, its hours are closed for good: what comes late is told, not booked."),
        Text.assemble("to archive it: ", (f"gpuledger archive --before {before} --to FOLDER --yes", "bold")),
    ]
