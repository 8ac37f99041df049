"""Texts of JSON and YAML as plain mappings, lists and texts that know their lines: what dashboards are walked in.

JSON goes the fast way (a dashboard has thousands of values, and only its queries' lines are wanted), YAML and Helm's
templates through :mod:`gpuledger.audit.documents`. Braces that a template escapes (``{{ "{{" }}``) are put back.
Bounded: values are counted before they are made, and depth before it is walked.
"""

from __future__ import annotations

import json
import re
from collections import deque

from gpuledger.audit.document_node import Kind, Node
from gpuledger.audit.documents import Document, documents
from gpuledger.audit.templates import MARK
from gpuledger.model.findings import Written
from gpuledger.model.problem import Problem

MOST_VALUES = 2_000_000
"""Of one JSON text. The largest published dashboards have 60,000."""

TWICE = "\x00"
"""Stands behind a key that its mapping has twice, with the number: a template's branches both count."""

_LINED_WORDS = (
    "expr query definition promql promQL prometheusQuery expression metricsQuery filter jsonData rawSql "
    "timeSeriesQueryLanguage json"
)
LINED = frozenset(_LINED_WORDS.split())
"""Keys of JSON whose texts' lines are looked up."""


class Text(str):
    """A text of a document, with its line.

    Args:
        value: the text.
        line: 1-based; 0 where it is not known.
        inner: the line at which its own first line stands, of a block of several; 0 where its lines are not kept.
    """

    __slots__ = ("inner", "line")
    line: int
    inner: int

    def __new__(cls, value: str, line: int = 0, inner: int = 0) -> Text:
        """A text at a line."""
        made = super().__new__(cls, value)
        made.line = line
        made.inner = inner
        return made


Plain = dict[str, "Plain"] | list["Plain"] | str | int | bool | object | None
"""What a document consists of; numbers of JSON are themselves."""


def line_of(value: object) -> int:
    """The line of a text; 0 where it has none."""
    return value.line if isinstance(value, Text) else 0


def key_of(key: str) -> str:
    """A key as it was written."""
    return key.split(TWICE, 1)[0] if TWICE in key else key


def read(written: Written) -> tuple[list[object], list[Problem]]:
    """The documents of a text, and a problem for each part that could not be read."""
    text = written.text.lstrip("\ufeff")
    if "\x00" in text:
        line = text[: text.index("\x00")].count("\n") + 1
        problem = Problem(code="not-text", message="it holds NUL bytes", where=f"{written.path}:{line}")
        return [], [problem]
    held = held_braces(text) if "{{" in text else text
    starts = held.lstrip()[:1]
    if starts in ("{", "[") and not held.lstrip().startswith("{{"):
        return _json(held, written.path)
    found, unread = documents(Written(path=written.path, text=held))
    return [_plain(document.root, document) for document in found], list(unread)


def embedded(text: Text, path: str) -> tuple[list[object], list[Problem]]:
    """The documents in a text of a document: a dashboard in a ConfigMap, rules in a Helm value.

    Lines are those of the outer file where the text is a block of lines, else all of them are its key's.
    """
    found, unread = read(Written(path=path, text=str(text)))
    shift = text.inner - 1 if text.inner else 0
    try:
        moved = [_moved(each, shift, text.line) for each in found]
    except RecursionError:
        return [], [Problem(code="too-deep", message="nested too deep to be read", where=f"{path}:{text.line}")]
    told = [
        Problem(code=each.code, message=each.message, where=f"{path}:{text.line}" if text.line else path)
        for each in unread
    ]
    return moved, told


def _moved(value: object, shift: int, line: int) -> object:
    """With the lines of the outer file."""
    if isinstance(value, Text):
        return Text(
            value,
            value.line + shift if shift and value.line else line,
            value.inner + shift if value.inner and shift else 0,
        )
    if isinstance(value, dict):
        return {key: _moved(each, shift, line) for key, each in value.items()}
    return [_moved(each, shift, line) for each in value] if isinstance(value, list) else value


_ESCAPED_OPEN = re.compile(r"\{\{-?\s*(?:\"\{\{\"|`\{\{`|\\\"\{\{\\\"|'\{\{')\s*-?\}\}")
_ESCAPED_CLOSE = re.compile(r"\{\{-?\s*(?:\"\}\}\"|`\}\}`|\\\"\}\}\\\"|'\}\}')\s*-?\}\}")
_RAW = re.compile(r"\{\{-?\s*`([^`]*)`\s*-?\}\}")
_OPEN, _CLOSE = "\ue001", "\ue002"


def held_braces(text: str) -> str:
    """A template's text with the braces that it means literally held by signs of Unicode's private use."""
    text = _ESCAPED_CLOSE.sub(_CLOSE, _ESCAPED_OPEN.sub(_OPEN, text))
    return _RAW.sub(lambda found: found[1].replace("{{", _OPEN).replace("}}", _CLOSE), text)


