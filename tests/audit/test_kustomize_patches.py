"""Patches over nodes: what merges, what is replaced, what has no place; and lines stay those of what is patched."""

from __future__ import annotations

import json

import pytest

from gpuledger.audit.document_node import Kind, Node
from gpuledger.audit.documents import documents
from gpuledger.audit.kustomize_patches import MOST_OPERATIONS, DoesNotApply, changed, merged, patched
from gpuledger.model.findings import Written


def node(text: str) -> Node:
    return documents(Written(path="f", text=text))[0][0].root


def plain(given: Node) -> object:
    if given.kind is Kind.LIST:
        return [plain(each) for each in given.entries]
    return {key: plain(value) for key, value in given.pairs} if given.kind is Kind.MAPPING else given.text


@pytest.mark.parametrize(
    ("base", "patch", "came"),
    [
        ("{a: 1, b: {c: 2}}", "{b: {d: 3}}", {"a": "1", "b": {"c": "2", "d": "3"}}),
        ("{a: 1, b: 2}", "{b: null}", {"a": "1"}),
        ("{b: {c: 2}}", "{b: {$patch: replace, d: 3}}", {"b": {"d": "3"}}),
        ("{b: {c: 2}, e: 1}", "{b: {$patch: delete}}", {"e": "1"}),
        ("{args: [x, y]}", "{args: [z]}", {"args": ["z"]}),
        ("{env: [{name: A, value: 1}]}", "{env: [{name: B, value: 2}, {name: A, value: 3}]}",
         {"env": [{"name": "A", "value": "3"}, {"name": "B", "value": "2"}]}),
        ("{env: [{name: A}, {name: B}]}", "{env: [{name: A, $patch: delete}]}", {"env": [{"name": "B"}]}),
        ("{env: [{name: A}]}", "{env: [{$patch: replace}, {name: B}]}", {"env": [{"name": "B"}]}),
        ("{env: [{name: A}]}", "{$setElementOrder/env: [{name: A}], env: [{name: A, value: 1}]}",
         {"env": [{"name": "A", "value": "1"}]}),
        ("{volumeMounts: [{mountPath: /a, name: x}]}", "{volumeMounts: [{mountPath: /a, name: y}]}",
         {"volumeMounts": [{"mountPath": "/a", "name": "y"}]}),
        ("{a: [1]}", "{a: {b: 2}}", {"a": {"b": "2"}}),
        ("{<<: {a: {b: 1}}}", "{a: {c: 2}}", {"<<": {"a": {"b": "1"}}, "a": {"b": "1", "c": "2"}}),
    ],
)  # fmt: skip
def test_a_strategic_merge(base: str, patch: str, came: object) -> None:
    """Mappings merge, null deletes, known lists merge by their key, other lists are replaced."""
    assert plain(merged(node(base), node(patch), strategic=True)) == came


def test_lists_of_other_kinds_are_replaced() -> None:
    """Kustomize knows the keys of Kubernetes' own kinds only."""
    came = merged(node("{env: [{name: A}]}"), node("{env: [{name: B}]}"), strategic=False)
    assert plain(came) == {"env": [{"name": "B"}]}


def test_lines_are_those_of_what_is_patched() -> None:
    """A finding points into the manifest, wherever its patch stands."""
    base = node("a: 1\nspec:\n  hostPID: false\n")
    came = merged(base, node("\n\n\n\n\nspec:\n  hostPID: true\n  new: {deep: 1}\n"), strategic=True)
    assert came.at("spec", "hostPID")[:3] == (Kind.TEXT, 3, "true")
    assert came.at("spec", "new", "deep").line == 2


@pytest.mark.parametrize(
    ("operations", "came"),
    [
        ([{"op": "add", "path": "/b", "value": True}], {"a": ["1", "2"], "c": {"d": "x"}, "b": "true"}),
        ([{"op": "add", "path": "/a/-", "value": 3}], {"a": ["1", "2", "3"], "c": {"d": "x"}}),
        ([{"op": "add", "path": "/a/0", "value": 3}], {"a": ["3", "1", "2"], "c": {"d": "x"}}),
        ([{"op": "replace", "path": "/a/1", "value": 3}], {"a": ["1", "3"], "c": {"d": "x"}}),
        ([{"op": "remove", "path": "/a/0"}], {"a": ["2"], "c": {"d": "x"}}),
        ([{"op": "remove", "path": "/c/d"}], {"a": ["1", "2"], "c": {}}),
        ([{"op": "move", "from": "/c/d", "path": "/e"}], {"a": ["1", "2"], "c": {}, "e": "x"}),
        ([{"op": "copy", "from": "/c/d", "path": "/a/-"}], {"a": ["1", "2", "x"], "c": {"d": "x"}}),
        ([{"op": "test", "path": "/c", "value": {"d": "x"}}], {"a": ["1", "2"], "c": {"d": "x"}}),
        ([{"op": "add", "path": "/c/x~1y~0z", "value": 1}], {"a": ["1", "2"], "c": {"d": "x", "x/y~z": "1"}}),
    ],
)
def test_a_json_patch(operations: list[dict[str, object]], came: object) -> None:
    """Each operation, at keys and places."""
    assert plain(patched(node("{a: [1, 2], c: {d: x}}"), node(json.dumps(operations)))) == came


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/gone", "value": 1},
        {"op": "add", "path": "/gone/deep", "value": 1},
        {"op": "add", "path": "/a/9", "value": 1},
        {"op": "remove", "path": "/a/x"},
        {"op": "remove", "path": "/gone"},
        {"op": "remove", "path": ""},
        {"op": "copy", "from": "/gone", "path": "/b"},
        {"op": "test", "path": "/a/0", "value": 9},
        {"op": "paint", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
    ],
)
def test_what_has_no_place(operation: dict[str, object]) -> None:
    """Kustomize would stop there, and so does this, with words."""
    with pytest.raises(DoesNotApply) as told:
        patched(node("{a: [1, 2]}"), node(json.dumps([operation])))
    assert str(told.value)


def test_a_json_patch_has_a_bound() -> None:
    """Each operation walks the object."""
    many = [{"op": "add", "path": "/a", "value": 1}] * (MOST_OPERATIONS + 1)
    with pytest.raises(DoesNotApply, match="more than"):
        patched(node("{a: 1}"), node(json.dumps(many)))


def test_a_change_below_a_path() -> None:
    """Every entry of a list; what is not there stays so."""
    came = changed(node("{a: [{b: 1}, {c: 2}]}"), ("a", "*", "b"), lambda old: old._replace(text="9"))
    assert plain(came) == {"a": [{"b": "9"}, {"c": "2"}]}
