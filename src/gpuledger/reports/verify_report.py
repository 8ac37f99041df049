"""``verify``: whether the ledger is what was written, and says what its evidence says."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.checks import VerifyReport
from gpuledger.model.durations import count
from gpuledger.model.moments import iso
from gpuledger.reports import checks_report
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, heading, stacked


def to_json(report: VerifyReport) -> dict[str, Json]:
    """The contract of ``verify --format json``."""
    return {
        "ledger": report.ledger,
        "at": iso(report.at_us),
        "ok": report.ok,
        "damaged": report.damaged,
        "root": report.root or None,
        "rows": dict(report.counts),
        "checks": checks_report.as_list(report.checks),
    }


def to_csv(report: VerifyReport) -> str:
    """One line for each check and finding."""
    return checks_report.to_csv(report.checks)


def to_table(report: VerifyReport, *, width: int = 100) -> RenderableType:
    """For eyes.

    Args:
        report: what to show.
        width: columns of the terminal; lines fold by themselves.
    """
    _ = width
    if report.damaged:
        verdict = Text("The ledger is damaged.", style="bold red")
    elif report.ok and report.skipped:
        verdict = Text("Every check that could be made passed; see above for what could not.", style="yellow")
    elif report.ok:
        verdict = Text("Every check passed.", style="green")
    else:
        verdict = Text("Something does not agree; see above.", style="bold red")
    rows = ", ".join(f"{count(number)} {kind}" for kind, number in report.counts if number)
    root = (
        cell(f"Latest root, worth keeping elsewhere: {report.root}") if report.root else Text("Nothing is sealed yet.")
    )
    counted = [Text(f"Rows: {rows}")] if rows else []
    return stacked(
        heading("Verify"),
        cell(report.ledger, "dim"),
        "",
        *checks_report.lines(report.checks),
        "",
        verdict,
        *counted,
        root,
    )
