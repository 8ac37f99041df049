"""The text of ``sacct -P`` (or ``-p``): a header or a list of columns, then a row for each allocation and step.

Text in, rows out; pure. Any order of columns, any delimiter, headers repeated where dumps were appended to
each other. Rows that cannot be understood become problems with their line, and the others are kept.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from hashlib import blake2b

from gpuledger.errors import BadInput
from gpuledger.model.problem import Problem
from gpuledger.sources.slurm_fields import Broken, Record, Splitter
from gpuledger.sources.slurm_layouts import known_layout
from gpuledger.sources.slurm_rows import HINT, NOT_TOLD, Findings, SlurmRow, SlurmRows
from gpuledger.sources.slurm_runs import whole_state
from gpuledger.sources.slurm_times import Times, seconds
from gpuledger.sources.slurm_tres import with_gres

MOST_LINES_BEFORE_HEADER = 50
"""What a shell or ``module load`` says before ``sacct`` does."""

HOPELESS = 200
"""As many rows that are none, and none that is: these are not the columns."""

_HEADER = re.compile(
    r"[A-Za-z]+(?P<delimiter>[^A-Za-z0-9_\n]{1,8}|\t)(?:[A-Za-z]+(?P=delimiter))*[A-Za-z]*(?P=delimiter)?"
)
_QUOTED_HEADER = re.compile(r'"[A-Za-z]*"([,;|\t])"[A-Za-z]*".*')
"""As spreadsheets and R write it."""

_COMPLAINT = re.compile(r"(?:sacct|slurm_\w+)(?::| error:) .*error.*|slurm_\w+ error: .*", re.IGNORECASE)
_NO_TIME = re.compile(r" is no (?:Start|End|Submit|Eligible)\b| is not a time\b", re.IGNORECASE)
_FOR_EYES = re.compile(r"-+(?: +-+)+ *")
_YAML = re.compile(r"(?:---|(?:jobs|meta|errors|warnings):.*)")
_NEEDED = {"state": "State", "start": "Start"}
_CHECKED = (
    "state", "jobid", "alloctres", "start", "jobidraw", "end", "elapsedraw", "elapsed", "submit", "eligible",
    "suspended", "restarts", "reqtres", "allocgres", "reqgres", "cluster", "user", "account", "partition", "qos",
)  # fmt: skip
"""The columns that count, those first by which a row is known. Two readings of NodeList cost the machine alone."""

_AMOUNTS = frozenset({"start", "end", "elapsed", "elapsedraw", "suspended", "alloctres", "allocgres"})
"""The columns that amounts are made of, and that are still one when their last characters are cut off."""

NO_NODES = frozenset({"None assigned", "None", "(null)", "(unknown)", "Unknown"})
"""What stands where no nodes are assigned."""


def parse(text: str, *, path: str, zone: tzinfo | None, columns: Sequence[str] = ()) -> SlurmRows:
    """The rows of a dump, each identical one once.

    Args:
        text: as ``sacct`` printed it; bytes that are no UTF-8 may stand in it as surrogates.
        path: the file as the user named it, for messages.
        zone: of its local times; None when not given.
        columns: their names, for a dump without header (``sacct -n``).

    Raises:
        BadInput: ``not-sacct``, ``no-header``, ``columns-missing``, ``columns-differ``.
        Misconfigured: ``zone-needed`` when there are local times and no zone.
    """
    return _Dump(path, zone, columns).rows(text)


def header_of(line: str) -> tuple[tuple[str, ...], str] | None:
    """The columns and the delimiter that a line names, or None where it is no header.

    With ``-p`` each line ends in a delimiter, so that the last column has no name and is empty.
    """
    match, quoted = _HEADER.fullmatch(line), _QUOTED_HEADER.fullmatch(line)
    if quoted:
        delimiter = quoted[1]
        columns = tuple(next(csv.reader([line], delimiter=delimiter)))
    elif match:
        delimiter = match["delimiter"]
        columns = tuple(line.split(delimiter))
    else:
        return None
    told = {column.lower() for column in columns}
    return (columns, delimiter) if told & {"jobid", "jobidraw"} and len(columns) > 2 else None


class _Dump:
    """One file as it is read."""

    def __init__(self, path: str, zone: tzinfo | None, columns: Sequence[str]) -> None:
        self._path = path
        self._times = Times(zone, path)
        self._given = tuple(column.partition("%")[0].strip() for column in columns)
        self._findings = Findings(path)
        self._seen: set[bytes] = set()
        self._repeated = 0
        self._rows: list[SlurmRow] = []

    def rows(self, text: str) -> SlurmRows:
        # a mark of byte order begins each of the files that were put together
        lines = iter(enumerate(text.replace("\ufeff", "").replace("\r\n", "\n").split("\n"), start=1))
        splitter = self._begin(lines)
        make = self._maker(splitter.columns)
        for number, line in lines:
            if line[:1] == "s" and _COMPLAINT.fullmatch(line):
                self._take(splitter.end(), make)
                self._complained(line, number)
                continue
            if (line[:1].isalpha() or line[:1] == '"') and (header := header_of(line)):
                self._take(splitter.end(), make)
                splitter = self._splitter(*header, number, quoted=line[0] == '"')
                make = self._maker(splitter.columns)
                continue
            self._take(splitter.feed(number, line), make)
        self._take(splitter.end(), make)
        if not text.endswith("\n"):
            self._may_be_cut(splitter.columns[-1], text.count("\n") + 1)
        if not self._rows and (broken := self._findings.counts.get("broken-line", 0)):
            raise self._hopeless(broken)
        for local in sorted(self._times.skipped)[:1]:
            message = f"{local} never happened in that zone, so the times are of another, or the clock was wrong"
            self._findings.add(Problem(code="time-not-in-zone", message=message), 0)
        return SlurmRows(rows=tuple(self._rows), repeated=self._repeated, problems=self._findings.all())

    def _may_be_cut(self, column: str, number: int) -> None:
        """A last row without its line's end: a figure that stands last there may have had more digits."""
        last = self._rows[-1] if self._rows else None
        if last and last.line == number and not last.step and column.lower() in _AMOUNTS:
            message = f"no line break ends the file, so {column} of job {last.job} may be cut; it counts as it is"
            self._findings.add(Problem(code="last-line-open", message=message), number)

    def _begin(self, lines: Iterator[tuple[int, str]]) -> Splitter:
        """The splitter for the first rows: by the header, or by the columns given."""
        how, first = "", ""
        for number, line in lines:
            if header := header_of(line):
                return self._splitter(*header, number, quoted=line[0] == '"')
            if _COMPLAINT.fullmatch(line):
                self._complained(line, number)
                how = f"sacct itself failed: {line[:80]}"
            elif not how and (_FOR_EYES.fullmatch(line) or _YAML.fullmatch(line)):
                how = "that is YAML: --json" if _YAML.fullmatch(line) else "that is its table for eyes: add -P"
            first = first or line
            if self._given and line.strip():
                splitter = self._splitter(*self._fitted(line), 0)
                self._take(splitter.feed(number, line), self._maker(splitter.columns))
                return splitter
            if number >= MOST_LINES_BEFORE_HEADER:
                break
        message = f"no line of the first {MOST_LINES_BEFORE_HEADER} names columns, JobID among them"
        if not how and (layout := known_layout(first.split("|"))):
            how = f"its first row looks as {layout.program} asks for: --columns {','.join(layout.columns)}"
        hint = f"{how}; {HINT}" if how else f"--columns JobID,State,... as they stand in it; {HINT}"
        raise BadInput("no-header", message, path=self._path, hint=hint)

    def _complained(self, line: str, number: int) -> None:
        message = f"sacct met an error, so its list may not be whole: {clean(line)[:200]}"
        self._findings.add(Problem(code="sacct-complains", message=message), number)

    def _fitted(self, line: str) -> tuple[tuple[str, ...], str]:
        """The columns given and the delimiter of a dump without header: what cuts its first line into as many."""
        count = len(self._given)
        for delimiter in ("|#", "|", "\t", ";", "^", ","):
            if line.count(delimiter) == count - 1:
                return self._given, delimiter
            if line.count(delimiter) == count and line.endswith(delimiter):
                return (*self._given, ""), delimiter
        return self._given, "|"

    def _splitter(self, columns: Sequence[str], delimiter: str, line: int, *, quoted: bool = False) -> Splitter:
        places = {column.lower(): place for place, column in reversed(list(enumerate(columns))) if column}
        missing = [written for name, written in _NEEDED.items() if name not in places]
        if not places.keys() & {"jobid", "jobidraw"}:
            missing.insert(0, "JobID")
        if not places.keys() & {"end", "elapsed", "elapsedraw"}:
            missing.append("End or ElapsedRaw")
        if not places.keys() & {"alloctres", "allocgres"}:
            missing.append("AllocTRES (before Slurm 21.08 AllocGRES will do)")
        if missing:
            message = f"columns that are needed are not there: {', '.join(missing)}"
            raise BadInput("columns-missing", message, path=self._path, line=line, hint=HINT)
        read = [places[name] for name in _CHECKED if name in places]
        return Splitter(columns, delimiter, read, quoted=quoted)

    def _take(self, found: Iterator[Record | Broken], make: Callable[[Record], SlurmRow]) -> None:
        for one in found:
            if isinstance(one, Broken):
                self._complain(one.line, one.message)
                continue
            mark = blake2b(one.text.encode("utf-8", "surrogateescape"), digest_size=16).digest()
            if mark in self._seen:
                self._repeated += 1
                continue
            self._seen.add(mark)
            try:
                self._rows.append(make(one))
            except ValueError as problem:
                self._complain(one.line, str(problem))

    def _complain(self, line: int, message: str) -> None:
        self._findings.add(Problem(code="broken-line", message=f"{message}; it is left out"), line)
        count = self._findings.counts["broken-line"]
        if count >= HOPELESS and not self._rows:
            raise self._hopeless(count)

    def _hopeless(self, count: int) -> BadInput:
        first = self._findings.named[0]
        code = "columns-differ" if self._given else "not-sacct"
        message = f"none of the first {count} rows can be read; line {first.where.rpartition(':')[2]}: {first.message}"
        hint = f"name the columns as they stand in the file: --columns JobID,State,...; {HINT}" if self._given else HINT
        if _NO_TIME.search(first.message):
            hint = "sacct prints such times by SLURM_TIME_FORMAT: `unset SLURM_TIME_FORMAT`, or set it to %s"
        return BadInput(code, message, path=self._path, hint=hint)

    def _maker(self, columns: Sequence[str]) -> Callable[[Record], SlurmRow]:
        """What makes rows of records with these columns."""
        places = {column.lower(): place for place, column in reversed(list(enumerate(columns))) if column}
        absent = len(columns)  # a cell more than the record has: empty

        def place(*names: str) -> int:
            return next((places[name] for name in names if name in places), absent)

        job, state, start, end = place("jobid", "jobidraw"), place("state"), place("start"), place("end")
        submit, eligible = place("submit"), place("eligible")
        elapsed, suspended = place("elapsedraw", "elapsed"), place("suspended")
        cluster, user, account, partition = place("cluster"), place("user"), place("account"), place("partition")
        qos, nodes, allocated, requested = place("qos"), place("nodelist"), place("alloctres"), place("reqtres")
        alloc_gres, req_gres, restarts = place("allocgres"), place("reqgres"), place("restarts")

        def make(record: Record) -> SlurmRow:
            cells = [*record.cells, ""]
            base, _, step = cells[job].partition(".")
            elapsed_s = seconds(cells[elapsed])
            suspended_s = seconds(cells[suspended]) if cells[suspended] else NOT_TOLD
            start_us, end_us, doubt = self._times.span(cells[start], cells[end], elapsed_s, suspended_s)
            return SlurmRow(
                line=record.line,
                job=base,
                step=step,
                cluster=clean(cells[cluster]),
                user=clean(cells[user]),
                account=clean(cells[account]),
                partition=clean(cells[partition]),
                qos=clean(cells[qos]),
                state=whole_state(cells[state].partition(" ")[0]),
                submit_us=self._times.asked(cells[submit], start_us),
                eligible_us=self._times.asked(cells[eligible], start_us),
                start_us=start_us,
                end_us=end_us,
                doubt=doubt,
                elapsed_s=elapsed_s,
                suspended_s=suspended_s,
                restarts=int(cells[restarts]) if cells[restarts].isdecimal() else 0,
                allocated=with_gres(clean(cells[allocated]), cells[alloc_gres]),
                requested=with_gres(clean(cells[requested]), cells[req_gres]),
                is_untold=alloc_gres == absent and not cells[allocated],
                nodes="" if cells[nodes] in NO_NODES else clean(cells[nodes]),
            )

        return make


def clean(text: str) -> str:
    """Text fit for a ledger: bytes that are no UTF-8 shown as such."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
