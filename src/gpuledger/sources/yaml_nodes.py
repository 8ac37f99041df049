"""A YAML document as nodes that know their lines: mappings are asked for keys, and answer or refuse.

Objects are never constructed. Size and depth are bounded before anything walks the document, since a
few lines of aliases can stand for billions of nodes and a few thousand brackets exhaust the stack.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml
from yaml.composer import Composer
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.resolver import Resolver

from gpuledger.errors import BadInput

DEEPEST = 100
"""Levels: accounts of a tree of shares may stand 47 below one another. Each costs Python three calls."""

MOST_NODES = 100_000
"""Nodes, each alias counted as all that it stands for."""

_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(
    _TAG + name for name in ("str", "int", "float", "bool", "null", "timestamp", "seq", "map", "merge", "value")
)


_HINT = "the document starts like: services: [{service: NAME, match: {unit: PATTERN}}]"


def compose(
    text: str, *, path: str, place: str = "the policy", hint: str = _HINT, is_stored: bool = False
) -> MappingReader:
    """The document's top mapping.

    Args:
        text: the whole document.
        path: the file as the user named it.
        place: how messages call the document.
        hint: what it starts like, told where it is no such document at all.
        is_stored: whether it was composed before without an error: then libyaml scans it, five times as fast.

    Raises:
        BadInput: ``policy-not-yaml``, ``policy-empty``, ``policy-not-mapping``, ``policy-too-large``,
            ``policy-duplicate-key`` or ``policy-bad-value``; each names the line.
    """
    try:
        root = _scanned_fast(text) if is_stored else None
        root = root or yaml.compose(text, Loader=_BoundedLoader)
    except _TooDeep as error:
        raise _too_deep(path, error.problem_mark.line + 1 if error.problem_mark else 0) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        message = f"not YAML: {said or 'cannot be read'}"
        raise BadInput("policy-not-yaml", message, path=path, line=mark.line + 1 if mark else 0, hint=hint) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"not text: the character U+{ord(text[error.position]):04X} does not belong in a document"
        raise BadInput("policy-not-yaml", message, path=path, line=line, hint=hint) from None
    if root is None or (isinstance(root, yaml.ScalarNode) and root.tag == f"{_TAG}null"):
        raise BadInput("policy-empty", "the document is empty", path=path, hint=hint)
    if not isinstance(root, yaml.MappingNode):
        message = f"the document is {_kind(root)}, not a mapping of KEY: VALUE pairs"
        raise BadInput("policy-not-mapping", message, path=path, line=_line(root), hint=hint)
    _check(root, path)
    return MappingReader(root, path=path, place=place)


class MappingReader:
    """One mapping of the document.

    Args:
        node: the mapping's node, its keys already known to be unique scalars.
        path: the file as the user named it.
        place: how messages call this mapping.
    """

    def __init__(self, node: yaml.MappingNode, *, path: str, place: str) -> None:
        self._path = path
        self._place = place
        self._line = _line(node)
        self._nodes: dict[str, tuple[yaml.ScalarNode, yaml.Node]] = {
            key.value: (key, value) for key, value in node.value
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The keys as written, in the order of the document."""
        return tuple(self._nodes)

    def line_of(self, key: str) -> int:
        """The 1-based line of a key; of the mapping where it lacks the key."""
        return _line(self._nodes[key][0]) if key in self._nodes else self._line

    def is_list(self, key: str) -> bool:
        """Whether a list stands under ``key``."""
        return isinstance(self._nodes.get(key, (None, None))[1], yaml.SequenceNode)

    def error(self, code: str, message: str, key: str, hint: str = "") -> BadInput:
        """A refusal that names the line of ``key``."""
        return BadInput(code, message, path=self._path, line=self.line_of(key), hint=hint)

    def refuse_unknown(self, known: tuple[str, ...]) -> None:
        """Refuse any key that is not among ``known``."""
        for key in self._nodes:
            if key not in known:
                message = f"unknown key {_shown(key)} in {self._place}"
                raise self.error("policy-unknown-key", message, key, f"known keys here: {', '.join(known)}")

    def text(self, key: str, *, required: bool = False, printable: bool = True) -> str:
        """The text under ``key``; empty where it is not written and not required."""
        node = self._nodes.get(key, (None, None))[1]
        if node is None:
            if required:
                raise self._lacks(key)
            return ""
        return self._text(key, node, printable=printable)

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of texts under ``key``; empty where it is not written."""
        return tuple(self._text(key, node) for node in self._list(key))

    def moment_text(self, key: str) -> str:
        """The text of a time under ``key``, which YAML may take for one of its own times."""
        node = self._nodes.get(key, (None, None))[1]
        if node is None:
            return ""
        if isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}timestamp":
            return str(node.value)
        return self._text(key, node)

    def written(self, key: str, hint: str = "") -> str:
        """The text of a plain value under ``key``, whatever YAML takes it for: a number, a time, a truth value.

        Args:
            key: where it stands.
            hint: what to write, told where there is no such value.
        """
        node = self._nodes.get(key, (None, None))[1]
        return "" if node is None else self._written(key, node, hint=hint)

    def all_written(self, key: str) -> tuple[str, ...]:
        """The list of plain values under ``key``, as :meth:`written`; empty text is one of them."""
        return tuple(self._written(key, node, empty=True) for node in self._list(key))

    def mapping(self, key: str, *, required: bool = False) -> MappingReader | None:
        """The mapping under ``key``; ``None`` where it is not written and not required."""
        node = self._nodes.get(key, (None, None))[1]
        if node is None:
            if required:
                raise self._lacks(key)
            return None
        return self._mapping(key, node)

    def mappings(self, key: str) -> tuple[MappingReader, ...]:
        """The list of mappings under ``key``; empty where it is not written."""
        return tuple(self._mapping(key, node, f"entry {n} of `{key}`") for n, node in enumerate(self._list(key), 1))

    def entries(self) -> list[tuple[str, MappingReader]]:
        """Every key with the mapping under it, where the keys are names."""
        for key in self._nodes:
            if not key.strip() or not key.isprintable():
                raise self.error("policy-bad-value", f"{_shown(key)} is not a name", key, "names are printable text")
        return [(key, self._mapping(key, node)) for key, (_, node) in self._nodes.items()]

    def _text(self, key: str, node: yaml.Node, *, printable: bool = True, hint: str = "") -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag != f"{_TAG}str":
            quoted = isinstance(node, yaml.ScalarNode) and node.tag != f"{_TAG}null"
            meant = f"if it is meant as text, quote it: {key}: {_shown(node.value)}" if quoted else f"write {key}: TEXT"
            raise self._wrong(key, node, "text", hint or meant)
        value = str(node.value)
        if not value.strip():
            raise self._wrong(key, node, "text", hint or "leave the key out where there is nothing to say")
        if printable and not (value.isprintable() and value == value.strip()):
            hint = "remove line breaks, control characters and outer blanks"
            raise self.error("policy-bad-value", f"`{key}` must be one printable line, not {_shown(value)}", key, hint)
        return value

    def _written(self, key: str, node: yaml.Node, *, empty: bool = False, hint: str = "") -> str:
        if empty and isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}str" and not node.value:
            return ""
        if isinstance(node, yaml.ScalarNode) and node.tag not in (f"{_TAG}str", f"{_TAG}null"):
            return str(node.value)
        return self._text(key, node, hint=hint)

    def _mapping(self, key: str, node: yaml.Node, place: str = "") -> MappingReader:
        if not isinstance(node, yaml.MappingNode):
            raise self._wrong(key, node, "a mapping", "write KEY: VALUE pairs below it, or {KEY: VALUE}", place)
        return MappingReader(node, path=self._path, place=place or f"`{key}`")

    def _list(self, key: str) -> list[yaml.Node]:
        node = self._nodes.get(key, (None, None))[1]
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            raise self._wrong(key, node, "a list", "write [A, B], or one `- A` a line")
        return list(node.value)

    def _lacks(self, key: str) -> BadInput:
        return self.error("policy-missing-key", f"{self._place} lacks `{key}`", key, f"add {key}: ...")

    def _wrong(self, key: str, node: yaml.Node, wanted: str, hint: str, place: str = "") -> BadInput:
        message = f"{place or f'`{key}`'} must be {wanted}, not {_kind(node)}"
        return BadInput("policy-bad-value", message, path=self._path, line=_line(node), hint=hint)


class _TooDeep(yaml.MarkedYAMLError):
    """The composer recurses once a level, so it stops long before Python's stack does."""


