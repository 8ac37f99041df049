"""``doctor``: what is missing on this machine, and the command that mends it."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.checks import DoctorReport
from gpuledger.model.moments import iso
from gpuledger.reports import checks_report
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import heading, printable, stacked


def to_json(report: DoctorReport) -> dict[str, Json]:
    """The contract of ``doctor --format json``."""
    return {
        "host": report.host,
        "at": iso(report.at_us),
        "ok": report.ok,
        "checks": checks_report.as_list(report.checks),
    }


def to_csv(report: DoctorReport) -> str:
    """One line for each check and finding."""
    return checks_report.to_csv(report.checks)


def to_table(report: DoctorReport, *, width: int = 100) -> RenderableType:
    """For eyes.

    Args:
        report: what to show.
        width: columns of the terminal; lines fold by themselves.
    """
    _ = width
    verdict = (
        Text("Nothing is missing.", style="green") if report.ok else Text("Something is missing; see above.", "red")
    )
    return stacked(heading("Doctor", printable(report.host)), "", *checks_report.lines(report.checks), "", verdict)
