"""``usage``: who used how much, for eyes, for programs, for sheets. Values in, text out."""

from __future__ import annotations

from fractions import Fraction

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.durations import count, decimal, duration_ms, percent
from gpuledger.model.meters import GPU_MEMORY
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.reasons import UNATTRIBUTED
from gpuledger.model.rounding import largest_remainder
from gpuledger.model.usage import NO_NAME, TIME_BY, UnattributedLine, UsageReport, UsageRow
from gpuledger.reports import as_csv, as_json, unseen
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, ShareBar, cell, device_name, heading, stacked
from gpuledger.reports.columns import LEAST_NAME, Column, Fitted

BAR_WIDTH = 8
"""Columns of a share's bar."""

WIDE = 96
"""Columns from which a table has room for bars."""

MIB_SECONDS_IN_GIB_HOUR = 1024 * 3600


def to_json(report: UsageReport) -> dict[str, Json]:
    """The contract of ``usage --format json``; what only some meters have follows after ``watched``."""
    document: dict[str, Json] = {
        "meter": report.meter,
        "unit": report.unit,
        "since": iso(report.since_us),
        "until": iso(report.until_us),
        "by": list(report.by),
        "rows": [{**_keys(report, row), "quantity": row.quantity, **_grades(report, row)} for row in report.rows],
        "unattributed": as_json.unattributed(report.unattributed_quantity, report.unattributed),
        "total": as_json.number(report.total),
        "unsettled": as_json.unsettled(report.unsettled_quantity, report.unsettled),
        "unknown": as_json.unknown(report.unknown),
        "watched": {"seconds": report.watched.seconds, "of": report.watched.of},
        "idle": as_json.idle(report.watched),
        "note": report.note,
        "provisional": {
            "quantity": report.provisional,
            "rows": [{**_keys(report, row), "quantity": row.provisional} for row in report.rows if row.provisional],
        },
        "never_accounted": as_json.never_accounted(report.never_accounted),
        "seen_once": as_json.seen_once(report.seen_once),
        "problems": as_json.problems(report.problems),
    }
    if _has_busy(report):
        document["busy"] = {
            "unit": "ms",
            "rows": [{**_keys(report, row), "quantity": as_json.number(row.busy_ms)} for row in report.rows],
            "unattributed": {line.cause: as_json.number(line.busy_ms) for line in report.unattributed},
        }
    if report.meter == GPU_MEMORY.name and report.answered:
        products = [decimal(thousandths, 3) for thousandths in gib_hours(report)]
        named = len(report.rows)
        document["product"] = {
            "unit": "GiB-hours",
            "rows": [
                {**_keys(report, row), "quantity": product}
                for row, product in zip(report.rows, products[:named], strict=True)
            ],
            "unattributed": {
                line.cause: product for line, product in zip(report.unattributed, products[named:-1], strict=True)
            },
            "total": products[-1],
        }
    return document


def to_csv(report: UsageReport) -> str:
    """Rows, then one line for each unattributed cause, so that the quantity column adds up to the total.

    The cause stands in the first grouping that is not a time; where all are times, in a column ``cause``.
    """
    grades = ["sampled"] if report.sampled else ["settled", "observed"]
    busy = _has_busy(report)
    by = report.by or ("total",)
    words = [*by, "cause"] if all(word in TIME_BY for word in by) else [*by]
    header = [*words, "quantity", "unit", *grades, "provisional", *(["busy_ms"] if busy else [])]
    cause_at = _cause_at(tuple(words))
    rows: list[list[as_csv.Value]] = []
    for line in _lines(report):
        if isinstance(line, UsageRow):
            keys = [*(line.key or ("named",)), ""][: len(words)]
        else:
            keys = [_absent(word) for word in words]
            keys[cause_at] = f"{UNATTRIBUTED}{line.cause}"
        figures: list[as_csv.Value] = [line.quantity, report.unit, *_grades(report, line).values(), line.provisional]
        rows.append([*keys, *figures, *([line.busy_ms] if busy else [])])
    return as_csv.text(header, rows)


def to_table(report: UsageReport, *, width: int = 100, unseen_too: bool = True) -> RenderableType:
    """For eyes: one table with the unattributed in it, then everything that was not seen.

    Args:
        report: what to show.
        width: columns of the terminal.
        unseen_too: whether what was not seen stands under it; not where ``blind`` stands beside it.
    """
    what = f"{report.meter} by {', '.join(report.by)}" if report.by else report.meter
    parts: list[RenderableType] = [
        heading(what, f"{iso(report.since_us)} to {iso(report.until_us)}"),
        _note(report),
        "",
        _amounts(report, width),
    ]
    if not unseen_too:
        return stacked(*parts)
    sections = [
        [unseen.watched_line(report.watched), *_provisional(report)],
        unseen.not_seen(report.sizes, report.watched),
        unseen.still_running(report.unsettled, report.unsettled_quantity, inside="inside the rows already"),
        unseen.outside_accounting(report.never_accounted),
        unseen.seen_once(report.seen_once),
    ]
    return stacked(*parts, "", *unseen.spaced(sections))


def gib_hours(report: UsageReport) -> list[int]:
    """Thousandths of a GiB-hour for rows, then causes, then the total: rounded once, so that they add up."""
    parts = [Fraction(line.quantity * 1000, MIB_SECONDS_IN_GIB_HOUR) for line in _lines(report)]
    rounded = largest_remainder(parts)
    return [*rounded, sum(rounded)]


