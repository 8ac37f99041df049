"""JSON as nodes with lines: what kubectl and Grafana write, twenty times as fast as through a parser of YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from gpuledger.audit.document_node import DEEPEST, MOST_NODES, Kind, Node, NotYaml, TooDeep, TooMany

_STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*+"(\s*+:)?')
"""Strings of JSON, with the colon that makes one a key."""


_SMALL = 1_000_000
"""Characters: below it what begins like JSON and is none may be YAML in flow style; beyond it nobody writes that."""


def json_root(text: str) -> Node | None:
    """A text of JSON; None where it is none, as YAML in flow style.

    Raises:
        Unreadable: what is too deep or too large, and what is too long to be anything but broken JSON.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_Pairs, parse_float=_Number, parse_int=_Number, parse_constant=_Number
        )
    except RecursionError:
        raise TooDeep(f"nested more than {DEEPEST} levels deep", 1) from None
    except json.JSONDecodeError as error:
        if len(text) < _SMALL or text.startswith("{{"):
            return None
        raise NotYaml(f"not JSON: {error.msg}", error.lineno) from None
    return _OfJson(text).node(value, 1)


class _Pairs(list[tuple[str, object]]):
    """An object of JSON, with keys that stand twice."""


class _Number(str):
    """A number of JSON, as written."""

    __slots__ = ()


class _OfJson:
    """Makes nodes of parsed JSON, each at the line of its key.

    Args:
        text: the whole of it: keys come in the order of the values that stand at them.
    """

    def __init__(self, text: str) -> None:
        self._lines = self._keys(text)
        self._room = MOST_NODES

    @staticmethod
    def _keys(text: str) -> Iterator[int]:
        """The line of each key, in the order of the text."""
        line, at = 1, 0
        for found in _STRINGS.finditer(text):
            if found[1]:
                line += text.count("\n", at, found.start())
                at = found.start()
                yield line

    def node(self, value: object, line: int, depth: int = 1) -> Node:
        """A value at a line."""
        self._room -= 1
        if self._room < 0:
            raise TooMany(f"more than {MOST_NODES:,} values", line)
        if isinstance(value, str):
            return Node(Kind.TEXT, line, str(value), type(value) is _Number)
        if depth > DEEPEST:
            raise TooDeep(f"nested more than {DEEPEST} levels deep", line)
        if isinstance(value, _Pairs):
            first = 0
            pairs = []
            for key, each in value:
                at = next(self._lines, line)
                first = first or at
                pairs.append((key, self.node(each, at, depth + 1)))
            return Node(Kind.MAPPING, line, "", False, (), tuple(pairs))
        if isinstance(value, list):
            return Node(Kind.LIST, line, "", False, tuple(self.entry(each, line, depth + 1) for each in value))
        if value is None:
            return Node(Kind.NOTHING, line)
        return Node(Kind.TEXT, line, "true" if value else "false", True)

    def entry(self, value: object, line: int, depth: int) -> Node:
        """A value of a list: an object stands where its first key does."""
        node = self.node(value, line, depth)
        return node._replace(line=node.pairs[0][1].line) if node.pairs else node
