"""What ``migrate`` did: values in, text out."""

from __future__ import annotations

from rich.console import RenderableType

from gpuledger.model.stores import Granted, MigrateReport
from gpuledger.reports import as_csv, as_json
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, stacked


def to_table(report: MigrateReport) -> RenderableType:
    """A sentence, and one for each role."""
    lines = [cell(_version(report))]
    if report.by_itself:
        lines.append(cell("a ledger in a file is brought up to date by whoever opens it to append: nothing to do"))
    lines += [cell(f"  {granted.role}: {_may(granted)}") for granted in report.granted]
    return stacked(*lines)


def _version(report: MigrateReport) -> str:
    if not report.before:
        return f"{report.ledger}: tables of version {report.after} made"
    if report.before == report.after:
        return f"{report.ledger}: tables of version {report.after}, as they should be"
    return f"{report.ledger}: tables brought from version {report.before} to {report.after}"


def _may(granted: Granted) -> str:
    if not granted.is_there:
        return "not there yet, so it may do nothing"
    return "adds and reads rows, deletes identity texts, and nothing else" if granted.may_append else "reads rows"


def to_json(report: MigrateReport) -> dict[str, Json]:
    """The contract of ``migrate --format json``."""
    return {
        "ledger": report.ledger,
        "by_itself": report.by_itself,
        "before": report.before,
        "after": report.after,
        "granted": [
            {"role": granted.role, "may_append": granted.may_append, "is_there": granted.is_there}
            for granted in report.granted
        ],
        "problems": as_json.problems(report.problems),
    }


def to_csv(report: MigrateReport) -> str:
    """One line for each role."""
    rows = [(granted.role, str(granted.may_append), str(granted.is_there)) for granted in report.granted]
    return as_csv.text(("role", "may_append", "is_there"), rows)
