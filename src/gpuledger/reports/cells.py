"""Cells and lines of tables: text from evidence made safe for a terminal, shares drawn as bars.

Command lines and names come from other people. They are never taken for Rich markup, and control
characters (which could clear the screen or hide a line) are shown, not sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from gpuledger.model.missing import Missing
from gpuledger.model.rounding import nearest

_UUID = re.compile(r"(?:GPU|MIG)-[0-9a-fA-F]{8}(?=-)")

UNKNOWN = "UNKNOWN"
"""How absence is shown: never a zero, never a blank that reads as one."""


def printable(text: str) -> str:
    """Text with every control character, and what cannot be encoded, shown as an escape."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode("ascii") for char in text
    )


def cell(text: str, style: str = "") -> Text:
    """One cell of plain text; a long word is folded, never cut."""
    return Text(printable(text), style=style, overflow="fold")


def known(value: int | Missing, words: Callable[[int], str]) -> Text:
    """A value in words, or the word for absence; its reason stands in JSON and under the table."""
    return Text(UNKNOWN, style="yellow") if isinstance(value, Missing) else Text(words(value))


def reasons(*values: int | str | Missing) -> list[RenderableType]:
    """Why values of a table read UNKNOWN: each reason once."""
    said = dict.fromkeys(value.reason for value in values if isinstance(value, Missing))
    return [indented(cell(f"{UNKNOWN}: {reason}", "yellow")) for reason in said]


def device_name(device: str) -> str:
    """A device's UUID short enough for a table: ``GPU-5a3c1f2e``. JSON and CSV keep it whole."""
    found = _UUID.match(device)
    return found[0] if found else device


def table(*, totals: bool = False) -> Table:
    """An empty table in the one style that every view uses; ``totals`` keeps a last line apart from the rows."""
    return Table(
        box=box.SIMPLE,
        show_edge=False,
        pad_edge=False,
        show_footer=totals,
        header_style="bold",
        footer_style="bold",
        padding=(0, 1, 0, 0),
    )


def heading(text: str, size: str = "") -> Text:
    """The heading of a section, with its size beside it."""
    line = Text(text, style="bold")
    if size:
        line.append(f"  {size}", style="not bold")
    return line


def indented(renderable: RenderableType) -> RenderableType:
    """A paragraph that stands two columns in; lines that it is folded into stand further in than its first."""
    grid = Table.grid(padding=0)
    grid.add_column(width=2)
    grid.add_column(overflow="fold")
    grid.add_row("", Hanging(renderable) if isinstance(renderable, Text) else renderable)
    return grid


def stacked(*parts: RenderableType) -> Group:
    """Parts under each other; lines that a sentence is folded into stand further in than its first."""
    return Group(*(Hanging(part) if isinstance(part, Text) else part for part in parts))


class Hanging:
    """A line of text; where it has to be folded, the lines after the first stand further in.

    Args:
        text: one line.
        by: columns further in; half of the room at most.
        starts_at: columns of the first line that stand where the others are indented, and so need no margin.
    """

    def __init__(self, text: Text, by: int = 2, *, starts_at: int = 0) -> None:
        self.text = text
        self.by = by
        self.starts_at = starts_at

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        if self.text.cell_len <= options.max_width:
            yield self.text
            return
        by = min(self.by, options.max_width // 2)
        head = min(self.starts_at, by)
        lines = self.text[head:].wrap(console, options.max_width - by, overflow="fold")
        for place, line in enumerate(lines):
            line.rstrip()
            yield (Text(" " * by) if place else self.text[:head]).append_text(line)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self.text)


class ShareBar:
    """A part of one as a bar of fixed width; what is some always shows.

    Args:
        share: 0 to 1; outside of it the bar is empty or full.
        width: columns.
        style: colour.
    """

    def __init__(self, share: Fraction, width: int, style: str = "cyan") -> None:
        self.share = min(max(share, Fraction(0)), Fraction(1))
        self.width = width
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        style = console.get_style(self.style)
        if options.ascii_only:
            filled = nearest(self.share * self.width)
            text = "#" * max(filled, 1 if self.share else 0)
        else:
            eighths = max(nearest(self.share * self.width * 8), 1 if self.share else 0)
            text = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
        yield Segment(text.ljust(self.width), style)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(self.width, self.width)
