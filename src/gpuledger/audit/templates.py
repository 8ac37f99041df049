"""Helm templates made into YAML that can be read before anybody fills them: same lines, opaque values.

An expression inside a value becomes a mark that stands for it. A line that is only an expression and gives text
(``toYaml``, ``include``) becomes a key or list entry that is such a mark; one that only steers (``if``, ``range``,
``end``) becomes empty, so both branches of a condition stand in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MARK = "\ue000"
"""Stands around the number of an expression. Of Unicode's private use: no manifest holds it."""

_STEERS = re.compile(r"(if|else|end|with|range|define|block|break|continue|/\*|\$\w+\s*:?=)(?!\w)")
_INDENT = re.compile(r"\bn?indent\s+(\d{1,3})")


def untemplated(text: str) -> str:
    """A template as YAML of the same number of lines."""
    parts: list[str] = []
    number = 0
    for literal, expression in _cut(text):
        parts.append(literal)
        if expression is None:
            continue
        lines = "\n" * expression.count("\n")
        if _STEERS.match(_bare(expression)):
            parts.append(lines)
        else:
            indent = _INDENT.search(expression)
            parts.append(f"{MARK}{number}{MARK}" + (f"{MARK}>{indent[1]}" if indent else "") + lines)
        number += 1
    return "\n".join(_alone("".join(parts).split("\n")))


def expressions(text: str) -> tuple[str, ...]:
    """What stands in the double braces of a text, in order: the numbers of the marks."""
    return tuple(" ".join(_bare(expression).split()) for _, expression in _cut(text) if expression is not None)


def conditional_lines(text: str) -> frozenset[int]:
    """The lines (from 1) inside ``if``, ``with`` or ``range``: they stand there only if something holds.

    A condition around the whole text does not count: where it fails, there is no manifest to judge.
    """
    pieces = list(_cut(text))
    held = [place for place, (literal, _) in enumerate(pieces) if _says(literal)]
    found: set[int] = set()
    open_at: list[tuple[int, int, str]] = []
    branched: set[int] = set()
    line = 1
    for place, (literal, expression) in enumerate(pieces):
        line += literal.count("\n")
        if expression is None:
            break
        first = re.match(r"[a-z]*", _bare(expression))
        word = first[0] if first else ""
        if word in ("if", "with", "range", "define", "block"):
            open_at.append((place, line, word))
        elif word == "else" and open_at:
            branched.add(open_at[-1][0])
        elif word == "end" and open_at:
            start, since, opener = open_at.pop()
            whole = bool(held) and start < held[0] and held[-1] <= place and start not in branched
            if opener not in ("define", "block") and not whole:
                found.update(range(since, line + 1))
        line += expression.count("\n")
    return frozenset(found)


def _says(literal: str) -> bool:
    """Whether a literal part holds more than comments and the start of a document."""
    return any(row.strip() not in ("", "---") and not row.lstrip().startswith("#") for row in literal.split("\n"))


def _bare(expression: str) -> str:
    return expression.removeprefix("-").removesuffix("-").strip()


def _cut(text: str) -> Iterator[tuple[str, str | None]]:
    """Literal text and the expression after it; one that never ends is literal text."""
    at = 0
    while (start := text.find("{{", at)) >= 0 and (end := text.find("}}", start + 2)) >= 0:
        yield text[at:start], text[start + 2 : end]
        at = end + 2
    yield text[at:], None


_ALONE = re.compile(rf"(\s*)({MARK}\d+{MARK})(?:{MARK}>(\d+))?\s*")
_ASIDE = re.compile(rf"{MARK}>\d+")
_ITEM = re.compile(r"\s*- ")


def _alone(lines: list[str]) -> list[str]:
    """The lines, those that are one mark alone made into a key or an entry of the list that they stand in."""
    shown: list[str] = []
    for place, line in enumerate(lines):
        found = _ALONE.fullmatch(line) if MARK in line else None
        if found is None:
            shown.append(_ASIDE.sub("", line))
            continue
        indent = int(found[3]) if found[3] else len(found[1])
        in_list = _is_item(reversed(shown), indent) or _is_item(lines[place + 1 : place + 50], indent)
        shown.append(" " * indent + (f"- {found[2]}" if in_list else f"{found[2]}: {found[2]}"))
    return shown


def _is_item(lines: Iterator[str] | list[str], indent: int) -> bool:
    """Whether the nearest line that stands no further in is an entry of a list at just this place."""
    for line in lines:
        if line.strip() and not line.lstrip().startswith("#") and MARK + ">" not in line:
            inside = len(line) - len(line.lstrip())
            if inside <= indent:
                return inside == indent and bool(_ITEM.match(line + " "))
    return False
