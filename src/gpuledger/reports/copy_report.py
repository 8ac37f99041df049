"""What ``copy`` brought over: values in, text out."""

from __future__ import annotations

from rich.console import RenderableType

from gpuledger.model.durations import several
from gpuledger.model.stores import CopyReport
from gpuledger.reports import as_csv
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, stacked


def to_table(report: CopyReport) -> RenderableType:
    """Two or three sentences."""
    new = f"{several(report.rows, 'row')}, {several(report.links, 'link')} and {several(report.texts, 'identity text')}"
    lines = [
        cell(f"{report.source} to {report.target}: {new} copied, of {several(report.chains, 'chain')}"),
        cell(f"{several(report.known_rows, 'row')} were there already"),
    ]
    sealed = f"root of the last seal: {report.root}" if report.root else "nothing is sealed yet, so there is no root"
    return stacked(*lines, cell(sealed))


def to_json(report: CopyReport) -> dict[str, Json]:
    """The contract of ``copy --format json``."""
    return {
        "from": report.source,
        "to": report.target,
        "chains": report.chains,
        "rows": report.rows,
        "links": report.links,
        "texts": report.texts,
        "known_rows": report.known_rows,
        "root": report.root or None,
    }


def to_csv(report: CopyReport) -> str:
    """One line."""
    header = ("from", "to", "chains", "rows", "links", "texts", "known_rows", "root")
    row = (
        report.source,
        report.target,
        report.chains,
        report.rows,
        report.links,
        report.texts,
        report.known_rows,
        report.root,
    )
    return as_csv.text(header, [row])
