"""A trace: any CSV file of who held devices from when to when, read by a map that declares its columns.

In: the file's text and a ``TraceMap``. Out: a ``History``, all of it past. Each row is one run: ``pending``
where the file tells when it was asked for, ``running`` on its placement, and ``stopped`` or ``failed``. Spans are
half-open. Rows that cannot be so are problems with their line, and the others are kept.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace

from gpuledger.errors import BadInput
from gpuledger.model.durations import count
from gpuledger.model.lifecycle import History, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.sources.trace_map import TraceMap
from gpuledger.sources.trace_rows import LeftOut, RowReader, Run
from gpuledger.sources.trace_times import COUNTED, PLAUSIBLE_US, ZoneNeeded

SOURCE = "trace"
"""Who says so, where nobody gives the trace a name."""

MOST_PROBLEMS = 20
"""Problems of one code that are told by line; the others are counted."""

COUNTED_ONLY = frozenset({"not-scheduled", "no-devices", "repeated-row", "no-class", "no-machine"})
"""Codes of rows that are as their trace has them, often thousands: told once, with their number."""

OF_AMOUNTS = frozenset({"start", "end", "duration", "devices", "share", "instances"})
"""Words of which what is left is still one when the last characters of a file are cut off."""

NOTHING_OPEN = Missing("nothing is open")
NO_END_DECLARED = Missing("the map does not declare when the trace ends")


def parse(text: str, *, path: str, trace_map: TraceMap, source: str = SOURCE) -> History:
    """The history that a trace tells.

    Args:
        text: the whole file.
        path: the file as the user named it; problems carry it with the line.
        trace_map: what its columns say.
        source: who says so, in every transition.

    Raises:
        BadInput: ``bad-trace`` when it has no header, or not the columns that the map names; ``zone-needed``
            when its times are local and no zone is declared. Nothing of the file is taken then.
    """
    told = _Told(path)
    physical = io.StringIO(text.removeprefix("\ufeff"), newline="").readlines()
    header, first, trace_map = _header(physical, trace_map, path, told)
    runs: list[Run] = []
    seen: set[tuple[str, ...]] = set()
    line = 1
    try:
        reader = RowReader(trace_map, header)
        for line, cells in _rows(physical, first, trace_map.delimiter, len(header), told):
            if cells in seen:
                told.add(Problem(code="repeated-row", message="identical to an earlier row, counted once"), line)
                continue
            seen.add(cells)
            try:
                runs.append(reader.read(cells, line))
            except LeftOut as left_out:
                told.add(replace(left_out.problem, message=f"{left_out.problem.message}; left out"), line)
        last = next((word for word, names in trace_map.columns.items() if header[-1] in names), "")
        if runs and runs[-1].line == len(physical) and last in OF_AMOUNTS and not text.endswith(("\n", "\r")):
            message = f"no line break ends the file, so its last {last} may be cut; it counts as it is"
            told.add(Problem(code="last-line-open", message=message), runs[-1].line)
    except ZoneNeeded as error:
        hint = "say where it was written: --zone UTC, --zone Europe/Berlin, or `zone` in the map"
        raise BadInput("zone-needed", str(error), path=path, line=line, hint=hint) from None
    return _history(runs, reader, trace_map, source, told)


def _header(physical: list[str], trace_map: TraceMap, path: str, told: _Told) -> tuple[tuple[str, ...], int, TraceMap]:
    """The names of the columns, how many lines they took, and the map without the optional ones that are not there."""
    lines = csv.reader(physical, delimiter=trace_map.delimiter, strict=True)
    if next((line.strip() for line in physical if line.strip()), "").startswith(("{", "[")):
        hint = f"{_HINT}; `jq -r` makes one of JSON, a line for each run with its machine and its devices"
        raise BadInput("bad-trace", "JSON, and no CSV", path=path, line=1, hint=hint)
    try:
        written = tuple(cell.strip() for cell in next((cells for cells in lines if any(cells)), []))
    except csv.Error as error:
        raise BadInput("bad-trace", f"not CSV: {error}", path=path, line=lines.line_num, hint=_HINT) from None
    if not written:
        raise BadInput("bad-trace", "the file is empty", path=path, hint=_HINT)
    first = 0 if trace_map.header and written != trace_map.header else lines.line_num
    header = trace_map.header or written
    lacking = sorted(trace_map.optional - {*header})
    for name in lacking:
        told.add(Problem(code="column-missing", message=f"no column {name!r}, so nothing tells what it would"), 0)
    trace_map = trace_map.without(lacking)
    named = [name for names in trace_map.columns.values() for name in names]
    for name in (*named, *(column for _, column in trace_map.labels)):
        if header.count(name) != 1:
            message = f"the column {name!r} that the map names is {'twice' if name in header else 'not'} there"
            hint = f"columns here: {', '.join(header)[:200]}"
            raise BadInput("bad-trace", message, path=path, line=lines.line_num, hint=hint)
    return header, first, trace_map


_HINT = "a trace is a CSV file with a header line; `header` in the map names the columns where it has none"


def _rows(
    physical: list[str], first: int, delimiter: str, width: int, told: _Told
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Every row that has as many cells as the header, with its line.

    A quote that is never closed makes one row of all that follows, so behind such a row reading begins anew
    on its second line.
    """
    while first < len(physical):
        lines = csv.reader((physical[n] for n in range(first, len(physical))), delimiter=delimiter, strict=True)
        base, first = first, len(physical)
        while True:
            at = base + lines.line_num
            try:
                cells = next(lines)
                message = f"{width} columns were expected, and there are {len(cells)}"
            except StopIteration:
                break
            except csv.Error as error:
                cells, message = [""], f"not CSV: {error}"
            while len(cells) > width and not cells[-1].strip():
                cells.pop()
            if len(cells) == width:
                yield at + 1, tuple(cells)
            elif any(cells) or message.startswith("not"):
                told.add(Problem(code="broken-line", message=f"{message}; left out"), at + 1)
                if base + lines.line_num > at + 1:
                    first = at + 1
                    break


