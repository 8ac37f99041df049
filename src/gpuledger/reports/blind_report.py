"""``blind``: what the ledger cannot see, sized, by reason, with the command that helps."""

from __future__ import annotations

from fractions import Fraction

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.blind import BlindReport
from gpuledger.model.durations import count, duration_ms, duration_s, percent, several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.reports import as_csv, as_json, reserved_report, unseen
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, heading, indented, stacked
from gpuledger.reports.columns import GAP, LEAST_NAME, Column, Fitted

MOST_INTERVALS = 6
"""Intervals whose chances are listed; shorter ones are counted, and JSON has them all."""


def to_json(report: BlindReport) -> dict[str, Json]:
    """The contract of ``blind --format json``. Chances are exact fractions, with the percent beside."""
    return {
        "since": iso(report.since_us),
        "until": iso(report.until_us),
        "unknown": as_json.unknown(report.unknown, detailed=True),
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
        "idle": as_json.idle(report.watched),
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
        "naming": {
            "seconds": report.named.seconds,
            "of": report.named.of,
            "reasons": [
                {
                    "reason": size.reason,
                    "seconds": size.seconds,
                    "spans": size.spans,
                    "hosts": size.devices,
                    "meaning": size.meaning,
                    "command": size.command,
                }
                for size in report.nameless
            ],
        },
        "reserved": reserved_report.gaps_to_json(report.reserved),
    }


def to_csv(report: BlindReport) -> str:
    """One line for each UNKNOWN span, reason of missing names, cause, open context, service seen once, and finding
    of reservations, by ``kind``.
    """
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
    rows += [["nameless", size.reason, "", "", "", "", *window, size.seconds, "s"] for size in report.nameless]
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
    rows += [
        ["reserved", gap.reason, gap.what, "", "", "", iso(gap.since_us), iso(gap.until_us), gap.seconds, "s"]
        for gap in report.reserved
    ]
    details = [span.detail for span in report.unknown]
    details += [""] * (len(rows) - len(details))
    return as_csv.text([*header, "detail"], [[*row, detail] for row, detail in zip(rows, details, strict=True)])


def to_table(report: BlindReport, *, width: int = 100) -> RenderableType:
    """For eyes: largest first, each with its size, its meaning and what helps.

    Args:
        report: what to show.
        width: columns of the terminal; of the chances only the longest intervals that fit are listed.
    """
    sections: list[list[RenderableType]] = [
        [
            heading("Blind spots", f"{iso(report.since_us)} to {iso(report.until_us)}"),
            unseen.watched_line(report.watched),
        ],
        unseen.not_seen(report.sizes, report.watched, report.unknown),
        _naming(report),
        _not_named(report),
        unseen.still_running(report.unsettled, report.unsettled_ms, inside="inside the totals of usage already"),
        unseen.outside_accounting(report.never_accounted),
        unseen.seen_once(report.seen_once),
        _chances(report, width=width),
        reserved_report.not_told(report.reserved),
    ]
    return stacked(*unseen.spaced(sections))


def _naming(report: BlindReport) -> list[RenderableType]:
    """In which time names can be missing; nothing where names were taken all the time."""
    if not report.nameless:
        return []
    seconds = sum(size.seconds for size in report.nameless)
    grid = Fitted(
        [
            Column(head="reason", cells=[size.reason for size in report.nameless], justify="left", style="yellow"),
            Column(head="time", cells=[duration_s(size.seconds) for size in report.nameless], spare=1),
            Column(head="spans", cells=[count(size.spans) for size in report.nameless], spare=3),
            Column(head="meaning", cells=[size.meaning for size in report.nameless], justify="left", least=LEAST_NAME),
        ]
    )
    told = f"names can be missing of {duration_s(seconds)} of {duration_s(report.named.of)} host time"
    helps = [indented(Text.assemble("what helps: ", (command, "bold"))) for command in
             dict.fromkeys(size.command for size in report.nameless)]  # fmt: skip
    return [heading("Naming", told), indented(grid), *helps]


def _not_named(report: BlindReport) -> list[RenderableType]:
    total = report.total_ms
    if isinstance(total, Missing):
        return [heading("Not named", f"{UNKNOWN}: {total.reason}")]
    unnamed = sum(line.quantity for line in report.unattributed)
    if not report.unattributed:
        size = f"nothing of {duration_ms(total)} context time" if total else "nothing: no context time is known"
        return [heading("Not named", size)]
    lines = report.unattributed
    shares = [percent(Fraction(line.quantity, total)) if total else "" for line in lines]
    grid = Fitted(
        [
            Column(head="cause", cells=[line.cause for line in lines], justify="left", style="yellow"),
            Column(head="time", cells=[duration_ms(line.quantity) for line in lines], spare=1),
            Column(head="ms", cells=[count(line.quantity) for line in lines]),
            Column(head="share", cells=shares, spare=2),
            Column(head="meaning", cells=[line.meaning for line in lines], justify="left", least=LEAST_NAME),
        ]
    )
    size = f"{duration_ms(unnamed)} of {duration_ms(total)} context time, never spread over the named"
    return [heading("Not named", size), indented(grid)]


def _chances(report: BlindReport, *, width: int) -> list[RenderableType]:
    if not report.chances and not report.looked_once:
        return []
    lines: list[RenderableType] = [
        heading("Chance of catching a job", "names are read by polling, which sees what is alive when it looks")
    ]
    lengths = list(dict.fromkeys(chance.length_ms for chance in report.chances))
    intervals = list(dict.fromkeys(chance.interval_ms for chance in report.chances))
    by_place = {(chance.length_ms, chance.interval_ms): percent(chance.chance) for chance in report.chances}
    columns = [
        Column(head=f"every {duration_ms(each)}", cells=[by_place[length_ms, each] for length_ms in lengths])
        for each in intervals
    ]
    first = Column(head="a job of", cells=[duration_ms(each) for each in lengths])
    shown = columns[-MOST_INTERVALS:]
    while len(shown) > 1 and sum(GAP + each.whole for each in (first, *shown)) > width:
        shown = shown[1:]
    if shown:
        lines.append(indented(Fitted([first, *shown])))
    if more := len(columns) - len(shown):
        lines.append(indented(Text(f"and {several(more, 'shorter interval')}", style="dim")))
    if report.looked_once:
        lines.append(indented(Text("some looks were single ones: such a look names only what is alive at it")))
    lines.append(
        indented(Text.assemble("what helps: ", ("gpuledger agent --interval", "bold"), " with a shorter time"))
    )
    return lines
