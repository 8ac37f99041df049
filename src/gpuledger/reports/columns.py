"""Tables that never cut a figure: spare columns are left out, then names are folded, until all of it fits.

Rich crops the last columns of a table whose columns do not fit. So the widths are settled here, when the
room is known: on a terminal its width, on a pipe 80 columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.text import Text

from gpuledger.reports.cells import ShareBar, table

GAP = 2
"""Columns between two columns."""

LEAST_NAME = 12
"""Columns below which a name is folded only where nothing else is left to give."""

Cell = str | Text | ShareBar


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Args:
        head: heading.
        cells: one for each line.
        total: the cell of the last line.
        justify: side; what stands on the right is a figure, and is never folded.
        least: columns that a name keeps as long as a spare column is there; 0: all it needs.
        spare: how easily the column is left out where the room is narrow; 0: never.
        style: of its cells.
    """

    head: str
    cells: Sequence[Cell]
    total: str = ""
    justify: Literal["left", "right"] = "right"
    least: int = 0
    spare: int = 0
    style: str = ""

    @property
    def whole(self) -> int:
        """Columns that its widest cell needs."""
        return max(_width(each) for each in (self.head, self.total, *self.cells))

    @property
    def wanted(self) -> int:
        """Columns below which a spare column is left out for it."""
        return min(self.whole, self.least) if self.least else self.whole

    @property
    def floor(self) -> int:
        """Columns that it keeps whatever happens: a figure all, a name one."""
        return self.whole if self.justify == "right" else 1


class Fitted:
    """A table that is laid out for the room it is given.

    Args:
        columns: from left to right.
        styles: of the lines; empty for plain ones.
        totals: whether the last line holds totals.
    """

    def __init__(self, columns: Sequence[Column], *, styles: Sequence[str] = (), totals: bool = False) -> None:
        self.columns = list(columns)
        self.styles = styles
        self.totals = totals

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        grid = table(totals=self.totals)
        kept = fitted(self.columns, options.max_width)
        for column, width in kept:
            grid.add_column(
                column.head, footer=column.total, justify=column.justify, overflow="fold", width=width,
                no_wrap=width >= column.whole and not _has_lines(column), style=column.style,
            )  # fmt: skip
        lines = len(self.columns[0].cells)
        for place in range(lines):
            style = self.styles[place] if self.styles else ""
            grid.add_row(*(column.cells[place] for column, _ in kept), style=style)
        yield grid

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        kept = fitted(self.columns, options.max_width)
        width = min(sum(width for _, width in kept) + GAP * (len(kept) - 1), options.max_width)
        return Measurement(width, width)


def fitted(columns: Sequence[Column], room: int) -> list[tuple[Column, int]]:
    """The columns that fit into so many columns of text, with their widths.

    The sparest are left out first, as long as names would else be folded below what they want. Then names
    give way, the widest first, at last one column wide. Figures never do.
    """
    kept = list(columns)
    while _needed([column.wanted for column in kept]) > room and any(column.spare for column in kept):
        kept.remove(max(kept, key=lambda column: column.spare))
    widths = [column.whole for column in kept]
    for floors in ([column.wanted for column in kept], [column.floor for column in kept]):
        _narrow(widths, floors, _needed(widths) - room)
    return list(zip(kept, widths, strict=True))


def _narrow(widths: list[int], floors: list[int], over: int) -> None:
    for _ in range(over):
        movable = [place for place, width in enumerate(widths) if width > floors[place]]
        if not movable:
            return
        widths[max(movable, key=lambda place: widths[place])] -= 1


def _needed(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _has_lines(column: Column) -> bool:
    return any("\n" in str(each) for each in column.cells)


def _width(each: Cell) -> int:
    if isinstance(each, ShareBar):
        return each.width
    return max((cell_len(line) for line in str(each).split("\n")), default=0)
