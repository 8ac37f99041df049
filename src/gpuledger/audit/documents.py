"""YAML and JSON as nodes that know their lines: what audits read manifests, rules, nodes and waivers with.

In: a text of any number of documents. Out: the documents that could be read, and a problem for each that could not.
Nothing is constructed. Depth and size are bounded while reading, each alias counted as all that it stands for, since
a few lines of aliases can stand for billions of values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from gpuledger.audit.document_node import (
    DEEPEST,
    MOST_NODES,
    NOTHING,
    Kind,
    Node,
    NotYaml,
    TooDeep,
    TooMany,
    Unreadable,
)
from gpuledger.audit.json_text import json_root
from gpuledger.audit.templates import MARK, conditional_lines, expressions, untemplated
from gpuledger.model.findings import Written
from gpuledger.model.problem import Problem

__all__ = [
    "DEEPEST", "LARGEST", "MOST_DOCUMENTS", "MOST_NODES", "NOTHING", "Document", "Kind", "Node", "documents", "objects",
]  # fmt: skip

MOST_DOCUMENTS = 10_000
"""Of one text. A whole cluster dumped object by object stays below it."""

LARGEST = 64 * 1024 * 1024
"""Characters of one text."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser where PyYAML has it: ten times faster, the same events."""

_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a text.

    Args:
        path: the file as the user named it.
        line: where it begins, 1-based.
        root: its top value.
        expressions: of a template that had to be made into YAML, what stood in its double braces, in order;
            empty for plain YAML.
        conditional: lines of a template that stand there only if a condition holds.
        built_by: the kustomization that makes it so; empty for a text as it lies there.
    """

    path: str
    line: int
    root: Node
    expressions: tuple[str, ...] = ()
    conditional: frozenset[int] = frozenset()
    built_by: str = ""

    @property
    def is_template(self) -> bool:
        """Whether it is no YAML before Helm has filled it."""
        return bool(self.expressions)

    def shown(self, text: str) -> str:
        """A text of the document as it was written, its expressions back in their braces."""
        return re.sub(f"{MARK}(\\d+){MARK}", lambda found: "{{ " + self.expressions[int(found[1])] + " }}", text)


def documents(written: Written) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    """Every document of a text; a template that is not YAML is read with its expressions as opaque values.

    Returns:
        The documents in order, and one problem (``not-yaml``, ``too-deep``, ``too-many-values``) for each part
        that could not be read. Empty documents are left out.
    """
    found: list[Document] = []
    unread: list[Problem] = []
    if len(written.text) > LARGEST:
        message = f"more than {LARGEST:,} characters"
        return (), (Problem(code="too-many-values", message=message, where=f"{written.path}:1"),)
    text = written.text.lstrip("\ufeff")
    if text.lstrip()[:1] in ("{", "["):
        try:
            whole = json_root(text)
        except Unreadable as error:
            return (), (error.problem(written.path),)
        if whole is not None:
            return (Document(path=written.path, line=1, root=whole),), ()
    for number, (line, part) in enumerate(_parts(text)):
        if number >= MOST_DOCUMENTS:
            message = f"more than {MOST_DOCUMENTS:,} documents in one text; the others were not read"
            unread.append(Problem(code="too-many-values", message=message, where=f"{written.path}:{line}"))
            break
        held: tuple[str, ...] = ()
        perhaps: frozenset[int] = frozenset()
        try:
            root = _Composer(line).compose(part)
        except Unreadable as first:
            if "{{" not in part:
                unread.append(first.problem(written.path))
                continue
            try:
                root = _Composer(line).compose(untemplated(part))
                held = expressions(part)
                perhaps = frozenset(line - 1 + each for each in conditional_lines(part))
            except Unreadable as error:
                unread.append(error.problem(written.path, template=True))
                continue
        if root.is_there:
            found.append(Document(path=written.path, line=line, root=root, expressions=held, conditional=perhaps))
    return tuple(found), tuple(unread)


def objects(document: Document) -> Iterator[Node]:
    """The Kubernetes objects of a document: itself, or the entries of a ``List`` of any kind.

    Entries of a ``NodeList``, as the API itself gives it, do not say their kind: it is the list's.
    """
    root = document.root
    items = root.at("items")
    if root.kind is Kind.LIST:
        yield from (entry for entry in root.entries if entry.kind is Kind.MAPPING)
    elif root.at("kind").text.endswith("List") and items.kind is Kind.LIST:
        word = root.at("kind").text.removesuffix("List")
        kind = (("kind", Node(Kind.TEXT, root.line, word)),) if word else ()
        for entry in items.entries:
            if entry.kind is Kind.MAPPING:
                yield entry if entry.at("kind").is_there else entry._replace(pairs=(*kind, *entry.pairs))
    elif root.kind is Kind.MAPPING:
        yield root


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """The text cut before each line that begins a document, with the lines they start at.

    Three dashes at the start of a line begin a document wherever they stand (YAML 1.2.2, 9.1.2), so one that is
    broken does not hide the others.
    """
    starts = [0, *(found.start() for found in _START.finditer(text) if found.start())]
    line = 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        if any(not row.lstrip().startswith(("#", "%")) and row.strip() not in ("", "---") for row in part.split("\n")):
            yield line, part
        line += part.count("\n")


class _Open:
    """A list or mapping that is being read."""

    def __init__(self, event: yaml.NodeEvent, line: int) -> None:
        self.is_mapping = isinstance(event, yaml.MappingStartEvent)
        self.anchor = event.anchor
        self.line = line
        self.children: list[tuple[Node, int]] = []
        self.size = 1


class _Composer:
    """Makes nodes of one document's events, within the bounds.

    Args:
        first: the line at which the document begins.
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._open: list[_Open] = []
        self._root = NOTHING

    def compose(self, text: str) -> Node:
        try:
            for event in yaml.parse(text, Loader=_LOADER):
                self._take(event)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            said = ", ".join(part for part in (error.context, error.problem) if part)
            raise NotYaml(f"not YAML: {said}", self._first + (mark.line if mark else 0)) from None
        except yaml.YAMLError as error:
            said = str(error).splitlines()[0]
            raise NotYaml(f"not a text of YAML: {said}", self._first) from None
        return self._root

    def _take(self, event: yaml.Event) -> None:
        line = self._first + (event.start_mark.line if event.start_mark else 0)
        if isinstance(event, yaml.ScalarEvent):  # first, for most are
            quoted = event.style in ("'", '"', "|", ">")
            is_null = not quoted and event.value in _NULLS and not event.tag
            kind = Kind.NOTHING if is_null else Kind.TEXT
            self._put(Node(kind, line, event.value, not quoted), event.anchor, 1, line)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise NotYaml(f"the alias *{event.anchor} stands for nothing before it", line)
            self._put(*self._known(event.anchor), line)
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(self._open) >= DEEPEST:
                raise TooDeep(f"nested more than {DEEPEST} levels deep", line)
            self._open.append(_Open(event, line))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close(line)

    def _known(self, anchor: str) -> tuple[Node, None, int]:
        node, size = self._anchors[anchor]
        return node, None, size

    def _close(self, line: int) -> None:
        done = self._open.pop()
        if done.is_mapping:
            if any(key.kind in (Kind.LIST, Kind.MAPPING) for key, _ in done.children[::2]):
                # what `a: {{ .Values.b }}` is to YAML, and no document that anybody writes
                raise NotYaml("not YAML: a key that is a mapping or a list", done.line)
            halves = iter(done.children)
            pairs = tuple((key.text, _placed(value, at)) for (key, at), (value, _) in zip(halves, halves, strict=False))
            node = Node(kind=Kind.MAPPING, line=done.line, pairs=pairs)
        else:
            node = Node(kind=Kind.LIST, line=done.line, entries=tuple(child for child, _ in done.children))
        self._put(node, done.anchor, done.size, line)

    def _put(self, node: Node, anchor: str | None, size: int, line: int) -> None:
        if anchor:
            self._anchors[anchor] = (node, size)
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        parent.size += size
        if parent.size > MOST_NODES:
            raise TooMany(f"unfolds to more than {MOST_NODES:,} values", line)
        parent.children.append((node, line if node.kind is not Kind.LIST or not node.line else node.line))


def _placed(node: Node, line: int) -> Node:
    """A value with the line of its key."""
    if node.line == line:
        return node
    return node._replace(line=line)
