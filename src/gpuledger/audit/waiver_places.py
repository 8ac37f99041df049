"""What a comment that is a waiver covers: the objects it stands in, and which of their places it is for.

In: a text and the lines of its comments, later the places that an audit looked at. Out: places. By lines and
indentation alone, so that it holds for what no parser reads too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpuledger.model.findings import Where

Lines = tuple[int, int]
"""The first and last line of an object, 1-based."""

MOST_AROUND = 8
"""Objects around a comment that are told, the innermost first."""

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*+"|[{}\n]')
_ITEM = re.compile(r"( *)- ")


def around(text: str, lines: Sequence[int]) -> dict[int, tuple[Lines, ...]]:
    """The objects that each of some lines is in, the innermost first: of JSON its braces, of YAML entries of lists.

    Args:
        text: a whole file.
        lines: 1-based, ascending.
    """
    if not lines:
        return {}
    is_json = text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")
    return _in_json(text, set(lines)) if is_json else _in_yaml(text, set(lines))


def _in_json(text: str, wanted: set[int]) -> dict[int, tuple[Lines, ...]]:
    line = 1
    open_at: list[list[int]] = []
    inside: dict[int, list[list[int]]] = {}
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign == "\n":
            line += 1
        elif sign == "{":
            open_at.append([line, line])
        elif sign == "}" and open_at:
            open_at.pop()[1] = line
        elif sign[0] == '"' and line in wanted and len(open_at) > 1:
            inside.setdefault(line, open_at[: 0 if len(open_at) <= MOST_AROUND else -MOST_AROUND - 1 : -1])
    root = open_at[0] if open_at else None
    return {at: tuple((one[0], one[1]) for one in found if one is not root) for at, found in inside.items()}


def _in_yaml(text: str, wanted: set[int]) -> dict[int, tuple[Lines, ...]]:
    open_items: list[list[int]] = []  # indentation, first line, last line
    inside: dict[int, list[list[int]]] = {}
    for line, row in enumerate(text.split("\n"), 1):
        bare = row.strip()
        if not bare:
            continue
        indent = len(row) - len(row.lstrip(" "))
        if not bare.startswith("#"):
            while open_items and indent <= open_items[-1][0]:
                open_items.pop()
            if _ITEM.match(row):
                open_items.append([indent, line, line])
            for item in open_items[-MOST_AROUND:]:
                item[2] = line
        if line in wanted:
            inside[line] = [item for item in reversed(open_items[-MOST_AROUND:]) if item[0] < indent or item[1] == line]
    return {at: tuple((item[1], item[2]) for item in items) for at, items in inside.items()}


def covered(line: int, within: Sequence[Lines], places: Sequence[tuple[Where, str]], word: str) -> frozenset[Where]:
    """The places that a comment is for.

    Args:
        line: where it stands.
        within: the objects that it is in, the innermost first.
        places: of its file with their texts, by line.
        word: that an expression holds if the comment is a part of it.

    Returns:
        What stands on its line; else the expression it is a part of; else what its object holds below it, or above it
        if that is one panel or rule; else the nearest below. None where nobody can tell.
    """
    on_line = {where for where, _ in places if where.line == line}
    if on_line:
        return frozenset(on_line) if _is_one(on_line) else frozenset()
    inside = [
        where for where, text in places if where.line < line <= where.line + text.count("\n") + 1 and word in text
    ]
    if inside:
        nearest = max(where.line for where in inside)
        return frozenset(where for where in inside if where.line == nearest)
    for first, last in within:
        held = [where for where, _ in places if first <= where.line <= last]
        below = [where for where in held if where.line > line]
        if below:
            return _first_of(below)
        if held:
            return frozenset(held) if len({_panel(where) or where.name for where in held}) == 1 else frozenset()
    return _first_of([where for where, _ in places if where.line > line])


def _first_of(below: Sequence[Where]) -> frozenset[Where]:
    """The first place, and with it the other expressions of its panel; none where several stand on its line."""
    if not below:
        return frozenset()
    first = below[0]
    if not _is_one({where for where in below if where.line == first.line}):
        return frozenset()
    found = {first}
    for where in below:
        if where.line != first.line and not (_panel(first) and _panel(where) == _panel(first)):
            break
        found.add(where)
    return frozenset(found)


def _is_one(places: set[Where]) -> bool:
    return len({where.name for where in places}) == 1


def _panel(where: Where) -> str:
    return where.name.rpartition(" / ")[0]
