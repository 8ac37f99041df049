"""JSON as nodes: the same as through YAML, with the lines of the keys."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.audit.document_node import Kind, Node, TooDeep
from gpuledger.audit.json_text import json_root


def test_values_as_written() -> None:
    """Numbers keep their digits; null is nothing; a text that looks like a key is none."""
    root = json_root('{"a": 1.50, "b": null, "c": [true, "\\"d\\": 1"],\n "e": {"f": 1e400}}')
    assert root is not None
    assert (root.at("a").text, root.at("a").plain, root.at("b").kind) == ("1.50", True, Kind.NOTHING)
    assert (root.at("c", 0).truth, root.at("c", 1).text, root.at("e", "f").line) == (True, '"d": 1', 2)


@pytest.mark.parametrize("text", ["{a: 1}", "[x]", "{{ .Values.a }}", '{"a": 1} trailing'])
def test_what_is_no_json(text: str) -> None:
    """May be YAML."""
    assert json_root(text) is None


def test_what_is_too_deep() -> None:
    """Refused, whether or not Python's own parser bears it."""
    for depth in (200, 500_000):
        with pytest.raises(TooDeep):
            json_root("[" * depth + "]" * depth)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=5), VALUES, min_size=1, max_size=4))
def test_every_key_is_at_its_line(value: dict) -> None:
    """Whatever the texts hold: printed one key a line, each node stands where its key does."""
    text = json.dumps(value, indent=1)
    rows = text.split("\n")

    def check(node: Node) -> None:
        for key, each in node.pairs:
            assert rows[each.line - 1].lstrip().startswith(json.dumps(key) + ":")
            check(each)
        for each in node.entries:
            check(each)

    root = json_root(text)
    assert root is not None
    check(root)
