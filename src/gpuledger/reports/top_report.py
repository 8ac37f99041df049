"""``top``: who holds a device now, as one table, for programs, and the columns that the live screen shares.

Values in, text out. What is not known is ``-`` with its reason below, and ``>=`` stands before what is the
least it can be; neither is ever a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.durations import HOUR_MS, MINUTE_MS, count, duration_ms, duration_s, memory_mib, several
from gpuledger.model.holders import (
    UNNAMED_MEANING,
    Figure,
    Grouping,
    HoldersReport,
    HoldersRow,
    Order,
    Unnamed,
)
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.reports import as_csv, as_json
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import UNKNOWN, ShareBar, cell, device_name, heading, indented, printable, stacked
from gpuledger.reports.columns import LEAST_NAME, Column, Fitted

ABSENT = "-"
"""A figure that is not known; its reason stands under the table."""
WIDE = 96
"""Columns from which a table has room for bars."""
MOST_PIDS = 3
"""Pids of a row that are listed; JSON has them all."""

_BAR_WIDTH = 8
_NAME = 24
"""Columns that a name keeps as long as there is a column to leave out."""

ORDER_WORDS = {
    Order.MEMORY: ("most memory first", "least memory first"),
    Order.HELD: ("longest held first", "latest first"),
    Order.BUSY: ("busiest first", "least busy first"),
    Order.NAME: ("by name", "by name, backwards"),
}
"""What each order is called, and its reverse."""


def to_json(report: HoldersReport) -> dict[str, Json]:
    """The contract of ``top --once --format json``."""
    look, arrangement = report.look, report.arrangement
    return {
        "host": look.host,
        "at": iso(look.at_us),
        "method": look.method,
        "driver_version": look.driver_version,
        "ledger": None if isinstance(look.ledger, Missing) else look.ledger,
        "by": arrangement.by.value,
        "rows": [_as_json(row, arrangement.by) for row in report.rows],
        "unnamed": [_as_json(row, arrangement.by) for row in report.unnamed],
        "not_named": {
            "contexts": report.unnamed_contexts,
            "of_contexts": report.contexts,
            "memory_mib": as_json.number(report.unnamed_memory.value),
            "of_memory_mib": as_json.number(report.memory.value),
            "memory_left_out": report.memory.left_out,
        },
        "devices": [
            {
                "device": device.uuid,
                "class": device.class_name,
                "memory_mib": as_json.number(device.memory_mib),
                "silence": device.silence or None,
            }
            for device in look.devices
        ],
        "problems": as_json.problems(look.problems),
    }


def to_csv(report: HoldersReport) -> str:
    """One line for each row, the unnamed after the named."""
    by = report.arrangement.by
    header = [
        by.value, "cause", "detail", "user", "pids", "devices", "contexts", "unnamed", "held_ms", "at_least",
        "memory_mib", "memory_left_out", "busy_percent", "busy_left_out",
    ]  # fmt: skip
    rows: list[list[as_csv.Value]] = [
        [
            row.label,
            row.cause,
            row.detail,
            row.user,
            " ".join(str(pid) for pid in row.pids),
            " ".join(row.devices),
            row.contexts,
            row.unnamed,
            _ms(row.held_us),
            "true" if row.is_at_least else "false",
            row.memory.value,
            row.memory.left_out,
            row.busy.value,
            row.busy.left_out,
        ]
        for row in lines(report)
    ]
    return as_csv.text(header, rows)


def to_table(report: HoldersReport, *, width: int = 100) -> RenderableType:
    """For eyes: all rows, then what is not known of them, then the size of the unnamed.

    Args:
        report: what to show.
        width: columns of the terminal.
    """
    shown = lines(report)
    parts: list[RenderableType] = [title(report), Text(status(report), style="dim"), ""]
    parts.append(Fitted(columns(report, shown, width=width), styles=styles(shown)) if shown else nothing(report))
    return stacked(*parts, *absences(report), "", *not_named(report))


def lines(report: HoldersReport) -> list[HoldersRow]:
    """Every row in the order in which it stands."""
    return [*report.rows, *report.unnamed]


def title(report: HoldersReport) -> Text:
    """What is shown, where and when."""
    look = report.look
    driver = f"driver {look.driver_version} by {look.method}" if look.driver_version else look.method
    devices = several(len(look.devices), "device")
    size = f"{printable(look.host)}, {iso(look.at_us // 1_000_000 * 1_000_000)}, {devices}, {driver}"
    return heading(f"top by {report.arrangement.by}", size)


def status(report: HoldersReport) -> str:
    """How it is sorted, and whether a ledger helped to name."""
    ledger = report.look.ledger
    order = ORDER_WORDS[report.arrangement.order][report.arrangement.is_reversed]
    beside = f"without a ledger ({ledger.reason})" if isinstance(ledger, Missing) else f"ledger {ledger}"
    return f"{order}; {printable(beside)}"


def nothing(report: HoldersReport) -> Text:
    """What stands instead of rows: no device, no holder, or no answer; these are three things."""
    look = report.look
    if not look.devices:
        return Text("The driver lists no device.")
    if not look.answered:
        return Text(f"{UNKNOWN}: no device told who holds it", style="bold yellow")
    return Text("No process holds a device.")


def styles(rows: Iterable[HoldersRow]) -> list[str]:
    """The unnamed and the silent stand out."""
    return ["yellow" if row.cause or isinstance(row.contexts, Missing) else "" for row in rows]


def columns(report: HoldersReport, rows: Sequence[HoldersRow], *, width: int) -> list[Column]:
    """The columns of these rows, for a table of so many columns of text."""
    by = report.arrangement.by
    shown = [*_keys(by, rows)]
    if by is not Grouping.PROCESS:
        shown.append(Column(head="procs", cells=[_number(row, len(row.pids)) for row in rows], spare=2))
    if by is Grouping.DEVICE:
        shown.append(Column(head="unnamed", cells=[_number(row, row.unnamed) for row in rows], spare=1))
    else:
        shown.append(_left("device", [_places(row) for row in rows], spare=5))
    shown.append(Column(head="held for", cells=[_held(row) for row in rows]))
    shown.append(Column(head="memory", cells=[_figure(row.memory, _memory) for row in rows]))
    if width >= WIDE:
        bars = [_bar(row) for row in rows]
        shown.append(Column(head="", cells=bars, justify="left", spare=7))
    shown.append(Column(head="busy", cells=[_figure(row.busy, _percent) for row in rows], spare=3))
    if by not in (Grouping.PROCESS, Grouping.DEVICE) and width >= WIDE:
        shown.append(_left("pids", [_pids(row) for row in rows], spare=6))
    return shown


def absences(report: HoldersReport) -> list[RenderableType]:
    """Why figures are ``-``, or only the least that they can be: each reason once."""
    said: dict[str, None] = {}
    for row in lines(report):
        if isinstance(row.contexts, Missing):
            said[f"{device_name(row.label)}: {row.contexts.reason}"] = None
            continue
        if isinstance(row.held_us, Missing) and row.pids:
            said[f"held for: {row.held_us.reason}"] = None
        said.update((f"memory: {why}", None) for why in row.memory.why)
        said.update((f"busy: {why}", None) for why in row.busy.why)
    return [indented(cell(f"{ABSENT} {reason}", "yellow")) for reason in said]


def not_named(report: HoldersReport) -> list[RenderableType]:
    """The size of the unnamed, and for each reason what it means and what helps."""
    found = report.unnamed_contexts
    size = f"{count(found)} of {several(report.contexts, 'context')}"
    if report.contexts:
        held = _figure(report.memory, _memory).plain
        size += f", {_figure(report.unnamed_memory, _memory).plain} of {held} of held memory"
    if report.memory.left_out:
        size += f"; of {several(report.memory.left_out, 'context')} the memory is not known"
    told: list[RenderableType] = [heading("Not named", size)]
    for cause in sorted({one.cause for one in report.look.holdings if one.cause}):
        meaning, helps = UNNAMED_MEANING[Unnamed(cause)]
        told.append(indented(Text(f"{cause}: {meaning}; what helps: {helps}", style="yellow")))
    return told


def _keys(by: Grouping, rows: Sequence[HoldersRow]) -> list[Column]:
    causes = [len(row.label) for row in rows if row.cause]
    name = Column(
        head="service" if by is Grouping.PROCESS else by.value,
        cells=[cell(device_name(row.label) if by is Grouping.DEVICE else row.label) for row in rows],
        justify="left",
        least=max(_NAME, *causes) if causes else _NAME,
    )
    if by is Grouping.DEVICE:
        return [name, _left("class", [cell(row.detail or ABSENT) for row in rows], spare=4)]
    if by is not Grouping.PROCESS:
        return [name]
    return [
        Column(head="pid", cells=[str(pid) for row in rows for pid in row.pids]),
        name,
        _left("program", [cell(row.detail or ABSENT) for row in rows], spare=6),
        _left("user", [cell(row.user) for row in rows], spare=4),
    ]


def _left(head: str, cells: Sequence[Text], *, spare: int) -> Column:
    return Column(head=head, cells=cells, justify="left", least=LEAST_NAME, spare=spare)


def _places(row: HoldersRow) -> Text:
    return cell(device_name(row.devices[0]) if len(row.devices) == 1 else several(len(row.devices), "device"))


def _pids(row: HoldersRow) -> Text:
    listed = ", ".join(str(pid) for pid in row.pids[:MOST_PIDS])
    more = len(row.pids) - MOST_PIDS
    return cell(f"{listed} +{count(more)}" if more > 0 else listed)


def _number(row: HoldersRow, number: int) -> Text:
    """A count, where the device tells who holds it."""
    return Text(ABSENT, style="yellow") if isinstance(row.contexts, Missing) else Text(count(number))


def _held(row: HoldersRow) -> Text:
    if row.contexts == 0:
        return Text()  # nobody holds it, and that is known
    return _known(row.held_us, lambda us: f">= {_span(us)}" if row.is_at_least else _span(us))


def _span(us: int) -> str:
    """Whole seconds, from an hour on whole minutes, cut and not rounded: it has been held so long."""
    ms = us // 1000
    return duration_ms(ms // MINUTE_MS * MINUTE_MS) if ms >= HOUR_MS else duration_s(ms // 1000)


def _figure(figure: Figure, words: Callable[[int], str]) -> Text:
    return _known(figure.value, lambda value: f">= {words(value)}" if figure.left_out else words(value))


def _known(value: int | Missing, words: Callable[[int], str]) -> Text:
    return Text(ABSENT, style="yellow") if isinstance(value, Missing) else Text(words(value))


def _memory(mib: int) -> str:
    return memory_mib(mib) if mib else "0 MiB"


def _percent(percent: int) -> str:
    return f"{percent} %" if percent else "none seen"


def _bar(row: HoldersRow) -> ShareBar:
    """How much of the memory of its devices a row holds; empty where either is not known."""
    held, whole, share = row.memory.value, row.capacity_mib, Fraction(0)
    if not isinstance(held, Missing) and not isinstance(whole, Missing) and whole:
        share = Fraction(held, whole)
    return ShareBar(share, _BAR_WIDTH, "yellow" if row.cause else "cyan")


def _as_json(row: HoldersRow, by: Grouping) -> dict[str, Json]:
    named: dict[str, Json] = {"cause": row.cause} if row.cause else {by.value: row.label}
    if by is Grouping.PROCESS:
        named = {"cause": row.cause} if row.cause else {"service": row.label}
        named |= {"program": row.detail, "user": row.user}
    if by is Grouping.DEVICE:
        named |= {"class": row.detail, "unnamed": row.unnamed}
    held_ms = _ms(row.held_us)
    memory, busy = row.memory, row.busy
    return {
        **named,
        "pids": list(row.pids),
        "devices": list(row.devices),
        "contexts": as_json.number(row.contexts),
        "held_ms": as_json.number(held_ms),
        "at_least": row.is_at_least,
        "memory_mib": as_json.number(memory.value),
        "memory_left_out": memory.left_out,
        "busy_percent": as_json.number(busy.value),
        "busy_left_out": busy.left_out,
        **as_json.missing(contexts=row.contexts, held_ms=held_ms, memory_mib=memory.value, busy_percent=busy.value),
    }


def _ms(us: int | Missing) -> int | Missing:
    return us if isinstance(us, Missing) else us // 1000
