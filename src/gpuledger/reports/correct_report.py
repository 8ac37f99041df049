"""What ``correct`` booked, or would book: values in, text out."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.durations import several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.outcomes import CorrectReport
from gpuledger.reports import as_csv
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, stacked
from gpuledger.reports.columns import LEAST_NAME, Column, Fitted


def to_table(report: CorrectReport) -> RenderableType:
    """For eyes: each hour with what it changes by."""
    rows = report.corrections
    if not rows:
        return stacked(*_passed(report), Text("no final hour differs from its events: nothing to correct"))
    total = sum(row.delta for row in rows)
    grid = Fitted(
        [
            Column(head="hour", cells=[iso(row.hour_us) for row in rows], total="total", justify="left"),
            Column(head="meter", cells=[row.meter for row in rows], justify="left"),
            Column(head="host", cells=[cell(row.host) for row in rows], justify="left", least=LEAST_NAME),
            Column(head="placement", cells=[cell(row.device) for row in rows], justify="left", least=LEAST_NAME,
                   spare=1),
            Column(head="seconds", cells=[f"{row.delta:+,}" for row in rows], total=f"{total:+,}"),
        ],
        totals=True,
    )  # fmt: skip
    said = f"{several(len(rows), 'correction')} booked: {report.why} ({report.by})"
    would = f"{several(len(rows), 'correction')} would be booked; --yes books them"
    return stacked(grid, "", *_passed(report), Text(said if report.done else would))


def _passed(report: CorrectReport) -> tuple[Text, ...]:
    """What the pass that ran first has booked; nothing where it booked nothing."""
    if isinstance(report.ran, Missing) or not (report.ran.records or report.ran.corrections):
        return ()
    records, corrections = (
        several(len(report.ran.records), "record"),
        several(len(report.ran.corrections), "correction"),
    )
    return (Text(f"a metering pass ran first: {records} and {corrections} booked"),)


def to_json(report: CorrectReport) -> dict[str, Json]:
    """Each correction, with its reference once it is booked; before them what the pass that ran first has booked."""
    return {
        "done": report.done,
        "reason": report.why,
        "by": report.by,
        "pass": None
        if isinstance(report.ran, Missing)
        else {"records_added": len(report.ran.records), "corrections_added": len(report.ran.corrections)},
        "corrections": [
            {
                "ref": row.ref if row.number else None,
                "meter": row.meter,
                "hour": iso(row.hour_us),
                "host": row.host,
                "device": row.device,
                "subject": row.subject,
                "delta": row.delta,
            }
            for row in report.corrections
        ],
    }


def to_csv(report: CorrectReport) -> str:
    """One line for each correction."""
    rows: list[tuple[str | int, ...]] = [
        (row.ref if row.number else "", row.meter, iso(row.hour_us), row.host, row.device, row.subject, row.delta)
        for row in report.corrections
    ]
    return as_csv.text(("ref", "meter", "hour", "host", "device", "subject", "delta"), rows)
