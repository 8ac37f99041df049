"""What an export into a lake, or a metering of one, has done: as sentences, JSON or CSV."""

from __future__ import annotations

from rich.console import RenderableType

from gpuledger.model.durations import duration_s, several
from gpuledger.model.lake import ExportReport, LakeMeterReport
from gpuledger.model.moments import iso
from gpuledger.reports import as_csv
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, stacked


def export_to_table(report: ExportReport) -> RenderableType:
    """What was written, what stood, and how far the lake tells."""
    manifest = report.manifest
    rows = several(sum(file.rows for file in manifest.files), "row")
    lines = [
        f"{report.place}: {several(len(report.written), 'file')} written, {report.kept} as they were, {rows} in all",
        f"sealed at {iso(manifest.exported_at_us)}, last seal of the ledger {manifest.root[:16] or 'none yet'}",
    ]
    if report.removed:
        lines.append(f"{several(len(report.removed), 'file')} without rows removed")
    if not (manifest.whole and manifest.all_tables):
        lines.append("a part of the ledger: `meter --lake` needs all of it")
    lines.append("who was forgotten leaves a lake with the next export; copies of it elsewhere keep the texts")
    return stacked(*(cell(line) for line in lines))


def export_to_json(report: ExportReport) -> dict[str, Json]:
    """The lake as it stands, and which files were written."""
    manifest = report.manifest
    return {
        "lake": report.place,
        "exported_at": iso(manifest.exported_at_us),
        "whole": manifest.whole and manifest.all_tables,
        "root": manifest.root or None,
        "written": list(report.written),
        "kept": report.kept,
        "removed": list(report.removed),
        "strangers": list(report.strangers),
        "files": [
            {
                "name": file.name,
                "table": file.table,
                "month": file.month or None,
                "rows": file.rows,
                "sha256": file.sha256,
            }
            for file in manifest.files
        ],
    }


def export_to_csv(report: ExportReport) -> str:
    """Every file of the lake."""
    written = set(report.written)
    rows: list[list[as_csv.Value]] = [
        [file.name, file.table, file.month, file.rows, file.sha256, "written" if file.name in written else "kept"]
        for file in report.manifest.files
    ]
    return as_csv.text(("name", "table", "month", "rows", "sha256", "state"), rows)


def meter_to_table(report: LakeMeterReport) -> RenderableType:
    """What was derived, and where it differs from what was exported."""
    done = f"{several(len(report.files), 'file')} written" if report.files else "nothing had changed"
    lines = [f"{several(report.records, 'record')} derived of hours before {iso(report.until_us)}: {done}"]
    if report.unplaced_s:
        lines.append(f"UNKNOWN: {duration_s(report.unplaced_s)} of workloads that ran nobody knows where (unplaced)")
    if report.checked:
        lines.append(
            f"{several(report.differences, 'hour')} differ from exported records and corrections"
            if report.differences
            else "exported records and corrections say the same of every hour that a pass had covered"
        )
    lines += [
        f"{iso(each.hour_us)} {each.meter} {each.host} {each.subject[:12]}: "
        f"exported {each.exported}, derived {each.derived} s"
        for each in report.listed
    ]
    return stacked(*(cell(line) for line in lines))


def meter_to_json(report: LakeMeterReport) -> dict[str, Json]:
    """What was derived; the first differences, each with its key."""
    return {
        "lake": report.place,
        "until": iso(report.until_us),
        "records": report.records,
        "written": list(report.files),
        "unplaced_seconds": report.unplaced_s,
        "differences": report.differences if report.checked else None,
        "listed": [
            {
                "meter": each.meter, "hour": iso(each.hour_us), "host": each.host, "device": each.device,
                "subject": each.subject, "exported": each.exported, "derived": each.derived,
            }
            for each in report.listed
        ],
    }  # fmt: skip


def meter_to_csv(report: LakeMeterReport) -> str:
    """The differences that are listed."""
    return as_csv.text(
        ("meter", "hour", "host", "device", "subject", "exported", "derived"),
        [
            [each.meter, iso(each.hour_us), each.host, each.device, each.subject, each.exported, each.derived]
            for each in report.listed
        ],
    )
