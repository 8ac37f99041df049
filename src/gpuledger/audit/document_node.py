"""One value of a YAML or JSON text, with its line; and what is said where a text cannot be read."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from gpuledger.audit.templates import MARK
from gpuledger.model.problem import Problem

DEEPEST = 100
"""Levels. Kubernetes objects and dashboards stay below 30."""

MOST_NODES = 1_000_000
"""Values of one text. A Node as `kubectl get nodes -o json` prints it has about 600."""

_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Kind(StrEnum):
    """What a node is."""

    NOTHING = "nothing"
    TEXT = "text"
    LIST = "list"
    MAPPING = "mapping"


class Node(NamedTuple):
    """One value of a document; a place where none stands is a node of kind ``nothing``.

    Args:
        kind: what it is; an explicit null is ``nothing`` too.
        line: 1-based, of its key where it has one; 0 where nothing stands.
        text: of a text, as written after unquoting.
        plain: whether the text was written without quotes, so that ``true`` and ``4`` are no words.
        entries: of a list.
        pairs: of a mapping, in the order of the text; a key that stands twice is there twice.
    """

    kind: Kind
    line: int = 0
    text: str = ""
    plain: bool = False
    entries: tuple[Node, ...] = ()
    pairs: tuple[tuple[str, Node], ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether anything stands here."""
        return self.kind is not Kind.NOTHING

    @property
    def opaque(self) -> bool:
        """Whether a template gives its value, so that the text does not tell it."""
        return MARK in self.text or any(MARK in key for key, _ in self.pairs) or any(e.opaque for e in self.entries)

    def at(self, *path: str | int) -> Node:
        """What stands at a path of keys and places; of a key that stands twice, the last, as loaders take it."""
        node = self
        for step in path:
            node = node._entry(step) if isinstance(step, int) else node._under(step)
        return node

    def every(self, key: str) -> tuple[Node, ...]:
        """All that stands under a key: more than one where a template has branches."""
        return tuple(value for name, value in self.pairs if name == key)

    @property
    def truth(self) -> bool | None:
        """True or false; None where it is neither."""
        return _TRUTHS.get(self.text.lower())

    @property
    def whole(self) -> int | None:
        """A whole number, quoted or not; None where it is none."""
        return int(self.text) if re.fullmatch(r"-?[0-9]{1,18}", self.text) else None

    def _entry(self, place: int) -> Node:
        return self.entries[place] if -len(self.entries) <= place < len(self.entries) else NOTHING

    def _under(self, key: str) -> Node:
        found = [value for name, value in self.pairs if name == key]
        if found:
            return found[-1]
        merged = [source for name, value in self.pairs if name == "<<" for source in (value.entries or (value,))]
        return next((each for source in merged if (each := source.at(key)).is_there), NOTHING)


NOTHING = Node(kind=Kind.NOTHING)
"""The node of every place where nothing stands."""


class Unreadable(Exception):
    """A text that cannot be read.

    Args:
        message: why, in a sentence.
        line: where, 1-based.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message, self.line = message, line

    def problem(self, path: str, *, template: bool = False) -> Problem:
        """The problem of the document; ``template``: it was tried without its expressions too."""
        said = f"a template that is no YAML even without its expressions: {self.message}" if template else self.message
        return Problem(code="not-yaml", message=said, where=f"{path}:{self.line}")


class NotYaml(Unreadable):
    """Neither YAML nor JSON."""


class TooDeep(Unreadable):
    """Nested beyond the bound."""

    def problem(self, path: str, *, template: bool = False) -> Problem:
        """The problem of the document."""
        del template
        return Problem(code="too-deep", message=self.message, where=f"{path}:{self.line}")


class TooMany(Unreadable):
    """More values than the bound."""

    def problem(self, path: str, *, template: bool = False) -> Problem:
        """The problem of the document."""
        del template
        return Problem(code="too-many-values", message=self.message, where=f"{path}:{self.line}")