def _history(runs: list[Run], reader: RowReader, trace_map: TraceMap, source: str, told: _Told) -> History:
    by_workload: dict[str, list[Run]] = {}
    for run in runs:
        by_workload.setdefault(run.workload, []).append(run)
    transitions: list[Transition] = []
    kept: list[Run] = []
    for several in by_workload.values():
        before: Run | None = None
        for run in sorted(several, key=lambda each: (each.since_us, each.line)):
            if before is not None and (before.end_us is None or not before.since_us < run.since_us >= before.end_us):
                message = f"{run.workload!r} runs already, by line {before.line}; left out, give `id` more columns"
                told.add(Problem(code="overlapping-rows", message=message), run.line)
                continue
            transitions.extend(_transitions(run, before, source))
            before = run
            kept.append(run)
    for run in sorted(kept, key=lambda each: each.line):
        for problem in run.told:
            told.add(problem, run.line)
    times = trace_map.times
    if transitions:
        earliest_us = min(each.at_us for each in transitions)
        if times.unit in COUNTED and times.origin_us is None and earliest_us < PLAUSIBLE_US:
            message = (
                "its times begin before 2000: it counts from its own start, which is filed as 1970; declare `origin`"
            )
            told.add(Problem(code="no-origin", message=message), 0)
    as_of_us: int | Missing = NOTHING_OPEN
    if any(run.end_us is None for run in kept):
        as_of_us = NO_END_DECLARED if reader.censored_us is None else reader.censored_us
    return History(
        source=source,
        # the sort is stable: what one workload did at one moment stays in its order
        transitions=tuple(sorted(transitions, key=lambda each: each.at_us)),
        as_of_us=as_of_us,
        problems=told.taken(),
        rows_read=len(kept),
    )


def _transitions(run: Run, before: Run | None, source: str) -> Iterator[Transition]:
    """What a run was, in order; its waiting only as far as its workload did nothing else meanwhile."""

    def became(state: State, at_us: int, named: str) -> Transition:
        user, team, project = run.owner
        return Transition(
            workload=run.workload,
            event_id=f"{run.workload}@{named}",
            state=state,
            at_us=at_us,
            source=source,
            user=user,
            team=team,
            project=project,
            requested_class=run.requested_class,
            placement=run.placement if state is State.RUNNING else None,
            labels=run.labels,
        )

    free = before is None or (
        before.end_us is not None
        and run.pending_us is not None
        and run.pending_us >= before.end_us
        and run.pending_us > (before.pending_us or 0)
    )
    if run.pending_us is not None and free:
        yield became(State.PENDING, run.pending_us, f"{run.pending_us}/pending")
    if run.start_us is not None:
        yield became(State.RUNNING, run.start_us, f"{run.start_us}/running")
    if run.end_us is not None:
        yield became(State.FAILED if run.failed else State.STOPPED, run.end_us, f"{run.since_us}/ended")


class _Told:
    """Collects problems: the first of each code by line, the rest by their number."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._first: dict[str, list[Problem]] = {}
        self._number: dict[str, int] = {}

    def add(self, problem: Problem, line: int) -> None:
        """Note a problem of a line; 0 where the whole file is meant."""
        first = self._first.setdefault(problem.code, [])
        self._number[problem.code] = self._number.get(problem.code, 0) + 1
        if len(first) < (1 if problem.code in COUNTED_ONLY else MOST_PROBLEMS):
            first.append(replace(problem, where=f"{self._path}:{line}" if line else self._path))

    def taken(self) -> tuple[Problem, ...]:
        """All of them, in the order in which their codes first came."""
        found: list[Problem] = []
        for code, first in self._first.items():
            number = self._number[code]
            if code in COUNTED_ONLY and number > 1:
                found.append(replace(first[0], message=f"{count(number)} rows, the first here: {first[0].message}"))
                continue
            found.extend(first)
            if number > len(first):
                message = f"{count(number - len(first))} more rows like these"
                found.append(Problem(code=code, message=message, where=self._path))
        return tuple(found)
