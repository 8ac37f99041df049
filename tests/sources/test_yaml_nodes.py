"""YAML nodes: mappings that know their lines."""

from __future__ import annotations

import pytest
import yaml

from gpuledger.errors import BadInput
from gpuledger.sources import yaml_nodes
from gpuledger.sources.yaml_nodes import DEEPEST, compose


def test_names_and_lines_are_those_of_the_document() -> None:
    """A mapping gives its keys in order, and the line of each."""
    document = compose("a: x\n\nb:\n  c: y\n", path="f")
    assert document.names == ("a", "b")
    assert [document.line_of(name) for name in document.names] == [1, 3]
    inner = document.mapping("b")
    assert inner is not None
    assert inner.line_of("not there") == 4
    assert inner.text("c") == "y"


def test_absent_parts_are_empty_unless_required() -> None:
    """What is not written is empty; what is required and not written is refused."""
    document = compose("a: x", path="f")
    assert document.text("z") == ""
    assert document.texts("z") == ()
    assert document.mapping("z") is None
    assert document.mappings("z") == ()
    with pytest.raises(BadInput, match=r"f:1: the policy lacks `z`"):
        document.mapping("z", required=True)


@pytest.mark.parametrize(("lists", "fits"), [(DEEPEST - 1, True), (DEEPEST, False)])
def test_depth_is_bounded_exactly(lists: int, fits: bool) -> None:
    """The deepest level allowed is composed, one more is refused with its line."""
    text = "a:\n" + " " + "[" * lists + "]" * lists
    if fits:
        assert compose(text, path="f").names == ("a",)
    else:
        with pytest.raises(BadInput) as caught:
            compose(text, path="f")
        assert (caught.value.code, caught.value.line) == ("policy-too-large", 2)


def test_long_values_are_cut_in_messages() -> None:
    """A message never repeats a document's worth of text."""
    with pytest.raises(BadInput) as caught:
        compose(f"{'k' * 5000}: 1", path="f").refuse_unknown(("a",))
    assert len(caught.value.message) < 200


def test_plain_values_are_taken_as_they_are_written() -> None:
    """A number, a time or a truth value can be asked for as text; nothing and mappings cannot."""
    document = compose("a: 007\nb: 2020-07-01\nc: no\nd: [0, '', x]\ne:\n", path="f")
    assert [document.written(name) for name in ("a", "b", "c", "z")] == ["007", "2020-07-01", "no", ""]
    assert document.all_written("d") == ("0", "", "x")
    assert document.is_list("d")
    assert not document.is_list("a")
    with pytest.raises(BadInput, match="f:5: `e` must be text, not nothing"):
        document.written("e")


def test_messages_name_the_document_that_is_read() -> None:
    """A map of a trace is not called a policy."""
    document = compose("a: x", path="f", place="the map", hint="a map starts like: columns: ...")
    with pytest.raises(BadInput, match="in the map"):
        document.refuse_unknown(("b",))
    with pytest.raises(BadInput) as caught:
        compose("[]", path="f", place="the map", hint="a map starts like: columns: ...")
    assert caught.value.hint.startswith("a map starts like")


DOCUMENTS = [
    "a: 1\nb: [x, 'y', \"z\\n\", 7d, 2026-11-01, 0x1f, 1_000, yes, ~, .5]\n",
    'services:\n  - {service: ollama, team: home, match: {unit: "ollama\\\\.service"}}\n# end\n',
    "x: &one {k: v}\ny: *one\nz: |\n  two\n  lines\nw: >-\n  folded\n  text\n",
    'shares: {half_life: 7d, class_weights: {"H100*": 2}, tree: {vision: {shares: 40, users: {al: 1, bö: parent}}}}\n',
    "? long\n: {a: b,\n   c: d}\n'q': ''\n\"d\": \"\\u00e9\"\n",
]


@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_stored_document_has_the_same_nodes_on_the_same_lines(text: str) -> None:
    """libyaml scans it faster, and nothing else."""

    def told(node) -> tuple:
        value = [(told(k), told(v)) for k, v in node.value] if isinstance(node, yaml.MappingNode) else node.value
        value = [told(each) for each in node.value] if isinstance(node, yaml.SequenceNode) else value
        return node.tag, node.start_mark.line, value

    slow = yaml_nodes.compose(text, path="p")
    fast = yaml_nodes.compose(text, path="p", is_stored=True)
    assert slow.names == fast.names
    for name in slow.names:
        assert told(slow._nodes[name][1]) == told(fast._nodes[name][1])


def test_an_error_in_a_stored_document_is_told_in_the_same_words() -> None:
    """Also how deep it may be."""
    for text in ("a: [", "a: \x01", "[" * 50, ""):
        said = []
        for is_stored in (False, True):
            with pytest.raises(BadInput) as refused:
                yaml_nodes.compose(text, path="p", is_stored=is_stored)
            said.append((refused.value.code, refused.value.message, refused.value.line))
        assert said[0] == said[1]
