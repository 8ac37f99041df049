"""``top`` on a screen: one line a row, cut to the room there is. Values in, a renderable out.

A terminal of any size shows the head, as many rows as fit, the size of the unnamed, and the keys. Rows that
do not fit are counted, and never the unnamed alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from gpuledger.model.durations import count, several
from gpuledger.model.holders import HoldersReport, HoldersRow
from gpuledger.reports import top_report
from gpuledger.reports.cells import UNKNOWN, Hanging, cell, heading, indented, printable
from gpuledger.reports.columns import Cell, Column, Fitted, fitted

KEYS = "g group  m memory  t held  b busy  n name  r flip  space pause  ? help  q quit"
"""What can be pressed."""

HELP = (
    ("g", "group by service, user, team, process, device, in turn"),
    ("m t b n", "sort by memory, time held, busy, name; r turns the order around"),
    ("space", "stop looking; what was seen can still be grouped and sorted"),
    ("held for", "since the driver's start of the longest; >= where only seen since then"),
    ("memory", "the driver's own figure now; >= where some of it is not known"),
    ("busy", "percent of one device, sampled since the last look; never billed"),
    ("-", "not known; the reason stands under the table"),
)
"""What ``?`` shows."""

_LEAST_ROWS = 4
"""Rows that notes leave room for."""
_TABLE_HEAD = 2
_ROOMY = 14
"""Lines from which there is room for how it is sorted, and for lines between the parts."""
_BLANK = [Segment("")]


class Screenful:
    """One look, arranged, on a screen.

    Args:
        report: what to show; None while the driver has not answered.
        state: how the view goes on, such as ``every 2 s`` or ``paused``.
        trouble: why there is no look now; empty where there is one.
        is_helping: whether the keys are explained.
    """

    def __init__(
        self, report: HoldersReport | None, *, state: str, trouble: str = "", is_helping: bool = False
    ) -> None:
        self.report = report
        self.state = state
        self.trouble = trouble
        self.is_helping = is_helping

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        options = options.update(height=None)
        height = max(1, console.size.height)
        keys = _rendered(console, options, [_one_line(Text(KEYS, style="dim"))])
        told = [Hanging(Text(f"{word:<9} {meaning}"), 10) for word, meaning in HELP] if self.is_helping else []
        bottom = [*_rendered(console, options, told)[: height - 1], *keys]
        body = self._body(console, options, height - len(bottom))
        blank = [_BLANK] * (height - len(bottom) - len(body))
        for place, line in enumerate([*body, *blank, *bottom]):
            if place:
                yield Segment.line()
            yield from line

    def _body(self, console: Console, options: ConsoleOptions, height: int) -> list[list[Segment]]:
        report = self.report
        if report is None or self.trouble:
            said = Text(f"{UNKNOWN}: {printable(self.trouble)}", style="bold yellow")
            return _rendered(console, options, [heading("top", self.state), "", Hanging(said)])[:height]
        is_roomy = height >= _ROOMY
        status = Text(f"{self.state}; {top_report.status(report)}", style="dim")
        head = _rendered(
            console, options, [_one_line(top_report.title(report)), *([_one_line(status)] if is_roomy else [])]
        )
        size, *causes = top_report.not_named(report)
        foot = _rendered(console, options, [size])
        if is_roomy:
            head, foot = [*head, _BLANK], [_BLANK, *foot]
        rows = len(top_report.lines(report))
        room = max(0, height - len(head) - len(foot))
        told = [*top_report.absences(report), *causes, *_problems(report)]
        notes = self._fitting(console, options, told, room - _TABLE_HEAD - min(_LEAST_ROWS, rows))
        room -= len(notes)
        grid = (
            _table(report, options.max_width, room, ascii_only=options.ascii_only)
            if rows
            else top_report.nothing(report)
        )
        return [*head, *_rendered(console, options, [grid])[:room], *notes, *foot][:height]

    def _fitting(
        self, console: Console, options: ConsoleOptions, notes: Sequence[RenderableType], room: int
    ) -> list[list[Segment]]:
        """The first notes that fit, each whole; what does not fit is counted if a line is left for that."""
        kept: list[list[Segment]] = []
        for place, note in enumerate(notes):
            lines = _rendered(console, options, [note])
            is_last = place == len(notes) - 1
            if len(kept) + len(lines) + (0 if is_last else 1) > room:
                more = cell(f"and {several(len(notes) - place, 'more note')}: gpuledger top --once", "dim")
                return [*kept, *_rendered(console, options, [indented(more)])[: max(0, room - len(kept))]]
            kept += lines
        return kept


def cut(
    named: Sequence[HoldersRow], unnamed: Sequence[HoldersRow], room: int
) -> tuple[list[HoldersRow], int, list[HoldersRow]]:
    """What fits into so many lines: the first of the named, how many are left out, the first of the unnamed.

    The line that counts those left out takes a line too. A third of the room is the unnamed's, if they need it.
    """
    if len(named) + len(unnamed) <= room:
        return list(named), 0, list(unnamed)
    lines = max(0, room - 1)
    kept = min(len(unnamed), max(lines // 3, lines - len(named), 1 if lines > 1 else 0))
    shown = min(len(named), lines - kept)
    return list(named[:shown]), len(named) + len(unnamed) - shown - kept, list(unnamed[:kept])


def shortened(text: str, width: int, *, mark: str = "…") -> str:
    """A name cut in its middle: how it begins says what kind it is, how it ends which one."""
    if cell_len(text) <= width:
        return text
    keep = max(0, width - len(mark))
    tail = keep * 2 // 3
    short = f"{text[: keep - tail]}{mark}{text[len(text) - tail :]}"
    if cell_len(short) <= width:
        return short
    wide = Text(text)  # characters that take two columns: cut at the end, by columns
    wide.truncate(width)
    return wide.plain


def _table(report: HoldersReport, width: int, room: int, *, ascii_only: bool) -> RenderableType:
    named, left_out, unnamed = cut(report.rows, report.unnamed, room - _TABLE_HEAD)
    rows = [*named, *unnamed]
    if not rows:
        return cell(f"{count(left_out)} rows, and no room for them", "dim")
    mark = "..." if ascii_only else "…"
    shown = [
        _narrowed(column, each, mark) for column, each in fitted(top_report.columns(report, rows, width=width), width)
    ]
    styles = top_report.styles(rows)
    if left_out:
        label = next(place for place, column in enumerate(shown) if column.justify == "left")
        more = f"and {count(left_out)} more"
        shown = [_with_line(each, len(named), more if place == label else "") for place, each in enumerate(shown)]
        styles.insert(len(named), "dim")
    return Fitted(shown, styles=styles)


def _narrowed(column: Column, width: int, mark: str) -> Column:
    """A column that fits into its width with one line a cell."""
    if column.justify == "right":
        return replace(column, spare=0)
    cells: list[Cell] = [
        Text(shortened(each.plain, width, mark=mark), style=each.style) if isinstance(each, Text) else each
        for each in column.cells
    ]
    return replace(column, head=shortened(column.head, width, mark=mark), cells=cells, spare=0, least=0)


def _with_line(column: Column, at: int, words: str) -> Column:
    """The column with one more line."""
    return replace(column, cells=[*column.cells[:at], words, *column.cells[at:]])


def _problems(report: HoldersReport) -> list[RenderableType]:
    return [indented(cell(f"note: {problem}", "yellow")) for problem in report.look.problems]


def _one_line(text: Text) -> Text:
    text.overflow, text.no_wrap = "ellipsis", True
    return text


def _rendered(console: Console, options: ConsoleOptions, parts: Sequence[RenderableType]) -> list[list[Segment]]:
    return [line for part in parts for line in console.render_lines(part, options, pad=False)]
