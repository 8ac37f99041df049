"""``blind``: what the ledger cannot see, sized, by reason, with the command that helps."""

from __future__ import annotations

from fractions import Fraction

from rich.console import Group, RenderableType
from rich.text import Text

from gpuledger.model.blind import BlindReport
from gpuledger.model.durations import count, duration_ms, percent
from gpuledger.model.meters import METERS
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.reports import as_csv, as_json, unseen
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, cell, heading, indented, table

UNITS: dict[str, str] = {meter.name: meter.unit for meter in METERS}
"""The unit of every meter by its name."""


def to_json(report: BlindReport) -> dict[str, Json]:
    """The contract of ``blind --format json``. Chances are exact fractions, with the percent beside."""
    return {
        "since": iso(report.since_us),
        "until": iso(report.until_us),
        "unknown": as_json.unknown(report.unknown),
        "reasons": [
            {
                "reason": size.reason,
                "seconds": size.seconds,
                "spans": size.spans,
                "devices": size.devices,
                "meaning": size.meaning,
                "command": size.command,
            }
            for size in report.sizes
        ],
        "watched": {"seconds": report.watched.seconds, "of": report.watched.of},
        "unattributed": {
            "unit": "ms",
            "quantity": as_json.number(report.unattributed_ms),
            "of": as_json.number(report.total_ms),
            "causes": [
                {"cause": line.cause, "quantity": line.quantity, "meaning": line.meaning}
                for line in report.unattributed
            ],
        },
        "unsettled": as_json.unsettled(report.unsettled_ms, report.unsettled),
        "never_accounted": as_json.never_accounted(report.never_accounted),
        "seen_once": as_json.seen_once(report.seen_once),
        "chances": [
            {
                "interval_ms": chance.interval_ms,
                "length_ms": chance.length_ms,
                "chance": str(chance.chance),
                "percent": percent(chance.chance),
            }
            for chance in report.chances
        ],
        "problems": as_json.problems(report.problems),
    }


def to_csv(report: BlindReport) -> str:
    """One line for each UNKNOWN span, unattributed cause, open context and service seen once, by ``kind``."""
    header = ["kind", "reason", "name", "host", "device", "pid", "since", "until", "quantity", "unit"]
    rows: list[list[as_csv.Value]] = [
        [
            "unknown",
            span.reason,
            "",
            span.host,
            span.device,
            "",
            iso(span.since_us),
            iso(span.until_us),
            span.seconds,
            "s",
        ]
        for span in report.unknown
    ]
    window = [iso(report.since_us), iso(report.until_us)]
    rows += [["unattributed", line.cause, "", "", "", "", *window, line.quantity, "ms"] for line in report.unattributed]
    rows += [
        [
            "unsettled", "", row.service, row.host, row.device, row.pid,
            row.since_us if isinstance(row.since_us, Missing) else iso(row.since_us), "", row.quantity, "ms",
        ]
        for row in report.unsettled
    ]  # fmt: skip
    rows += [
        ["never-accounted", "", row.service, row.host, row.device, row.pid, *window, row.quantity, "ms"]
        for row in report.never_accounted
    ]
    rows += [
        ["seen-once", "", line.service, "", "", "", *window, line.contexts, "contexts"] for line in report.seen_once
    ]
    return as_csv.text(header, rows)


def to_table(report: BlindReport, *, width: int = 100) -> RenderableType:
    """For eyes: largest first, each with its size, its meaning and what helps.

    Args:
        report: what to show.
        width: columns of the terminal; below 60 the chances are listed by their first interval only.
    """
    sections: list[list[RenderableType]] = [
        [
            heading("Blind spots", f"{iso(report.since_us)} to {iso(report.until_us)}"),
            unseen.watched_line(report.watched),
        ],
        unseen.not_seen(report.sizes, report.watched, report.unknown),
        _not_named(report),
        unseen.still_running(report.unsettled, report.unsettled_ms, inside="inside the totals of usage already"),
        unseen.outside_accounting(report.never_accounted),
        unseen.seen_once(report.seen_once),
        _chances(report, most=6 if width >= 60 else 1),
    ]
    return Group(*unseen.spaced(sections))


def _not_named(report: BlindReport) -> list[RenderableType]:
    total = report.total_ms
    if isinstance(total, Missing):
        return [heading("Not named", f"{UNKNOWN}: {total.reason}")]
    unnamed = sum(line.quantity for line in report.unattributed)
    if not report.unattributed:
        return [
            heading("Not named", f"nothing of {duration_ms(total)} context time") if total else heading("Not named")
        ]
    grid = table()
    grid.add_column("cause", no_wrap=True)
    grid.add_column("time", justify="right", no_wrap=True)
    grid.add_column("ms", justify="right", no_wrap=True)
    grid.add_column("share", justify="right", no_wrap=True)
    grid.add_column("meaning")
    for line in report.unattributed:
        share = percent(Fraction(line.quantity, total)) if total else ""
        grid.add_row(cell(line.cause, "yellow"), duration_ms(line.quantity), count(line.quantity), share, line.meaning)
    size = f"{duration_ms(unnamed)} of {duration_ms(total)} context time, never spread over the named"
    return [heading("Not named", size), indented(grid)]


def _chances(report: BlindReport, *, most: int) -> list[RenderableType]:
    if not report.chances and not report.looked_once:
        return []
    lines: list[RenderableType] = [
        heading("Chance of catching a job", "names are read by polling, which sees what is alive when it looks")
    ]
    intervals = list(dict.fromkeys(chance.interval_ms for chance in report.chances))
    shown, more = intervals[-most:], intervals[:-most]
    if shown:
        grid = table()
        grid.add_column("a job of", justify="right", no_wrap=True)
        for interval_ms in shown:
            grid.add_column(f"every {duration_ms(interval_ms)}", justify="right", no_wrap=True)
        by_place = {(chance.length_ms, chance.interval_ms): chance.chance for chance in report.chances}
        for length_ms in dict.fromkeys(chance.length_ms for chance in report.chances):
            grid.add_row(duration_ms(length_ms), *(percent(by_place[length_ms, each]) for each in shown))
        lines.append(indented(grid))
    if more:
        lines.append(indented(Text(f"and {count(len(more))} shorter intervals", style="dim")))
    if report.looked_once:
        lines.append(indented(Text("some looks were single ones: such a look names only what is alive at it")))
    lines.append(
        indented(Text.assemble("what helps: ", ("gpuledger agent --interval", "bold"), " with a shorter time"))
    )
    return lines