def _braces(text: str) -> str:
    return text.replace(_OPEN, "{{").replace(_CLOSE, "}}") if _OPEN in text or _CLOSE in text else text


def _plain(node: Node, document: Document, depth: int = 0) -> object:
    if node.kind is Kind.TEXT:
        text = _braces(node.text)
        is_block = not node.plain and "\n" in text
        return Text(text, node.line, node.line + 1 if is_block else 0)
    if node.kind is Kind.LIST:
        return [_plain(each, document, depth + 1) for each in node.entries]
    if node.kind is Kind.MAPPING:
        given: dict[str, object] = {}
        for key, value in node.pairs:
            if key == "<<" and value.kind in (Kind.MAPPING, Kind.LIST):
                continue
            spelled = key if key not in given else f"{key}{TWICE}{len(given)}"
            given[spelled] = _plain(value, document, depth + 1)
        for source in (each for merged in node.every("<<") for each in merged.entries or (merged,)):
            more = _plain(source, document, depth + 1)
            given = {**more, **given} if isinstance(more, dict) else given
        return given
    return None


_QUERY = re.compile(rf'"({"|".join(sorted(LINED))})"\s*:\s*"((?:[^"\\]|\\.)*+)"', re.DOTALL)
"""A quote inside a string of JSON is escaped, so this can only be a key with its text."""

_BARE_MARK = re.compile(rf":[ \t]*({MARK}\d+{MARK})(?=\s*[,}}\]])")
_STEERING = re.compile(r"\{\{-?\s*(if|else|end|range|with|define|block|/\*|\$\w+\s*:?=)")


def _json(text: str, path: str) -> tuple[list[object], list[Problem]]:
    if text.count("{") + text.count("[") + text.count(",") > MOST_VALUES:
        message = f"more than {MOST_VALUES:,} values: no dashboard"
        return [], [Problem(code="too-many-values", message=message, where=path)]
    try:
        value = _loaded(text)
    except RecursionError:
        return [], [Problem(code="too-deep", message="nested too deep to be read", where=path)]
    except ValueError as error:
        if "{{" in text and (found := _templated_json(text)) is not None:
            return found, []
        line = getattr(error, "lineno", 0)
        message = f"not JSON: {getattr(error, 'msg', str(error))}"
        if "#" in text or "//" in text or re.match(r"\s*\{\s*[A-Za-z_$]", text):
            message += "; a source of dashboards in jsonnet or YAML flow style is not rendered here"
        return [], [Problem(code="not-json", message=message, where=f"{path}:{line}" if line else path)]
    return [value], []


def _templated_json(text: str) -> list[object] | None:
    """A template of JSON with its expressions as opaque signs."""
    parts: list[str] = []
    at = number = 0
    while (start := text.find("{{", at)) >= 0 and (end := text.find("}}", start)) >= 0:
        parts.append(text[at:start])
        inside = text[start : end + 2]
        at = end + 2
        if not _STEERING.match(inside):
            parts.append(f"{MARK}{number}{MARK}")
        parts.append("\n" * inside.count("\n"))
        number += 1
    marked = "".join((*parts, text[at:]))
    for tried in (marked, _BARE_MARK.sub(r': "\1"', marked)):
        try:
            value = _loaded(tried)
        except (ValueError, RecursionError):
            continue
        return [value]
    return None


def _loaded(text: str) -> object:
    """A parsed JSON text, the texts of queries with their lines.

    The n-th query of one spelling is found by counting: the parser ends mappings in the order of the text, except that
    an inner one ends before its outer one.
    """
    lines: dict[tuple[str, str], deque[int]] = {}
    at, line = 0, 1
    for found in _QUERY.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        lines.setdefault((found[1], _spelled(found[2])), deque()).append(line + found[0].count("\n"))
    has_braces = _OPEN in text or _CLOSE in text
    wanted = tuple({key for key, _ in lines})

    def placed(value: dict[str, object]) -> dict[str, object]:
        if has_braces:
            value = {key: _braces(each) if isinstance(each, str) else each for key, each in value.items()}
        for key in wanted:
            if key in value:
                each = value[key]
                if isinstance(each, str) and (left := lines.get((key, each))):
                    value[key] = Text(each, left.popleft())
        return value

    return json.loads(text, object_hook=placed)


def _spelled(raw: str) -> str:
    """What a JSON string says; what is between its quotes where that is none."""
    if "\\" not in raw and _OPEN not in raw and _CLOSE not in raw:
        return raw
    if raw.count("\\") == raw.count('\\"') and _OPEN not in raw and _CLOSE not in raw:
        return raw.replace('\\"', '"')
    try:
        return _braces(str(json.loads(f'"{raw}"', strict=False)))
    except ValueError:
        return raw
