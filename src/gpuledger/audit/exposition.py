"""Exposition text to samples, each with its line; what is no sample is told, never left out in silence.

In: what an endpoint answered or a file holds: the Prometheus text format, OpenMetrics, the answer to a PromQL query
(text or JSON), a log with the exporter's own mapping of devices to pods, or a mixture with titles and rulers between.
Out: samples with their labels in the order of the text, and the lines that were not read.

Why not ``prometheus_client``'s parser alone: it stops at the first line that it does not know, and its samples have no
line numbers. It reads the rare forms here (quoted names), and the tests compare everything else with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gpuledger.audit.exposition_forms import DeviceHolders, api_series, excerpt, loose_sample, mapping_of
from gpuledger.model.problem import Problem

Labels = Mapping[str, str]
"""Labels of one sample in the order of the text; the same mapping for all samples with the same text: never changed."""


class Sample(NamedTuple):
    """One line with a figure. A tuple, for a scrape has a hundred thousand of them.

    Args:
        name: the metric's name.
        labels: its labels in the order of the text.
        value: the figure as it is written; empty where the text shows none, as in a pasted query result.
        line: 1-based.
    """

    name: str
    labels: Labels
    value: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposition:
    """What one text holds.

    Args:
        samples: in the order of the text.
        types: metric name to its declared type.
        holders: devices and who holds them, where the text is the exporter's log.
        unread: runs of lines that are no samples and no comments.
        notes: what else to know: a last line without an end, labels that somebody elided.
        queried: whether it is the answer to a query, which may have left rows out.
        scrapes: how many scrapes follow each other in the text, by the families described more than once.
    """

    samples: tuple[Sample, ...]
    types: Mapping[str, str]
    holders: tuple[DeviceHolders, ...] = ()
    unread: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    queried: bool = False
    scrapes: int = 1


_VALUE = r"[-+]?(?:\d++(?:\.\d*+)?(?:[eE][-+]?\d++)?|\.\d++(?:[eE][-+]?\d++)?|[iI]nf(?:inity)?|[nN]a[nN])"
"""Possessive throughout, here and below: a line of digits or blanks must not cost its length squared."""

_LINE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{(.*)\}})?[ \t]++({_VALUE})(?:[ \t]++-?\d++(?:\.\d++)?)?[ \t\r]*+")
_LABEL = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(?:,|$)')
_ESCAPED = re.compile(r"\\(.)")
_UNESCAPED = {"n": "\n", "\\": "\\", '"': '"'}
_RULER = re.compile(r"[-=_*#~ \t]{3,}")
_EXEMPLAR = " # {"
"""How an exemplar of OpenMetrics begins, behind the figure."""
_FAMILY = re.compile(r"#[ \t]+(HELP|TYPE|UNIT)[ \t]+(\S+)(?:[ \t]+(.*))?")
_ODD_NAME = re.compile(r'[ \t]*\{[ \t]*"')

LONGEST_ODD_LINE = 1024 * 1024
"""Signs of a line that is tried as a rarer form; the exporter's log of a large node has 100 KB in one."""

LONGEST_SAMPLE = 64 * 1024
"""Signs of the line of one sample, pod labels and all; a longer one is no exporter's, and could not be shown."""

MOST_SAMPLES = 1_000_000
"""Of one text: 9,000 devices with five rows of 22 metrics. More would take more than 1 GB to judge."""

MOST_UNREAD = 200
"""Runs of unread lines told one by one; the rest is one sentence with their number."""

_Block = dict[str, str]


def decode(content: bytes) -> tuple[str, tuple[Problem, ...]]:
    """Bytes as text, whatever the bytes: what is not UTF-8 is replaced, and its lines are told.

    Args:
        content: of a file or an answer; UTF-16 with its mark is understood, as PowerShell writes it.
    """
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", errors="replace"), ()
    try:
        return content.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        text = content.decode("utf-8-sig", errors="replace")
    lines = [number for number, line in enumerate(content.split(b"\n"), 1) if not _is_utf8(line)]
    shown = ", ".join(map(str, lines[:10])) + (f" and {len(lines) - 10} more" if len(lines) > 10 else "")
    return text, (Problem(code="not-utf8", message=f"not UTF-8, read with replacement signs: line {shown}"),)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def read_exposition(text: str, *, path: str = "") -> Exposition:
    """Every sample of a text, and every run of lines that is none.

    Args:
        text: whole; line ends of any kind.
        path: the file or address, for the places of what is not read.
    """
    series = api_series(text)
    if series is not None:
        samples = tuple(Sample(one.name, one.labels, one.value, one.line) for one in series.samples)
        return Exposition(samples=samples, types={}, unread=series.unread, queried=True)
    return _Reading(path).read(text)


