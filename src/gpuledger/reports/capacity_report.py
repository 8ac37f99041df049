"""``capacity``: waits, fallbacks, what is held; for eyes, for programs, for sheets. Values in, text out."""

from __future__ import annotations

from fractions import Fraction

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.capacity import CapacityLine, CapacityReport
from gpuledger.model.durations import count, decimal, duration_us, percent, several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.rounding import nearest
from gpuledger.reports import as_csv, as_json
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, cell, heading, indented, stacked
from gpuledger.reports.columns import LEAST_NAME, Column, Fitted

ABSENT = "-"
"""A figure that cannot be given; why stands under the table."""


def to_table(report: CapacityReport) -> RenderableType:
    """One line a class, one for all, then fallbacks, who still waits, and why a figure is not given."""
    lines = [*report.lines, report.overall]
    parts: list[RenderableType] = [
        heading("capacity by class", f"{iso(report.since_us)} to {iso(report.until_us)}"),
        Text("waits by the class asked for, devices held by the class given", style="dim"),
        "",
    ]
    if not report.answered:
        return stacked(*parts, Text(f"{UNKNOWN}: no lifecycle event is known of this time", style="bold yellow"))
    parts.append(Fitted(_columns(report, lines), totals=True))
    for section in (_fallbacks(report), _waiting(report), _unasked(report), _absent(lines)):
        if section:
            parts += ["", *section]
    return stacked(*parts)


def to_json(report: CapacityReport) -> dict[str, Json]:
    """The contract of ``capacity --format json``: waits in microseconds, devices as exact fractions."""
    return {
        "since": iso(report.since_us),
        "until": iso(report.until_us),
        "classes": [_json(report, line) for line in report.lines],
        "all": _json(report, report.overall),
        "problems": as_json.problems(report.problems),
    }


def to_csv(report: CapacityReport) -> str:
    """One row a class; devices with three decimals, what is not known empty."""
    header = (
        "class", "started", "gave_up", "waiting", "unasked", "wait_p50_us", "wait_p95_us", "waited_us", "compared",
        "fallbacks", "peak", "peak_at", "mean", "owned",
    )  # fmt: skip
    rows: list[list[as_csv.Value]] = [
        [
            line.class_name, line.started, line.gave_up, line.waiting, line.unasked, line.wait_p50_us,
            line.wait_p95_us, line.waited_us, line.compared, line.fallbacks, _thousandths(line.peak),
            line.peak_at_us if isinstance(line.peak_at_us, Missing) else iso(line.peak_at_us),
            _thousandths(line.mean), line.owned,
        ]
        for line in report.lines
    ]  # fmt: skip
    return as_csv.text(header, rows)


def _json(report: CapacityReport, line: CapacityLine) -> dict[str, Json]:
    reasons = {
        "wait_p50_us": line.wait_p50_us,
        "wait_p95_us": line.wait_p95_us,
        "waited_us": line.waited_us,
        "fallbacks": line.fallbacks,
        "peak": line.peak,
        "peak_at": line.peak_at_us,
        "mean": line.mean,
        "owned": line.owned,
    }
    missing: dict[str, Json] = {name: value.reason for name, value in reasons.items() if isinstance(value, Missing)}
    return {
        "class": line.class_name,
        "started": line.started,
        "gave_up": line.gave_up,
        "waiting": line.waiting,
        "unasked": line.unasked,
        "wait_p50_us": as_json.number(line.wait_p50_us),
        "wait_p95_us": as_json.number(line.wait_p95_us),
        "waited_us": as_json.number(line.waited_us),
        "of_us": report.until_us - report.since_us,
        "compared": line.compared,
        "fallbacks": as_json.number(line.fallbacks),
        "instead": dict(line.instead),
        "peak": None if isinstance(line.peak, Missing) else str(line.peak),
        "peak_at": as_json.moment(line.peak_at_us),
        "mean": None if isinstance(line.mean, Missing) else str(line.mean),
        "owned": as_json.number(line.owned),
        **({"missing": missing} if missing else {}),
    }


def _columns(report: CapacityReport, lines: list[CapacityLine]) -> list[Column]:
    length_us = report.until_us - report.since_us

    def column(head: str, cells: list[str], spare: int = 0) -> Column:
        return Column(head=head, cells=cells[:-1], total=cells[-1], spare=spare)

    return [
        Column(
            head="class",
            cells=[line.class_name for line in report.lines],
            total="all classes",
            justify="left",
            least=LEAST_NAME,
        ),
        column("started", [count(line.started) for line in lines], 2),
        column("wait p50", [_wait(line.wait_p50_us) for line in lines]),
        column("p95", [_wait(line.wait_p95_us) for line in lines]),
        column("anything waited", [_share(line.waited_us, length_us) for line in lines], 1),
        column("fallbacks", [_fallen(line) for line in lines]),
        column("peak", [_devices(line.peak) for line in lines]),
        column("mean", [_devices(line.mean) for line in lines]),
        column("owned", [ABSENT if isinstance(line.owned, Missing) else count(line.owned) for line in lines]),
    ]


def _wait(us: int | Missing) -> str:
    return ABSENT if isinstance(us, Missing) else duration_us(us) if us else "0 s"


def _share(us: int | Missing, of_us: int) -> str:
    return ABSENT if isinstance(us, Missing) or not of_us else percent(Fraction(us, of_us))


def _fallen(line: CapacityLine) -> str:
    if isinstance(line.fallbacks, Missing):
        return ABSENT
    return f"{count(line.fallbacks)} of {count(line.compared)}"


def _devices(amount: Fraction | Missing) -> str:
    return ABSENT if isinstance(amount, Missing) else decimal(nearest(amount * 1000), 3, trim=amount.denominator == 1)


def _thousandths(amount: Fraction | Missing) -> as_csv.Value:
    return amount if isinstance(amount, Missing) else decimal(nearest(amount * 1000), 3)


def _fallbacks(report: CapacityReport) -> list[RenderableType]:
    told = [
        cell(f"{line.class_name}: given {given} {several(number, 'time')}")
        for line in report.lines
        for given, number in line.instead
    ]
    return [heading("Given instead"), *(indented(each) for each in told)] if told else []


def _waiting(report: CapacityReport) -> list[RenderableType]:
    line = report.overall
    if not (line.waiting or line.gave_up):
        return []
    return [
        cell(
            f"{several(line.waiting, 'request')} still waited at the end, {count(line.gave_up)} gave up: not in the "
            "percentiles, which are of those that started"
        )
    ]


def _unasked(report: CapacityReport) -> list[RenderableType]:
    number = report.overall.unasked
    if not number:
        return []
    return [cell(f"{several(number, 'request')} started that nobody told of before: their wait is {UNKNOWN}", "yellow")]


def _absent(lines: list[CapacityLine]) -> list[RenderableType]:
    """Each reason once, with the column it stands in."""
    told: dict[str, None] = {}
    for line in lines:
        for name, value in (
            ("wait", line.wait_p50_us), ("anything waited", line.waited_us), ("fallbacks", line.fallbacks),
            ("peak and mean", line.peak), ("owned", line.owned),
        ):  # fmt: skip
            if isinstance(value, Missing):
                told[f"{ABSENT} {name}: {value.reason}"] = None
    return [cell(each, "dim") for each in told]