def _note(report: UsageReport) -> Text:
    return Text(report.note, style="dim")


def _provisional(report: UsageReport) -> list[RenderableType]:
    if not report.provisional:
        return []
    size = f"{count(report.provisional)} {report.unit}"
    if report.unit == "ms":
        size = f"{duration_ms(report.provisional)} ({size})"
    return [Text(f"Provisional: {size} of the total lie in hours not recorded, or cut by the window")]


def _amounts(report: UsageReport, width: int) -> RenderableType:
    total = report.total
    if isinstance(total, Missing):
        return Text(f"{UNKNOWN}: {total.reason}", style="bold yellow")
    styles = ["" if isinstance(line, UsageRow) else "yellow" for line in _lines(report)]
    return Fitted([*_key_columns(report), *_figure_columns(report, total, width)], styles=styles, totals=True)


def _key_columns(report: UsageReport) -> list[Column]:
    labels = [_labels(report, line) for line in _lines(report)]
    causes = [len(UNATTRIBUTED) + len(line.cause) for line in report.unattributed]
    cause_at = _cause_at(report.by)
    columns = []
    for place, word in enumerate(report.by or ("",)):
        least = max(LEAST_NAME, *causes) if place == cause_at and causes else LEAST_NAME
        is_whole = word in (*TIME_BY, "device") and place != cause_at
        columns.append(
            Column(
                head=word,
                cells=[label[place] for label in labels],
                total="" if place else "total",
                justify="left",
                least=0 if is_whole else least,
            )
        )
    return columns


def _cause_at(by: tuple[str, ...]) -> int:
    """The column in which an unattributed line says so: the first one that is not a time, else the first."""
    return next((place for place, word in enumerate(by) if word not in TIME_BY), 0)


def _figure_columns(report: UsageReport, total: int, width: int) -> list[Column]:
    lines = _lines(report)
    quantities = [line.quantity for line in lines]
    columns: list[Column] = []
    if report.meter == GPU_MEMORY.name:
        products = [decimal(thousandths, 3) for thousandths in gib_hours(report)]
        columns.append(Column(head="GiB-hours", cells=[*products[:-1]], total=products[-1], spare=1))
    else:
        columns.append(
            Column(head="time", cells=[duration_ms(each) for each in quantities], total=duration_ms(total), spare=1)
        )
    columns.append(Column(head=report.unit, cells=[count(each) for each in quantities], total=count(total)))
    if total:
        # Each is rounded by itself, so that equal amounts show equal shares; they need not add up.
        words = [percent(Fraction(each, total)) for each in quantities]
        columns.append(Column(head="share", cells=words, total="100 %", spare=4))
        if _bars_fit(report, width):
            columns.append(Column(head="", cells=[_bar(line, total) for line in lines], justify="left", spare=5))
    if _has_busy(report):
        known = [line.busy_ms for line in lines if not isinstance(line.busy_ms, Missing)]
        cells = ["none seen" if isinstance(line.busy_ms, Missing) else duration_ms(line.busy_ms) for line in lines]
        columns.append(Column(head="busy", cells=[*cells], total=duration_ms(sum(known)), spare=2))
    observed = 0 if report.sampled else sum(line.observed for line in lines)
    if observed:
        cells = [duration_ms(line.observed) if line.observed else "" for line in lines]
        columns.append(Column(head="observed", cells=[*cells], total=duration_ms(observed), spare=3))
    return columns


def _bars_fit(report: UsageReport, width: int) -> bool:
    return width >= WIDE and len(report.by) <= 1 and report.by != ("hour",) and not _has_busy(report)


def _bar(line: UsageRow | UnattributedLine, total: int) -> ShareBar:
    return ShareBar(Fraction(line.quantity, total), BAR_WIDTH, "cyan" if isinstance(line, UsageRow) else "yellow")


def _labels(report: UsageReport, line: UsageRow | UnattributedLine) -> list[Text]:
    if isinstance(line, UsageRow):
        shown = zip(report.by, line.key, strict=True)
        return [cell(device_name(value) if word == "device" else value) for word, value in shown] or [cell("named")]
    label = cell(f"{UNATTRIBUTED}{line.cause}")
    label.append(f"\n{line.meaning}", style="dim")
    cause_at = _cause_at(report.by)
    words = report.by or ("",)
    return [label if place == cause_at else cell(_absent(word)) for place, word in enumerate(words)]


def _absent(word: str) -> str:
    """What a column says of an amount that has no such key: nothing where it would be a time."""
    return "" if word in TIME_BY else NO_NAME


def _has_busy(report: UsageReport) -> bool:
    return any(not isinstance(line.busy_ms, Missing) for line in _lines(report))


def _lines(report: UsageReport) -> list[UsageRow | UnattributedLine]:
    lines: list[UsageRow | UnattributedLine] = [*report.rows]
    return [*lines, *report.unattributed]


def _keys(report: UsageReport, row: UsageRow) -> dict[str, Json]:
    return dict(zip(report.by, row.key, strict=True))


def _grades(report: UsageReport, line: UsageRow | UnattributedLine) -> dict[str, int]:
    if report.sampled:
        return {"sampled": line.quantity}
    return {"settled": line.settled, "observed": line.observed}
