"""``usage`` of reserved time, for eyes, for programs, for sheets. Values in, text out.

Products are rounded here, once, to three decimals by largest remainder: rows add up to the total.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.durations import count, decimal, duration_s, percent, several
from gpuledger.model.meters import MIG_MEMORY, Grade
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.reasons import RESERVED_MEANING
from gpuledger.model.reserved import ReservedGap, ReservedReport, ReservedRow
from gpuledger.model.rounding import largest_remainder, nearest
from gpuledger.model.usage import TIME_BY
from gpuledger.reports import as_csv
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, cell, device_name, heading, indented, stacked
from gpuledger.reports.columns import LEAST_NAME, Column, Fitted

PLACES = 3
"""Decimals of a product."""

MOST_IDLE = 12
"""Places that are named of those of which nothing was reserved."""


def to_json(report: ReservedReport) -> dict[str, Json]:
    """The contract of ``usage --meter gpu.reserved --format json``: products as text with three decimals."""
    products, total = _products(report)
    return {
        "meter": report.meter,
        "unit": report.unit,
        "grade": Grade.RESERVED,
        "since": iso(report.since_us),
        "until": iso(report.until_us),
        "by": list(report.by),
        "rows": [
            {
                **dict(zip(report.by, row.key, strict=True)),
                "quantity": product,
                "seconds": row.seconds,
                "provisional": _three(row.provisional),
                "owned": None if isinstance(row.owned, Missing) else _three(row.owned),
            }
            for row, product in zip(report.rows, products, strict=True)
        ],
        "total": total if report.answered else None,
        "owned": None if isinstance(report.owned, Missing) else _three(report.owned),
        "idle": [{**dict(zip(report.by, key, strict=True)), "owned": _three(owned)} for key, owned in report.idle],
        "provisional": _three(report.provisional),
        "gaps": gaps_to_json(report.gaps) if report.looked_for_gaps else None,
        "note": report.note,
    }


def gaps_to_json(gaps: Iterable[ReservedGap]) -> list[Json]:
    """What reservations do not tell, one object each."""
    return [
        {
            "reason": gap.reason,
            "what": gap.what,
            "seconds": gap.seconds,
            "since": iso(gap.since_us),
            "until": iso(gap.until_us),
            "detail": gap.detail,
        }
        for gap in gaps
    ]


def to_csv(report: ReservedReport) -> str:
    """One line for each group; the quantity column adds up to the total."""
    products, _ = _products(report)
    header = [*(report.by or ("total",)), "quantity", "unit", "seconds", "provisional", "owned"]
    rows: list[list[as_csv.Value]] = [
        [
            *(row.key or ("total",)), product, report.unit, row.seconds, _three(row.provisional),
            row.owned if isinstance(row.owned, Missing) else _three(row.owned),
        ]
        for row, product in zip(report.rows, products, strict=True)
    ]  # fmt: skip
    return as_csv.text(header, rows)


def to_table(report: ReservedReport) -> RenderableType:
    """For eyes: one table, what of it is provisional, and what reservations do not tell."""
    what = f"{report.meter} by {', '.join(report.by)}" if report.by else report.meter
    parts: list[RenderableType] = [
        heading(what, f"{iso(report.since_us)} to {iso(report.until_us)}"),
        Text(report.note, style="dim"),
        "",
    ]
    if isinstance(report.total, Missing):
        return stacked(*parts, Text(f"{UNKNOWN}: {report.total.reason}", style="bold yellow"))
    if not report.rows:
        parts.append(Text("nothing was reserved in this time, as far as transitions tell"))
    else:
        parts.append(Fitted(_columns(report), totals=True))
    if report.provisional:
        size = f"{_grouped(_three(report.provisional))} {report.unit}"
        parts += ["", Text(f"Provisional: {size} of it lie in hours not recorded, or cut by the window")]
    if report.idle:
        parts += ["", *_idle(report)]
    told = not_told(report.gaps)
    return stacked(*parts, *(["", *told] if told else []))


def not_told(gaps: Iterable[ReservedGap]) -> list[RenderableType]:
    """The section of what reservations do not tell; nothing where they tell all."""
    listed = list(gaps)
    if not listed:
        return []
    grid = Fitted(
        [
            Column(head="reason", cells=[gap.reason for gap in listed], justify="left", style="yellow"),
            Column(head="size", cells=[duration_s(gap.seconds) for gap in listed]),
            Column(head="of", cells=[cell(device_name(gap.what)) for gap in listed], justify="left", least=LEAST_NAME),
            Column(head="since", cells=[iso(gap.since_us) for gap in listed], justify="left", spare=2),
            Column(head="what it is", cells=[cell(gap.detail) for gap in listed], justify="left", least=LEAST_NAME),
        ]
    )
    reasons = dict.fromkeys(gap.reason for gap in listed)
    helps = [indented(Text.assemble("what helps: ", (RESERVED_MEANING[reason][1], "bold"))) for reason in reasons]
    return [heading("Not told by reservations", several(len(listed), "finding")), indented(grid), *helps]


def _columns(report: ReservedReport) -> list[Column]:
    products, total = _products(report)
    rows = report.rows
    columns = [
        Column(
            head=word,
            cells=[cell(device_name(row.key[place]) if word == "device" else row.key[place]) for row in rows],
            total="" if place else "total",
            justify="left",
            least=0 if word in TIME_BY else LEAST_NAME,
        )
        for place, word in enumerate(report.by)
    ]
    if not report.by:
        columns.append(Column(head="", cells=["all"], total="total", justify="left"))
    if report.meter != MIG_MEMORY.name:
        hours = "hours" if report.unit == "seconds" else "device-hours"
        exact = sum((row.quantity for row in rows), Fraction(0))
        columns.append(Column(head=hours, cells=[_hours(row.quantity) for row in rows], total=_hours(exact), spare=3))
    columns.append(Column(head=report.unit, cells=[_grouped(each) for each in products], total=_grouped(total)))
    if not isinstance(report.total, Missing) and report.total:
        shares = [percent(row.quantity / Fraction(report.total)) for row in rows]
        columns.append(Column(head="share", cells=shares, total="100 %", spare=2))
    if any(not isinstance(row.owned, Missing) for row in rows):
        columns += _beside(rows, report.owned)
    return columns


def _idle(report: ReservedReport) -> list[RenderableType]:
    """Places that are known and of which nothing was reserved, as far as transitions tell."""
    size = _hours(sum((owned for _, owned in report.idle), Fraction(0)))
    named = [f"{', '.join(key)} {_hours(owned)}" for key, owned in report.idle[:MOST_IDLE]]
    more = [f"{len(report.idle) - MOST_IDLE:,} more"] if len(report.idle) > MOST_IDLE else []
    lines: list[RenderableType] = [
        cell(f"Owned, and nothing of it reserved: {size} device-hours: {'; '.join([*named, *more])}")
    ]
    unseen = [", ".join(row.key) for row in report.rows if isinstance(row.owned, Missing)]
    if unseen:
        names = "; ".join(unseen[:MOST_IDLE])
        lines.append(cell(f"Held where no device is known, perhaps the same by another name: {names}", "yellow"))
    return lines


def _beside(rows: Iterable[ReservedRow], all_owned: Fraction | Missing) -> list[Column]:
    """What was owned beside what was reserved, and how much of it that is."""
    owned = ["-" if isinstance(row.owned, Missing) else _hours(row.owned) for row in rows]
    parts = [
        "-" if isinstance(row.owned, Missing) or not row.owned else percent(row.quantity / Fraction(row.owned))
        for row in rows
    ]
    return [
        Column(
            head="owned hours", cells=owned, total="" if isinstance(all_owned, Missing) else _hours(all_owned), spare=1
        ),
        Column(head="of it", cells=parts, spare=1),
    ]


def _products(report: ReservedReport) -> tuple[list[str], str]:
    """Each row's product, and the total, as text: rounded once, so that they add up."""
    thousandths = largest_remainder([row.quantity * 10**PLACES for row in report.rows])
    return [decimal(each, PLACES) for each in thousandths], decimal(sum(thousandths), PLACES)


def _three(amount: Fraction | int) -> str:
    return decimal(nearest(Fraction(amount) * 10**PLACES), PLACES)


def _hours(seconds: Fraction) -> str:
    tenths = nearest(seconds * Fraction(10, 3600))
    return f"{count(tenths // 10)}.{tenths % 10}"


def _grouped(text: str) -> str:
    whole, _, fraction = text.partition(".")
    return f"{count(int(whole))}.{fraction}" if whole != "-0" else text
