"""Finds the outputs of nvidia-smi in a text: one dump, or a capture of many with noise between.

Text in, :class:`Block` values out, in the order of the file. Nothing is interpreted here beyond
where an output begins and ends; what is not recognised is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from gpuledger.sources.nvidia_smi_header import Header, read_header
from gpuledger.sources.nvidia_smi_outputs import Kind, Rejected

_XML_BEGIN = re.compile(r"<nvidia_smi_log[\s>]")
_XML_END = "</nvidia_smi_log>"
_LOG_BEGIN = re.compile(r"={5,}\s*NVSMI LOG\s*={5,}")
_LOG_TOP = re.compile(r"(?:GPU [0-9A-Fa-f:.]{7,16}\s*$|[A-Z][A-Za-z /]{2,40}?\s*: )")
LIST_GPU = re.compile(r"GPU \d{1,4}: (.{1,200}?) \(UUID: ([^\s()]{1,80})\)\s*")
LIST_SLICE = re.compile(r"\s+MIG (\S{1,40})\s+Device\s+(\d{1,3}): \(UUID: ([^\s()]{1,80})\)\s*")
_SECTION = re.compile(r"#+\s*([A-Za-z0-9][\w .()-]{0,60}?)\s*::")
_COMMAND = re.compile(r"nvidia-smi\b.{0,200}?--query-(accounted|compute)-apps=")
_HEADER_LIKE = re.compile(r"\s*\"?[a-z_][A-Za-z0-9_.]{0,60}(?: \[[^\]]{1,12}\])?\"?\s*[,;\t]")
_MARK = re.compile(r"pid|uuid|bus_id|serial|_util|max_memory|accounting")
"""No header of use is without one of these; looking for them spares reading every line of noise."""

LONGEST_LOG = 500_000
"""Lines of one log that are read: 16 GPUs with every process that a driver lists make 100,000."""

LONGEST_HEADER = 65_536
"""Characters; all 210 fields that a driver of 2026 knows make a header of 6,000."""


@dataclass(slots=True)
class Block:
    """One output as it stands in the file.

    Args:
        kind: which command's output it is.
        line: its first line, 1-based.
        section: the capture's own name for the moment; may be empty.
        text: an XML document.
        lines: the lines of the others; of CSV without its header.
        header: of CSV.
        whole: False for an XML document whose end is missing.
    """

    kind: Kind
    line: int
    section: str
    text: str = ""
    lines: list[str] = field(default_factory=list)
    header: Header | None = None
    whole: bool = True


def find_blocks(text: str) -> Iterator[Block | Rejected]:
    """Every output in the text, in order. ``text`` has ``\\n`` line ends only."""
    scanner = _Scanner()
    for line, piece, is_xml in _pieces(text):
        if is_xml:
            yield from scanner.end()
            yield Block(kind=Kind.XML, line=line, section=scanner.section, text=piece, whole=piece.endswith(_XML_END))
        else:
            for number, content in enumerate(piece.split("\n"), start=line):
                yield from scanner.take(number, content)
    yield from scanner.end()


def _pieces(text: str) -> Iterator[tuple[int, str, bool]]:
    """The text cut into XML documents and what lies between, each with its first line."""
    line, place = 1, 0
    while True:
        begin = _XML_BEGIN.search(text, place)
        if begin is None:
            yield line, text[place:], False
            return
        before = text[place : begin.start()]
        yield line, before, False
        line += before.count("\n")
        following = _XML_BEGIN.search(text, begin.end())
        limit = following.start() if following else len(text)
        end = text.find(_XML_END, begin.end(), limit)
        stop = limit if end < 0 else end + len(_XML_END)
        document = text[begin.start() : stop]
        yield line, document, True
        line += document.count("\n")
        place = stop


class _Scanner:
    """Takes line after line and gives back blocks as they end."""

    def __init__(self) -> None:
        self.section = ""
        self._asked = ""
        self._open: Block | None = None

    def end(self) -> Iterator[Block]:
        if self._open is not None:
            yield self._open
            self._open = None

    def take(self, number: int, content: str) -> Iterator[Block | Rejected]:
        first = content[:1]
        if first == "#":
            yield from self.end()
            self._note(content)
        elif first == "=" and _LOG_BEGIN.match(content):
            yield from self.end()
            self._open = Block(kind=Kind.LOG, line=number, section=self.section)
        elif first == "G" and LIST_GPU.fullmatch(content):
            if self._open is None or self._open.kind is not Kind.LIST:
                yield from self.end()
                self._open = Block(kind=Kind.LIST, line=number, section=self.section)
            self._open.lines.append(content)
        elif self._open is not None and self._open.kind is Kind.LOG:
            if not content.strip() or first in (" ", "\t") or _LOG_TOP.match(content):
                if len(self._open.lines) < LONGEST_LOG:
                    self._open.lines.append(content)
            else:
                yield from self.end()
                yield from self._begin_csv(number, content)
        elif self._open is not None and self._open.kind is Kind.LIST:
            if LIST_SLICE.fullmatch(content):
                self._open.lines.append(content)
            else:
                yield from self.end()
                yield from self._begin_csv(number, content)
        else:
            yield from self._begin_csv(number, content)

    def _begin_csv(self, number: int, content: str) -> Iterator[Block | Rejected]:
        if _HEADER_LIKE.match(content) and _MARK.search(content) and len(content) <= LONGEST_HEADER:
            found = read_header(content, number, asked=self._asked)
            if found is not None:
                yield from self.end()
                if isinstance(found, Rejected):
                    yield found
                else:
                    self._open = Block(kind=found.kind, line=number, section=self.section, header=found)
                return
        if self._open is not None:
            self._open.lines.append(content)
        elif "--query-" in content:
            self._note(content)

    def _note(self, content: str) -> None:
        if match := _SECTION.match(content):
            self.section, self._asked = match[1], ""
        elif match := _COMMAND.search(content):
            self._asked = match[1]
