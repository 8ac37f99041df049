"""The sections that stand under every total: watched, not seen, still running, never accounted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from rich.console import RenderableType
from rich.text import Text

from gpuledger.model.durations import count, duration_ms, duration_s, memory_mib, percent, several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.reasons import IDLE_MEANING
from gpuledger.model.usage import NeverAccounted, SeenOnce, UnknownSize, UnknownSpan, UnsettledRow, Watched
from gpuledger.reports.cells import UNKNOWN, cell, device_name, heading, indented, known, reasons
from gpuledger.reports.columns import LEAST_NAME, Column, Fitted

MOST_SPANS = 8
"""Spans listed one by one; more are counted, and JSON has them all."""


def watched_line(watched: Watched) -> Text:
    """``Watched 21 h 26 min of 24 h device time (89.3 %)``, and how much of it is proven idle, saying why."""
    if not watched.of:
        return Text("Watched: no device is known for this time", style="yellow")
    share = percent(Fraction(watched.seconds, watched.of))
    whole = watched.seconds == watched.of
    line = Text(f"Watched {duration_s(watched.seconds)} of {duration_s(watched.of)} device time ({share})")
    line.stylize("" if whole else "yellow")
    if watched.idle:
        line.append(f"; {duration_s(watched.idle)} of it proven idle: {IDLE_MEANING}", style="not yellow")
    return line


def not_seen(sizes: Sequence[UnknownSize], watched: Watched, spans: Sequence[UnknownSpan] = ()) -> list[RenderableType]:
    """UNKNOWN time by reason, with its size, what it means, and the command that helps.

    Args:
        sizes: by reason.
        watched: how much was.
        spans: where it lies, to be listed too; ``blind`` lists them, ``usage`` leaves them out.
    """
    if not sizes:
        return [heading("Not seen", "nothing: the whole time was watched")] if watched.of else []
    seconds = sum(size.seconds for size in sizes)
    lines: list[RenderableType] = [
        heading(
            "Not seen",
            f"{duration_s(seconds)} of device time is {UNKNOWN}; it is time, not amount: nothing is added for it",
        )
    ]
    for size in sizes:
        same = [span for span in spans if span.reason == size.reason]
        line = Text(f"{UNKNOWN} {size.reason}  ", style="yellow")
        line.append(f"{duration_s(size.seconds)}", style="bold not yellow")
        places = f", {several(size.spans, 'span')} on {several(size.devices, 'device')}"
        line.append(places if size.spans > 1 else "", style="not yellow")
        lines += [
            indented(line),
            indented(indented(Text(size.meaning))),
            *(indented(indented(_where(span))) for span in same[:MOST_SPANS]),
        ]
        if len(same) > MOST_SPANS:
            lines.append(indented(indented(Text(f"and {count(len(same) - MOST_SPANS)} more", style="dim"))))
        lines.append(indented(indented(Text.assemble("what helps: ", (size.command, "bold")))))
    return lines


def still_running(rows: Sequence[UnsettledRow], quantity: int | Missing, *, inside: str) -> list[RenderableType]:
    """Open contexts: in the rows already, listed so that they are seen."""
    if not rows:
        return []
    grid = Fitted(
        [
            Column(head="service", cells=[cell(row.service) for row in rows], justify="left", least=LEAST_NAME),
            Column(head="pid", cells=[str(row.pid) for row in rows]),
            _places([(row.host, row.device) for row in rows]),
            Column(head="since", cells=[known(row.since_us, iso) for row in rows], justify="left", spare=2),
            Column(head="so far", cells=[known(row.quantity, duration_ms) for row in rows]),
        ]
    )
    size = known(quantity, duration_ms).plain
    missing = reasons(*(value for row in rows for value in (row.since_us, row.quantity)))
    return [heading("Still running", f"{size} not settled by the driver, {inside}"), indented(grid), *missing]


def outside_accounting(rows: Sequence[NeverAccounted]) -> list[RenderableType]:
    """Living processes that the driver's accounting does not hold, by name."""
    if not rows:
        return []
    grid = Fitted(
        [
            Column(head="service", cells=[cell(row.service) for row in rows], justify="left", least=LEAST_NAME),
            Column(head="pid", cells=[str(row.pid) for row in rows]),
            _places([(row.host, row.device) for row in rows]),
            Column(head="up for", cells=[known(row.uptime_ms, duration_ms) for row in rows]),
            Column(head="memory", cells=[known(row.memory_mib, memory_mib) for row in rows]),
        ]
    )
    title = heading("Never accounted", "opened the device before accounting was on: the driver will never settle them")
    helps = Text.assemble("metered as observed, from first sight; what helps: ", ("restart the process", "bold"))
    missing = reasons(*(value for row in rows for value in (row.uptime_ms, row.memory_mib)))
    return [title, indented(grid), *missing, indented(helps)]


def seen_once(lines: Sequence[SeenOnce]) -> list[RenderableType]:
    """Contexts without a length: named, and their time told as what it is."""
    if not lines:
        return []
    grid = Fitted(
        [
            Column(head="service", cells=[cell(line.service) for line in lines], justify="left", least=LEAST_NAME),
            Column(head="contexts", cells=[count(line.contexts) for line in lines]),
        ]
    )
    contexts = several(sum(line.contexts for line in lines), "context")
    return [heading("Seen once", f"{contexts} alive at one look and gone at the next: time {UNKNOWN}"), indented(grid)]


def spaced(sections: Iterable[Sequence[RenderableType]]) -> list[RenderableType]:
    """Sections under each other, a blank line between them; empty ones leave no trace."""
    parts: list[RenderableType] = []
    for section in sections:
        if section:
            parts += ["", *section] if parts else section
    return parts


def _places(places: Sequence[tuple[str, str]]) -> Column:
    cells = [cell(f"{host} {device_name(device)}") for host, device in places]
    return Column(head="on", cells=cells, justify="left", least=LEAST_NAME, spare=1)


def _where(span: UnknownSpan) -> Text:
    # The size comes first, so that no fold comes between a number and its unit.
    line = Text(f"{duration_s(span.seconds)}  ")
    where = f"{span.host} {device_name(span.device)}".strip()
    line.append_text(cell(f"{where}  {iso(span.since_us)} to {iso(span.until_us)}", "dim"))
    if span.detail:
        line.append_text(cell(f": {span.detail}"))
    return line