class _Bounded(Composer):
    """Composes :data:`DEEPEST` levels and no more."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _TooDeep(problem_mark=self.peek_event().start_mark)  # type: ignore[attr-defined]
        node: yaml.Node | None = super().compose_node(parent, index)  # type: ignore[arg-type]
        self.depth -= 1
        return node


class _BoundedLoader(_Bounded, yaml.SafeLoader):
    """Reader, scanner and parser in Python: their errors name the line, in the words that people find explained."""


def _scanned_fast(text: str) -> yaml.Node | None:
    """The document by libyaml's events; None where it says something against the text.

    The composer and the resolver are the same, so the nodes are. Who writes a document is told of its errors by the
    other one, in its words.
    """
    try:
        return _FastLoader(text).get_single_node()
    except yaml.YAMLError:
        return None


class _FastLoader(_Bounded, CParser, Resolver):
    """Events of libyaml, nodes of the same composer."""

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        Resolver.__init__(self)


def _check(root: yaml.Node, path: str) -> None:
    """Refuse duplicate and odd keys, foreign tags, and documents that unfold beyond the limits."""
    seen = 0
    waiting: list[tuple[yaml.Node, int]] = [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        seen += 1
        if depth > DEEPEST:
            raise _too_deep(path, _line(node))
        if seen > MOST_NODES:
            message = f"unfolds to more than {MOST_NODES:,} values"
            raise BadInput(
                "policy-too-large", message, path=path, line=_line(node), hint="write it without aliases (*)"
            )
        if node.tag not in _PLAIN_TAGS:
            raise _foreign_tag(node, path)
        if isinstance(node, yaml.MappingNode):
            _check_keys(node, path)
        waiting.extend((child, depth + 1) for child in _children(node))


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        for _, value in node.value:
            yield value


def _check_keys(node: yaml.MappingNode, path: str) -> None:
    first: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag in (f"{_TAG}null", f"{_TAG}merge"):
            message = f"a key must be a name, not {_kind(key)}"
            raise BadInput("policy-bad-value", message, path=path, line=_line(key), hint="write NAME: VALUE")
        if key.tag not in _PLAIN_TAGS:
            raise _foreign_tag(key, path)
        if key.value in first:
            message = (
                f"the key {_shown(key.value)} stands twice, first on line {first[key.value]}; one would hide the other"
            )
            raise BadInput("policy-duplicate-key", message, path=path, line=_line(key), hint="merge the two")
        first[key.value] = _line(key)


def _foreign_tag(node: yaml.Node, path: str) -> BadInput:
    message = f"the tag {_shown(node.tag)} is not allowed"
    return BadInput("policy-bad-value", message, path=path, line=_line(node), hint="write plain text")


def _too_deep(path: str, line: int) -> BadInput:
    message = f"nested more than {DEEPEST} levels deep"
    return BadInput("policy-too-large", message, path=path, line=line, hint="check that this is the right file")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    word = node.tag.removeprefix(_TAG)
    names = {"null": "nothing", "str": "empty text" if not node.value.strip() else "text", "merge": "a merge (<<)"}
    return names.get(word, f"the {word} {_shown(node.value)}")


def _shown(value: str) -> str:
    """A value in quotes, short enough for a message, its control characters made visible."""
    return repr(value if len(value) <= 60 else f"{value[:59]}…")
