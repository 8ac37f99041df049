"""Patches of Kustomize over nodes: strategic merges, and JSON patches (RFC 6902).

In: a value and what is laid over it. Out: the value that comes of it, each part with a line of the text it is laid
over: a finding then points at the manifest, not at a line of another file.
Sources: Kubernetes' merge keys (k8s.io/api, ``patchMergeKey``), RFC 6902 and 6901.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gpuledger.audit.document_node import NOTHING, Kind, Node

_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
}
"""Lists whose entries are told apart by a key; every other list is replaced whole."""

MOST_OPERATIONS = 1_000
"""Of one JSON patch; each walks what it is laid over."""


class DoesNotApply(Exception):
    """A patch that has no place in what it is laid over.

    Args:
        message: why, in words.
    """


def placed(node: Node, line: int) -> Node:
    """A value with one line throughout."""
    entries = tuple(placed(each, line) for each in node.entries)
    pairs = tuple((key, placed(value, line)) for key, value in node.pairs)
    return node._replace(line=line, entries=entries, pairs=pairs)


def merged(base: Node, patch: Node, *, strategic: bool, key: str = "") -> Node:
    """A value with a patch merged into it; nothing where the patch deletes it.

    Args:
        base: the value; nothing where there is none yet, and then its line must be that of what it goes into.
        patch: as written; null deletes a key.
        strategic: whether lists merge by the keys of Kubernetes' own kinds; those of other kinds are replaced.
        key: under which the value stands.
    """
    if patch.kind is Kind.MAPPING:
        directive = patch.at("$patch").text
        if directive == "delete":
            return NOTHING
        if base.kind is not Kind.MAPPING or directive == "replace":
            base = Node(kind=Kind.MAPPING, line=base.line)
        return _mapping(base, patch, strategic=strategic)
    if patch.kind is Kind.LIST and base.kind is Kind.LIST and strategic and key in _MERGE_KEYS:
        return _list(base, patch, _MERGE_KEYS[key])
    return placed(patch, base.line)


def _mapping(base: Node, patch: Node, *, strategic: bool) -> Node:
    held = dict(base.pairs)
    new: dict[str, Node] = {}
    for key, value in patch.pairs:
        if key.startswith("$"):
            continue
        now = held[key] if key in held else base.at(key) if "<<" in held else NOTHING
        under = now if now.is_there else Node(kind=Kind.NOTHING, line=base.line)
        new[key] = merged(under, value, strategic=strategic, key=key) if value.is_there else NOTHING
    pairs = (
        [(key, new.pop(key, NOTHING) if key in new else value) for key, value in held.items()] if new else base.pairs
    )
    return base._replace(pairs=tuple((key, value) for key, value in (*pairs, *new.items()) if value.is_there))


def _list(base: Node, patch: Node, key: str) -> Node:
    """Entries merged by a key; new ones behind those that are there."""
    given = [each for each in patch.entries if not (each.at("$patch").text == "replace" and len(each.pairs) == 1)]
    entries = list(base.entries) if len(given) == len(patch.entries) else []
    places = {each.at(key).text: place for place, each in enumerate(entries)}
    for each in given:
        place = places.setdefault(each.at(key).text, len(entries))
        if place == len(entries):
            entries.append(NOTHING)
        under = entries[place] if entries[place].is_there else Node(kind=Kind.NOTHING, line=base.line)
        entries[place] = merged(under, each, strategic=True)
    return base._replace(entries=tuple(each for each in entries if each.is_there))


def patched(root: Node, operations: Node) -> Node:
    """A value after the operations of a JSON patch.

    Args:
        root: the value.
        operations: a list of ``{op, path, value}``.

    Raises:
        DoesNotApply: a path that leads nowhere, a test that fails, or an operation that is none.
    """
    if len(operations.entries) > MOST_OPERATIONS:
        raise DoesNotApply(f"it has more than {MOST_OPERATIONS:,} operations")
    for each in operations.entries:
        word, path = each.at("op").text, _steps(each.at("path").text)
        if word in ("move", "copy"):
            source = _steps(each.at("from").text)
            value = _found(root, source)
            root = _edited(root, source, None, adds=False) if word == "move" else root
            root = _edited(root, path, value, adds=True)
        elif word in ("add", "replace"):
            root = _edited(root, path, each.at("value"), adds=word == "add")
        elif word == "remove":
            root = _edited(root, path, None, adds=False)
        elif word != "test":
            raise DoesNotApply(f"{word or 'nothing'} is no operation of a JSON patch")
        elif _bare(_found(root, path)) != _bare(each.at("value")):
            raise DoesNotApply(f"its test of {each.at('path').text} fails")
    return root


def _steps(path: str) -> tuple[str, ...]:
    if path and not path.startswith("/"):
        raise DoesNotApply(f"{path} is no path of a JSON patch")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:])


def _bare(node: Node) -> Node:
    """A value as it is compared: without lines, its keys in order."""
    return Node(
        kind=node.kind,
        text=node.text,
        entries=tuple(_bare(each) for each in node.entries),
        pairs=tuple(sorted((key, _bare(value)) for key, value in node.pairs)),
    )


def _found(root: Node, path: Sequence[str]) -> Node:
    node = root
    for step in path:
        node = node.at(int(step)) if node.kind is Kind.LIST and step.isdigit() else node.at(step)
        if not node.is_there:
            raise DoesNotApply(f"there is no /{'/'.join(path)}")
    return node


def _edited(node: Node, path: Sequence[str], value: Node | None, *, adds: bool) -> Node:
    """A value with another one at a path below it; ``None`` takes out what stands there."""
    if not path:
        if value is None:
            raise DoesNotApply("it takes out the whole object")
        return placed(value, node.line)
    step, rest = path[0], path[1:]
    if node.kind is Kind.LIST:
        return _edited_list(node, step, rest, value, adds=adds)
    now = node.at(step)
    if node.kind is not Kind.MAPPING or (not now.is_there and (rest or not adds)):
        raise DoesNotApply(f"there is no {step} in it")
    pairs = [pair for pair in node.pairs if pair[0] != step]
    if value is None and not rest:
        return node._replace(pairs=tuple(pairs))
    under = now if now.is_there else Node(kind=Kind.NOTHING, line=node.line)
    return node._replace(pairs=(*pairs, (step, _edited(under, rest, value, adds=adds))))


def _edited_list(node: Node, step: str, rest: Sequence[str], value: Node | None, *, adds: bool) -> Node:
    entries = list(node.entries)
    inserts = adds and not rest and value is not None
    if step == "-" and inserts and value is not None:
        return node._replace(entries=(*entries, placed(value, node.line)))
    if not re.fullmatch(r"\d{1,6}", step) or int(step) >= len(entries) + inserts:
        raise DoesNotApply(f"there is no entry {step} in its list")
    place = int(step)
    if inserts and value is not None:
        entries.insert(place, placed(value, node.line))
    elif value is None and not rest:
        del entries[place]
    else:
        entries[place] = _edited(entries[place], rest, value, adds=adds)
    return node._replace(entries=tuple(entries))


def changed(node: Node, path: Sequence[str], change: Callable[[Node], Node]) -> Node:
    """A value with what stands at a path of keys changed; as it is where nothing stands there.

    Args:
        node: the value.
        path: keys; ``*`` for every entry of a list.
        change: what comes of each.
    """
    if not path:
        return change(node)
    step, rest = path[0], path[1:]
    if step == "*":
        return node._replace(entries=tuple(changed(each, rest, change) for each in node.entries))
    if not node.at(step).is_there:
        return node
    pairs = tuple((key, changed(value, rest, change) if key == step else value) for key, value in node.pairs)
    return node._replace(pairs=pairs)
