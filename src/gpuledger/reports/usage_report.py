"""``usage``: who used how much, for eyes, for programs, for sheets. Values in, text out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from rich.console import Group, RenderableType
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
from gpuledger.reports.cells import UNKNOWN, ShareBar, cell, device_name, heading, table

BAR_WIDTH = 8
"""Columns of a share's bar."""

WIDE = 96
"""Columns from which a table has room for bars."""

LEAST_NAME = 8
"""Columns below which a name is not folded any further."""

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
    """Rows, then one line for each unattributed cause, so that the column adds up to the total."""
    grades = ["sampled"] if report.sampled else ["settled", "observed"]
    first = report.by[0] if report.by else "total"
    busy = _has_busy(report)
    header = [*(report.by or (first,)), "quantity", "unit", *grades, "provisional", *(["busy_ms"] if busy else [])]
    rows: list[list[as_csv.Value]] = []
    for line in _lines(report):
        if isinstance(line, UsageRow):
            keys = line.key if report.by else ("named",)
        else:
            keys = (f"{UNATTRIBUTED}{line.cause}", *(NO_NAME for _ in report.by[1:]))
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
        return Group(*parts)
    sections = [
        [unseen.watched_line(report.watched), *_provisional(report)],
        unseen.not_seen(report.sizes, report.watched),
        unseen.still_running(report.unsettled, report.unsettled_quantity, inside="inside the rows already"),
        unseen.outside_accounting(report.never_accounted),
        unseen.seen_once(report.seen_once),
    ]
    return Group(*parts, "", *unseen.spaced(sections))


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
    lines = _lines(report)
    grid = table(totals=True)
    columns = _fitting([*_key_columns(report), *_figure_columns(report, total, width)], width)
    for column in columns:
        grid.add_column(
            column.head,
            footer=column.total,
            justify=column.justify,
            overflow="fold",
            no_wrap=column.whole,
            min_width=column.least,
        )
    for place, line in enumerate(lines):
        grid.add_row(*(column.cells[place] for column in columns), style="" if isinstance(line, UsageRow) else "yellow")
    return grid


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column of the table.

    Args:
        head: heading.
        cells: one for each line.
        total: the cell of the last line.
        justify: side.
        whole: whether its cells are never folded.
        least: columns that it needs where they are.
        spare: how easily it is left out where the terminal is narrow; 0: never.
    """

    head: str
    cells: list[RenderableType]
    total: str = ""
    justify: Literal["left", "right"] = "right"
    whole: bool = True
    least: int | None = None
    spare: int = 0

    @property
    def needs(self) -> int:
        """Columns without which something would be cut."""
        if self.least is not None:
            return self.least
        return max(len(str(each)) for each in (self.head, self.total, *self.cells))


def _fitting(columns: list[_Column], width: int) -> list[_Column]:
    """The columns that fit without cutting a quantity: spare ones are left out, then names are folded."""
    kept = list(columns)
    while _too_wide(kept, width) and any(column.spare for column in kept):
        kept.remove(max(kept, key=lambda column: column.spare))
    if _too_wide(kept, width):
        kept = [
            replace(column, whole=False, least=LEAST_NAME) if column.justify == "left" else column for column in kept
        ]
    return kept


def _too_wide(columns: list[_Column], width: int) -> bool:
    return sum(column.needs for column in columns) + 2 * (len(columns) - 1) > width


def _key_columns(report: UsageReport) -> list[_Column]:
    labels = [_labels(report, line) for line in _lines(report)]
    causes = [len(UNATTRIBUTED) + len(line.cause) for line in report.unattributed]
    return [
        _Column(
            head=word,
            cells=[label[place] for label in labels],
            total="" if place else "total",
            justify="left",
            whole=place > 0 and word in (*TIME_BY, "device"),
            least=_least(word, place, causes),
        )
        for place, word in enumerate(report.by or ("",))
    ]


def _least(word: str, place: int, causes: list[int]) -> int | None:
    if not place:
        return max(LEAST_NAME, *causes) if causes else LEAST_NAME
    return None if word in (*TIME_BY, "device") else LEAST_NAME


def _figure_columns(report: UsageReport, total: int, width: int) -> list[_Column]:
    lines = _lines(report)
    quantities = [line.quantity for line in lines]
    columns = []
    if report.meter == GPU_MEMORY.name:
        products = [decimal(thousandths, 3) for thousandths in gib_hours(report)]
        columns.append(_Column(head="GiB-hours", cells=[*products[:-1]], total=products[-1]))
    else:
        columns.append(
            _Column(head="time", cells=[duration_ms(each) for each in quantities], total=duration_ms(total), spare=1)
        )
    columns.append(_Column(head=report.unit, cells=[count(each) for each in quantities], total=count(total)))
    if total:
        shares = [Fraction(each, total) for each in quantities]
        thousandths = largest_remainder([share * 1000 for share in shares], 1000)
        words = [_share(share, rounded) for share, rounded in zip(shares, thousandths, strict=True)]
        columns.append(_Column(head="share", cells=[*words], total="100 %", spare=4))
        if _bars_fit(report, width):
            columns.append(
                _Column(head="", cells=[_bar(line, total) for line in lines], justify="left", least=BAR_WIDTH, spare=5)
            )
    if _has_busy(report):
        known = [line.busy_ms for line in lines if not isinstance(line.busy_ms, Missing)]
        cells = ["none seen" if isinstance(line.busy_ms, Missing) else duration_ms(line.busy_ms) for line in lines]
        columns.append(_Column(head="busy", cells=[*cells], total=duration_ms(sum(known)), spare=2))
    observed = 0 if report.sampled else sum(line.observed for line in lines)
    if observed:
        cells = [duration_ms(line.observed) if line.observed else "" for line in lines]
        columns.append(_Column(head="observed", cells=[*cells], total=duration_ms(observed), spare=3))
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
    return [label, *(cell(NO_NAME) for _ in report.by[1:])]


def _share(share: Fraction, thousandths: int) -> str:
    # The rounded shares add up to 100.0; only the two ends keep their own words.
    return percent(share) if thousandths in (0, 1000) else f"{decimal(thousandths, 1)} %"


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