class _Reading:
    """One pass over the lines."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._samples: list[Sample] = []
        self._types: dict[str, str] = {}
        self._described: dict[str, int] = {}
        self._holders: list[DeviceHolders] = []
        self._notes: list[Problem] = []
        self._runs: list[tuple[str, int, int, str]] = []
        self._blocks: dict[str | None, _Block | None] = {}
        self._words: dict[str, str] = {}  # each name and value once: a cluster repeats them a million times
        self._elided = self._queried = 0
        self._ended = False
        self._stopped: tuple[Problem, ...] = ()

    def read(self, text: str) -> Exposition:
        lines = text.split("\n")
        fullmatch, blocks, append = _LINE.fullmatch, self._blocks, self._samples.append
        for number, line in enumerate(lines, 1):
            if len(self._samples) >= MOST_SAMPLES:
                self._stop(number, len(lines))
                break
            found = fullmatch(line)
            if found is not None and len(line) <= LONGEST_SAMPLE:
                name, block, value = found.groups()
                labels = blocks[block] if block in blocks else self._labels(block)
                if labels is not None:
                    append(Sample(name, labels, value, number))
                    continue
            if line and not line.isspace():
                self._other(line, number)
        self._end(text, lines)
        return Exposition(
            samples=tuple(self._samples),
            types=self._types,
            holders=tuple(self._holders),
            unread=self._unread(),
            notes=tuple(self._notes),
            queried=bool(self._queried),
            scrapes=max(self._described.values(), default=1),
        )

    def _labels(self, block: str | None) -> _Block | None:
        """The labels of a block; None where it is not one, as the greedy match of an exemplar's line gives it."""
        labels: _Block | None = {}
        words, at = self._words, 0
        while labels is not None and block is not None and at < len(block):
            found = _LABEL.match(block, at)
            if found is None:
                labels = {} if not block.strip() else None
                break
            name, value = found.groups()
            value = _ESCAPED.sub(_unescape, value) if "\\" in value else value
            labels[words.setdefault(name, name)] = words.setdefault(value, value)
            at = found.end()
        self._blocks[block] = labels
        return labels

    def _other(self, line: str, number: int) -> None:
        """A line that is no plain sample: a comment, a rarer form, or not to be read."""
        stripped = line.strip()
        if stripped.startswith("#"):
            self._comment(stripped)
            return
        if len(line) > LONGEST_ODD_LINE:
            self._leave(stripped, number)
            return
        bare = line[: line.rindex(_EXEMPLAR)].strip() if _EXEMPLAR in line else stripped
        found = _LINE.fullmatch(bare) if len(bare) <= LONGEST_SAMPLE else None
        labels = self._labels(found[2]) if found else None
        if found is not None and labels is not None:
            self._samples.append(Sample(found[1], labels, found[3], number))
            return
        mapping = mapping_of(stripped)
        if mapping is not None:
            self._holders += mapping.named(number)
            return
        if _ODD_NAME.match(line) or ('{"' in line and not stripped.startswith("{")):
            odd = _by_client(stripped, number)
            if odd is not None:
                self._samples.append(odd)
                return
        loose = loose_sample(stripped) if len(stripped) <= LONGEST_SAMPLE else None
        if loose is not None:
            self._samples.append(Sample(loose.name, loose.labels, loose.value, number))
            self._elided += loose.elided
            self._queried += loose.queried
            return
        self._leave(stripped, number)

    def _comment(self, stripped: str) -> None:
        found = _FAMILY.match(stripped)
        if found is not None:
            kind, name, rest = found.groups()
            if kind == "TYPE":
                self._types[name] = rest or ""
                self._described[name] = self._described.get(name, 0) + 1
        elif stripped == "# EOF":
            self._ended = True

    def _leave(self, stripped: str, number: int) -> None:
        """Run of unread lines, longer by one."""
        code = "ruler" if _RULER.fullmatch(stripped) else "log-line" if _is_log(stripped) else "not-a-sample"
        if self._runs and self._runs[-1][0] == code and self._runs[-1][2] == number - 1:
            kind, first, _, shown = self._runs[-1]
            self._runs[-1] = (kind, first, number, shown)
        else:
            self._runs.append((code, number, number, excerpt(stripped)))

    def _stop(self, number: int, last: int) -> None:
        """The text has more samples than are read."""
        message = f"{MOST_SAMPLES:,} samples are read, and the text has more: lines {number} to {last} were not judged"
        self._stopped = (Problem(code="too-many-samples", message=message, where=f"{self._path}:{number}"),)

    def _unread(self) -> tuple[Problem, ...]:
        told = [
            Problem(code=code, message=_left(first, last, shown), where=f"{self._path}:{first}")
            for code, first, last, shown in self._runs[:MOST_UNREAD]
        ]
        rest = self._runs[MOST_UNREAD:]
        if rest:
            lines = sum(last - first + 1 for _, first, last, _ in rest)
            message = f"{lines} more lines in {len(rest)} places are no samples"
            told.append(Problem(code="not-a-sample", message=message, where=f"{self._path}:{rest[0][1]}"))
        return (*told, *self._stopped)

    def _end(self, text: str, lines: list[str]) -> None:
        """What the end of the text says of its wholeness."""
        if self._elided:
            message = (
                f"{self._elided} samples have labels elided as `...`: devices and hosts they hide cannot be told apart"
            )
            self._notes.append(Problem(code="elided-labels", message=message, where=self._path))
        if not self._samples or self._queried or self._ended or self._stopped or text.endswith("\n"):
            return
        if self._runs and self._runs[-1][2] == len(lines):
            kind, first, last, shown = self._runs.pop()
            if last > first:
                self._runs.append((kind, first, last - 1, shown))
            self._runs.append(("cut-line", last, last, excerpt(lines[-1].strip())))
        elif self._samples[-1].line == len(lines):
            message = "the last line has no end, so its figure may be cut (the text format ends each line)"
            self._notes.append(Problem(code="open-end", message=message, where=f"{self._path}:{len(lines)}"))


def _unescape(found: re.Match[str]) -> str:
    return _UNESCAPED.get(found[1], found[0])


def _is_log(stripped: str) -> bool:
    return "level=" in stripped or "msg=" in stripped or "slog" in stripped


def _left(first: int, last: int, shown: str) -> str:
    if first == last:
        return f"no sample: {shown}"
    return f"{last - first + 1} lines are no samples: {shown} ..."


def _by_client(stripped: str, number: int) -> Sample | None:
    """A name in quotes, which only newer formats have, read by prometheus_client."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 - costs 50 ms, for a rare form

    try:
        families = list(text_string_to_metric_families(stripped + "\n"))
    except ValueError:
        return None
    for family in families:
        for sample in family.samples:
            return Sample(sample.name, dict(sample.labels), repr(sample.value), number)
    return None
