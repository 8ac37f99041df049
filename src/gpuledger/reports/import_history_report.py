"""What an import of a history brought in, and what to type next, as sentences, JSON or CSV."""

from __future__ import annotations

from rich.console import RenderableType

from gpuledger.model.durations import count, several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, hour_floor, iso
from gpuledger.model.outcomes import HistoryReport
from gpuledger.reports import as_csv, as_json
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, heading, stacked


def to_table(report: HistoryReport) -> RenderableType:
    """What was read, what was new, what stays open, and what to type next."""
    lines: list[RenderableType] = [cell(f"{report.path}: {several(report.rows_read, 'row')} read{_span(report)}")]
    told = f"{several(report.added, 'transition')} added, {count(report.known)} known already"
    if report.conflicts:
        told += f", {count(report.conflicts)} of them with other content: the first stays"
    lines.append(cell(told, "yellow" if report.conflicts else ""))
    lines += _open(report)
    if report.codes:
        lines.append(cell(f"Left out, or imperfect: {', '.join(report.codes)}", "yellow"))
    if not isinstance(report.since_us, Missing) and not isinstance(report.until_us, Missing):
        open_us = report.until_us if isinstance(report.as_of_us, Missing) or not report.running else report.as_of_us - 1
        until = iso(hour_floor(max(report.until_us, open_us)) + HOUR_US)
        span = f"--since {iso(hour_floor(report.since_us))} --until {until}"
        lines += [
            "",
            heading("What next"),
            cell("  gpuledger meter"),
            cell(f"  gpuledger usage --meter gpu.reserved --by {report.by} {span}"),
            cell(f"  gpuledger capacity {span}"),
        ]
    return stacked(*lines)


def to_json(report: HistoryReport) -> dict[str, Json]:
    """Counts, the span, what is open, and every problem."""
    return {
        "path": report.path,
        "source": report.source,
        "rows_read": report.rows_read,
        "added": report.added,
        "known": report.known,
        "conflicts": report.conflicts,
        "since": as_json.moment(report.since_us),
        "until": as_json.moment(report.until_us),
        "running": report.running,
        "waiting": report.waiting,
        "as_of": as_json.moment(report.as_of_us),
        **as_json.missing(since=report.since_us, until=report.until_us, as_of=report.as_of_us),
        "problems": as_json.problems(report.problems),
    }


def to_csv(report: HistoryReport) -> str:
    """One row of counts."""
    values: dict[str, as_csv.Value] = {
        "path": report.path,
        "source": report.source,
        "rows_read": report.rows_read,
        "added": report.added,
        "known": report.known,
        "conflicts": report.conflicts,
        "since": _moment(report.since_us),
        "until": _moment(report.until_us),
        "running": report.running,
        "waiting": report.waiting,
        "as_of": _moment(report.as_of_us),
    }
    return as_csv.text(tuple(values), [tuple(values.values())])


def _span(report: HistoryReport) -> str:
    if isinstance(report.since_us, Missing) or isinstance(report.until_us, Missing):
        return f", told by {report.source}"
    return f", told by {report.source}, from {iso(report.since_us)} to {iso(report.until_us)}"


def _open(report: HistoryReport) -> list[RenderableType]:
    parts = []
    if report.running:
        parts.append(f"{several(report.running, 'workload')} still held devices")
    if report.waiting:
        parts.append(f"{several(report.waiting, 'workload')} still waited")
    if not parts:
        return []
    if isinstance(report.as_of_us, Missing):
        return [cell(f"{', '.join(parts)}: until when is UNKNOWN, {report.as_of_us.reason}", "yellow")]
    return [cell(f"{', '.join(parts)} at {iso(report.as_of_us)}: known to there, UNKNOWN beyond")]


def _moment(at_us: int | Missing) -> as_csv.Value:
    return at_us if isinstance(at_us, Missing) else iso(at_us)
