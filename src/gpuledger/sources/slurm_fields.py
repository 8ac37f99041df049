"""Splits the text of ``sacct -P`` into rows of fields, where nothing is escaped.

Job names, comments and command lines may hold line breaks and the delimiter itself; ``sacct`` prints them
as they are. What a row must look like elsewhere (a job id, a state, times) tells where its fields begin.
Where two readings of a row differ in a field that counts, neither is taken: it is broken, and said so.
Text can be made to look like a row, so a dump for accounting is best taken without columns of free text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

MOST_LINES = 2_000
"""Lines that one row may stretch over: a script given to ``sbatch --wrap`` stands in SubmitLine whole."""

MOST_SURPLUS = 400
"""Delimiters inside the fields of one row."""

MOST_STARTS = 50
"""Lines of those at hand that are tried as the first of a row."""

MOST_TRIES = 20_000
"""Such tries that came to nothing, in all: a file of noise must not take for ever."""

MOST_CHECKED = 4
"""Fields that tell a row which stands on one line; what the others hold is seen when they are read."""

_JOB = re.compile(r"[0-9]{1,10}(?:_(?:[0-9]{1,10}|\[[^\]\n]*\]))?(?:\+[0-9]{1,9})?(?:\.[A-Za-z0-9_+-]+)?")
_STATE = re.compile(r"[A-Z][A-Z_]*\+?(?: by [^\n]*)?")
_TIME = re.compile(
    r"(?:|[Uu]nknown|[Nn]one|N/A|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}\S*(?: [A-Z]{3,5})?|"
    r"[0-9]{1,11})"
)
_DURATION = re.compile(
    r"(?:|UNLIMITED|INVALID|Partition_Limit|Unknown|None|N/A|[0-9]+|(?:[0-9]+-)?[0-9]+(?::[0-9]+)+(?:\.[0-9]+)?)",
    re.IGNORECASE,
)
_TRES = re.compile(r"(?:[^=,\s]+=[^=,\s]*(?:,[^=,\s]+=[^=,\s]*)*)?")
_EXIT = re.compile(r"(?:[0-9]+:[0-9]+)?")
_NUMBER = re.compile(r"[0-9]*")
_WORD = re.compile(r"[^\n]*")

SHAPES = {
    "": re.compile(""),
    "jobid": _JOB, "jobidraw": _JOB, "state": _STATE,
    "start": _TIME, "end": _TIME, "submit": _TIME, "eligible": _TIME,
    "elapsed": _DURATION, "elapsedraw": _DURATION, "suspended": _DURATION, "timelimit": _DURATION,
    "cputime": _DURATION, "cputimeraw": _NUMBER, "totalcpu": _DURATION, "systemcpu": _DURATION, "usercpu": _DURATION,
    "alloctres": _TRES, "reqtres": _TRES, "exitcode": _EXIT, "derivedexitcode": _EXIT,
    "associd": _NUMBER, "dbindex": _NUMBER, "gid": _NUMBER, "uid": _NUMBER, "qosraw": _NUMBER, "priority": _NUMBER,
    "timelimitraw": _DURATION, "reservationid": _NUMBER, "restarts": _NUMBER,
}  # fmt: skip
"""What fields of these columns look like."""

_CLOSED = re.compile(
    r"account|user|group|partition|qos|qosreq|cluster|nodelist|nnodes|ncpus|ntasks|layout|flags|mcslabel|blockid|"
    r"alloc(?:cpus|gres|nodes)|req(?:cpus|gres|mem|nodes)|reqcpufreq\w*|(?:ave|max|min)\w+|tresusage\w*|"
    r"consumedenergy(?:raw)?|reserved|planned\w*|resvcpu(?:raw)?|wckeyid"
)
"""Columns of names and figures, which hold neither delimiter nor line break. All others may hold anything."""

Matcher = Callable[[str], object]


@dataclass(slots=True)
class Record:
    """One row.

    Args:
        line: its first line, 1-based.
        cells: one for each column; of free text only where it could be told apart.
        text: all of it, as it stands.
    """

    line: int
    cells: Sequence[str]
    text: str


@dataclass(frozen=True, slots=True)
class Broken:
    """Lines that are no row."""

    line: int
    message: str


def shape_of(column: str) -> Matcher | None:
    """What a field of that column must match, or None for free text."""
    name = column.lower()
    if shape := SHAPES.get(name):
        return shape.fullmatch
    return _WORD.fullmatch if _CLOSED.fullmatch(name) else None


def align(cells: Sequence[str], shapes: Sequence[Matcher | None], read: Sequence[int]) -> list[str] | None:
    """Fields of a row whose free text holds delimiters, or None where they cannot be told apart for sure.

    Args:
        cells: the row split at every delimiter; at least as many as there are columns.
        shapes: by column, as of :func:`shape_of`.
        read: the columns that count.
    """
    width, surplus = len(shapes), len(cells) - len(shapes)
    # where the cells of a column can begin, from the left: the column's own place, and up to `surplus` later
    begins: list[set[int]] = [{0}]
    for column, matches in enumerate(shapes):
        if matches is None:
            begins.append(set(range(min(begins[-1]) + 1, column + 2 + surplus)))
        else:
            begins.append({place + 1 for place in begins[-1] if matches(cells[place])})
        if not begins[-1]:
            return None
    if len(cells) not in begins[width]:
        return None
    # and from the right: of those places, the ones from which the rest can be laid out
    reached = {len(cells)}
    fields = [""] * width
    for column in range(width - 1, -1, -1):
        if shapes[column] is None:
            last = max(reached)
            good = {place for place in begins[column] if place < last}
            fields[column] = _only(cells, good, reached)
        else:
            good = {place for place in begins[column] if place + 1 in reached}
            told = {cells[place] for place in good}
            if len(told) > 1 and column in read:
                return None
            fields[column] = told.pop() if len(told) == 1 else ""
        if not good:
            return None
        reached = good
    return fields


def _only(cells: Sequence[str], good: set[int], reached: set[int]) -> str:
    """Free text where it has one place; nothing counts by it, so it may stay empty where it has more."""
    return "|".join(cells[min(good) : min(reached)]) if len(good) == len(reached) == 1 else ""


class Splitter:
    """Takes lines one by one and gives rows.

    Args:
        columns: their names.
        delimiter: between fields.
        read: the columns that count, by place; those first by which a row is known.
        quoted: whether fields stand in quotes, as a spreadsheet writes them; ``sacct`` itself has none.
    """

    def __init__(self, columns: Sequence[str], delimiter: str, read: Sequence[int], *, quoted: bool = False) -> None:
        self.columns = tuple(columns)
        self._delimiter = delimiter
        self._quoted = quoted or delimiter == ","
        self._read = tuple(read)
        self._shapes = tuple(shape_of(column) for column in columns)
        self._width = len(columns)
        self._checked = [(place, shape) for place in read[:MOST_CHECKED] if (shape := self._shapes[place])]
        free = [place for place, shape in enumerate(self._shapes) if shape is None]
        self._has_free = bool(free)
        self._before = free[0] if free else self._width
        self._after = self._width - 1 - free[-1] if free else self._width
        self._patience = MOST_TRIES
        self._previous: Record | None = None
        self._lines: list[tuple[int, str, int, bool]] = []
        """Lines at hand that are no row by themselves: number, text, cells, and whether one can begin there."""

    def feed(self, number: int, line: str) -> Iterator[Record | Broken]:
        """Take one line; gives what it completes."""
        cells = self._cells(line)
        is_row = len(cells) == self._width
        if is_row:
            for place, shape in self._checked:
                if not shape(cells[place]):
                    is_row = False
                    break
        if is_row:
            yield from self._settle()
            if self._previous:
                yield self._previous
            self._previous = Record(number, cells, line)
            return
        if not self._lines and not line.strip():
            if self._previous and not self._after:
                self._previous.text += "\n"
            return
        self._lines.append((number, line, len(cells), self._can_begin(cells)))
        if self._can_end(cells) and (found := self._joined()):
            skipped, record = found
            del self._lines[skipped:]
            yield from self._settle()
            if self._previous:
                yield self._previous
            self._previous = record
        elif len(self._lines) >= (MOST_LINES if self._has_free else 1):
            yield from self._settle()

    def end(self) -> Iterator[Record | Broken]:
        """Gives what is left when there are no more lines."""
        yield from self._settle()
        if self._previous:
            yield self._previous
            self._previous = None

    def _cells(self, line: str) -> list[str]:
        """The fields of a line. A sheet that was saved with commas has quotes where a field holds one, as TRES do."""
        if not self._quoted or '"' not in line:
            return line.split(self._delimiter)
        return next(csv.reader([line], delimiter=self._delimiter), [""])

    def _can_begin(self, cells: Sequence[str]) -> bool:
        """A row breaks inside free text only, so all before that stands on its first line."""
        sure = self._shapes[: self._before]
        return len(cells) > len(sure) - (not self._has_free) and all(
            shape is None or shape(cell) for shape, cell in zip(sure, cells, strict=False)
        )

    def _can_end(self, cells: Sequence[str]) -> bool:
        sure = self._shapes[self._width - self._after :]
        return len(cells) > len(sure) - (not self._has_free) and all(
            shape is None or shape(cell) for shape, cell in zip(reversed(sure), reversed(cells), strict=False)
        )

    def _joined(self) -> tuple[int, Record] | None:
        """A row made of the last lines at hand, and how many before it are none of it.

        The fewest lines that are one: what has a job, a state and times of its own is a row of its own.
        """
        count, tried = 1, 0
        for place in range(len(self._lines) - 1, -1, -1):
            number, _, cells, can_begin = self._lines[place]
            count += cells - 1
            if count > self._width + MOST_SURPLUS or tried >= MOST_STARTS or not self._patience:
                return None
            if not can_begin or count < self._width:
                continue
            text = "\n".join(line for _, line, _, _ in self._lines[place:])
            if fields := align(text.split(self._delimiter), self._shapes, self._read):
                return place, Record(number, fields, text)
            tried += 1
            self._patience -= 1
        return None

    def _settle(self) -> Iterator[Broken]:
        """What to make of lines that are no row: the rest of the last field before them, or broken."""
        lines, self._lines = self._lines, []
        if not lines:
            return
        # a line that can begin a row may be one whose rest is taken for another: it is never swallowed
        goes_on = not any(can_begin for _, _, _, can_begin in lines)
        if self._previous and not self._after and self._before and goes_on:
            self._previous.text += "".join(f"\n{line}" for _, line, _, _ in lines)
            return
        if self._previous and goes_on and (longer := self._longer(self._previous, lines)):
            self._previous = longer
            return
        for place, (number, line, count, can_begin) in enumerate(lines):
            if place == 0 or can_begin:
                yield Broken(number, self._complaint(line, count))

    def _longer(self, previous: Record, lines: Sequence[tuple[int, str, int, bool]]) -> Record | None:
        """The row before with these lines, where it looked whole because its text breaks between two delimiters."""
        text = "\n".join([previous.text, *(line for _, line, _, _ in lines)])
        cells = text.split(self._delimiter)
        if not self._width <= len(cells) <= self._width + MOST_SURPLUS:
            return None
        fields = align(cells, self._shapes, self._read)
        return Record(previous.line, fields, text) if fields else None

    def _complaint(self, line: str, count: int) -> str:
        if count != self._width:
            message = f"{self._width} fields were expected, and there are {count}"
            if self._delimiter == ",":
                message += "; a comma stands inside TRES too, so take the dump with -P"
            if not self._has_free:
                return message
            if count > self._width:
                return f"{message}; which of them belong to one text cannot be told for sure"
            return f"{message}; if a text in it goes on in the next line, that line is no row of its own"
        cells = self._cells(line)
        for place, shape in self._checked:
            if not shape(cells[place]):
                return f"{cells[place][:40]!r} is no {self.columns[place]}"
        return "its fields cannot be told apart"
