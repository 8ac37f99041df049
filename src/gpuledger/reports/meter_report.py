"""What a metering pass did, as a sentence, JSON, or CSV of the rows it booked."""

from __future__ import annotations

from rich.console import RenderableType

from gpuledger.model.durations import several
from gpuledger.model.moments import iso
from gpuledger.model.outcomes import MeterReport
from gpuledger.reports import as_csv
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, stacked


def to_table(report: MeterReport) -> RenderableType:
    """One or two sentences."""
    if report.covered_until_us > report.covered_from_us:
        span = f"closed {iso(report.covered_from_us)} to {iso(report.covered_until_us)}"
    else:
        span = "no hour was new"
    records, corrections = several(len(report.records), "record"), several(len(report.corrections), "correction")
    booked = f"{records} and {corrections} booked"
    lines = [f"{span}: {booked}", f"open from {iso(report.open_from_us)} on: usage there is provisional"]
    if report.late:
        differences = several(report.late, "difference")
        lines.append(f"{differences} in final hours of reserved time not booked: gpuledger blind, gpuledger correct")
    return stacked(*(cell(line) for line in lines))


def to_json(report: MeterReport) -> dict[str, Json]:
    """The pass; records and corrections by reference."""
    return {
        "at": iso(report.at_us),
        "covered_from": iso(report.covered_from_us),
        "covered_until": iso(report.covered_until_us),
        "hours_derived": report.hours_derived,
        "reserved_hours_derived": report.reserved_hours_derived,
        "records_added": len(report.records),
        "corrections_added": len(report.corrections),
        "corrections": [
            {"ref": row.ref, "meter": row.meter, "hour": iso(row.hour_us), "delta": row.delta, "reason": row.reason}
            for row in report.corrections
        ],
        "open_from": iso(report.open_from_us),
        "late": report.late,
    }


def to_csv(report: MeterReport) -> str:
    """Every row booked."""
    rows: list[tuple[str | int, ...]] = [
        (row.ref, row.meter, iso(row.hour_us), row.host, row.device, row.subject, row.quantity)
        for row in report.records
    ]
    rows += [
        (row.ref, row.meter, iso(row.hour_us), row.host, row.device, row.subject, row.delta)
        for row in report.corrections
    ]
    return as_csv.text(("ref", "meter", "hour", "host", "device", "subject", "quantity"), rows)
