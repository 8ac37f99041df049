"""What an import brought in, as sentences, JSON or CSV."""

from __future__ import annotations

from rich.console import RenderableType

from gpuledger.model.durations import several
from gpuledger.model.outcomes import ImportReport
from gpuledger.model.reasons import UNKNOWN_MEANING, UnknownReason
from gpuledger.reports import as_csv
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, stacked


def to_table(report: ImportReport) -> RenderableType:
    """What was found, what was new, and what the dump cannot say."""
    lines = [
        cell(
            f"{report.path}: {several(report.readings, 'look')} at {report.host}, "
            f"{several(report.finished, 'finished process', 'finished processes')}, {report.living} alive, "
            f"{several(report.claims, 'name')} claimed"
        ),
        cell(f"{several(report.added, 'row')} added, {report.known} known already"),
    ]
    for device, reason in report.unknown:
        meaning, command = UNKNOWN_MEANING[UnknownReason(reason)]
        lines.append(cell(f"UNKNOWN {reason} on {device}: {meaning}", "yellow"))
        lines.append(cell(f"  {command}", "dim"))
    return stacked(*lines)


def to_json(report: ImportReport) -> dict[str, Json]:
    """Counts and UNKNOWN reasons."""
    return {
        "path": report.path,
        "host": report.host,
        "readings": report.readings,
        "finished": report.finished,
        "living": report.living,
        "claims": report.claims,
        "added": report.added,
        "known": report.known,
        "unknown": [{"device": device, "reason": reason} for device, reason in report.unknown],
        "problems": [{"code": p.code, "message": p.message, "where": p.where} for p in report.problems],
    }


def to_csv(report: ImportReport) -> str:
    """One row of counts."""
    header = ("path", "host", "readings", "finished", "living", "claims", "added", "known")
    values = (
        report.path, report.host, report.readings, report.finished, report.living, report.claims, report.added,
        report.known,
    )  # fmt: skip
    return as_csv.text(header, [values])
