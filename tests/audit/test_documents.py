"""YAML and JSON as nodes with lines: every document that can be read, a problem for each that cannot, within bounds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.audit.documents import DEEPEST, MOST_NODES, Kind, Node, documents, objects
from gpuledger.model.findings import Written


def read(text: str) -> tuple[list[Node], list[str]]:
    found, unread = documents(Written(path="f.yaml", text=text))
    return [document.root for document in found], [problem.code for problem in unread]


def test_values_with_their_lines() -> None:
    """A value stands at the line of its key, and says whether it was quoted."""
    (root,), unread = read("# about\na: 1\nb:\n  - c: 'true'\n    d: true\n  - |\n    text\ne: null\n")
    assert unread == []
    assert (root.at("a").whole, root.at("a").line) == (1, 2)
    assert (root.at("b").kind, root.at("b").line) == (Kind.LIST, 3)
    assert (root.at("b", 0, "c").truth, root.at("b", 0, "c").plain) == (True, False)
    assert (root.at("b", 0, "d").truth, root.at("b", 0, "d").plain, root.at("b", 0, "d").line) == (True, True, 5)
    assert root.at("b", 1).text == "text\n"
    assert not root.at("e").is_there
    assert not root.at("b", 7, "x", "y").is_there


def test_each_document_stands_alone() -> None:
    """One that is broken does not hide the others, and lines go on counting."""
    roots, unread = read("a: 1\n---\n b: [\n---\n# only a comment\n--- \nc: 3\n")
    assert [root.pairs[0][0] for root in roots] == ["a", "c"]
    assert roots[1].at("c").line == 7
    assert unread == ["not-yaml"]


def test_aliases_and_merged_keys() -> None:
    """What an alias stands for, and what `<<` brings where the mapping itself is silent."""
    (root,), _ = read("x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\nz: *x\nl: {<<: [{q: 5}, *x]}\n")
    assert [root.at("y", key).text for key in "ab"] == ["1", "3"]
    assert root.at("z", "a").text == "1"
    assert [root.at("l", key).text for key in "qa"] == ["5", "1"]


def test_objects_of_lists() -> None:
    """kubectl prints a List; its entries are the objects."""
    found, _ = documents(Written(path="f", text="kind: NodeList\nitems: [{kind: Node}, {kind: Node}, oops]"))
    assert [node.at("kind").text for node in objects(found[0])] == ["Node", "Node"]
    found, _ = documents(Written(path="f", text="kind: NodeList\nitems: [{metadata: {name: n}}]"))
    assert [node.at("kind").text for node in objects(found[0])] == ["Node"]
    found, _ = documents(Written(path="f", text="[{kind: Node}]"))
    assert len(list(objects(found[0]))) == 1


def test_json_that_is_no_yaml() -> None:
    """Escaped surrogates and tabs are JSON all the same; their lines are known too."""
    (root,), unread = read('{\n\t"a": "\\ud83d\\ude00", "b": [1, null, true, {"c": 2}]}')
    assert unread == []
    assert (root.at("a").text, root.at("b", 0).whole, root.at("b", 1).is_there) == ("\U0001f600", 1, False)
    assert (root.at("b", 2).truth, root.at("b", 3, "c").line) == (True, 2)


def test_json_with_lines() -> None:
    """What kubectl prints; a key inside a text is none, and one that stands twice is there twice."""
    (root,), _ = read(json.dumps({"items": [{"metadata": {"name": '"n": {'}}, 1.5, {"k": float("nan")}]}, indent=1))
    assert root.at("items", 0, "metadata", "name").line == 5
    assert root.at("items", 0).line == 4
    assert (root.at("items", 1).text, root.at("items", 2, "k").text, root.at("items", 2).line) == ("1.5", "NaN", 10)
    (twice,), _ = read('{"a": 1, "a": "2"}')
    assert [(node.text, node.plain) for node in twice.every("a")] == [("1", True), ("2", False)]


def test_flow_style_is_no_json() -> None:
    """It begins alike."""
    (root,), unread = read("{a: 1, b: [c, d]}")
    assert (root.at("b", 1).text, unread) == ("d", [])


def test_large_texts_that_are_cut_off_are_told_at_once() -> None:
    """By JSON's own parser, with the line; no second reading as YAML."""
    text = json.dumps([{"a": "x" * 50}] * 40_000, indent=1)
    _, (problem,) = documents(Written(path="f", text=text[:-10]))
    assert (problem.code, "not JSON" in problem.message) == ("not-yaml", True)


def test_too_many_documents_are_told() -> None:
    """The first ten thousand are read."""
    found, (problem,) = documents(Written(path="f", text="---\na: 1\n" * 10_001))
    assert (len(found), problem.code) == (10_000, "too-many-values")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: [1, 2", "not-yaml"),
        ('{"a": [1, {"b": "tr', "not-yaml"),
        ("a: \x00\x01", "not-yaml"),
        ("a: *nothing", "not-yaml"),
        ("a: &a [*a]", "not-yaml"),
        ("[" * 300, "too-deep"),
        ("{a: " * 100_000, "too-deep"),
        ('[{"a":' * 100_000, "too-deep"),
        ("- " * 100_000, "too-deep"),
    ],
)
def test_what_cannot_be_read_is_told(text: str, code: str) -> None:
    """Truncated, binary, bottomless, or holding itself: a problem, at once."""
    roots, unread = read(text)
    assert (roots, unread) == ([], [code])


def test_a_bomb_of_aliases_does_not_unfold() -> None:
    """Nine lines that stand for a billion values are refused by their size."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    roots, unread = read("\n".join(lines))
    assert (roots, unread) == ([], ["too-many-values"])
    assert MOST_NODES <= 10**6


def test_depth_within_the_bound_is_read() -> None:
    """The bound is what it says."""
    roots, unread = read("[" * DEEPEST + "]" * DEEPEST)
    assert (len(roots), unread) == (1, [])


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab:-{}[]&*<#|>'\"\n\t \ue0000{{}}", max_size=60))
def test_nothing_makes_it_fall(text: str) -> None:
    """Whatever stands there: documents or problems."""
    found, unread = documents(Written(path="f", text=text))
    for document in found:
        assert document.root.is_there
        list(objects(document))
        document.root.opaque  # noqa: B018 - asked, not used
    assert all(problem.where.startswith("f:") for problem in unread)
