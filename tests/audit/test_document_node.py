"""One value of a text: what stands there, and that something may be missing anywhere."""

from __future__ import annotations

import pytest

from gpuledger.audit.document_node import NOTHING, Kind, Node, NotYaml, TooDeep, TooMany


def text(word: str, *, plain: bool = True) -> Node:
    return Node(kind=Kind.TEXT, line=3, text=word, plain=plain)


@pytest.mark.parametrize(
    ("word", "truth", "whole"),
    [("true", True, None), ("False", False, None), ("yes", True, None), ("4", None, 4), ("-4", None, -4),
     ("4.0", None, None), ("", None, None), ("9" * 19, None, None)],
)  # fmt: skip
def test_words_as_values(word: str, truth: bool | None, whole: int | None) -> None:
    """True, false, a whole number, or none of them."""
    assert (text(word).truth, text(word).whole) == (truth, whole)


def test_paths_lead_everywhere() -> None:
    """Where nothing stands there is a node too; of a key that stands twice, the last counts."""
    node = Node(kind=Kind.MAPPING, pairs=(("a", text("1")), ("a", Node(kind=Kind.LIST, entries=(text("x"),)))))
    assert node.at("a", 0).text == "x"
    assert node.at("a", -1).text == "x"
    assert node.at("a", 1, "b", 2) is NOTHING
    assert [each.kind for each in node.every("a")] == [Kind.TEXT, Kind.LIST]


def test_what_a_template_gives_is_opaque() -> None:
    """In a text, a key or an entry."""
    mark = text("\ue0007\ue000")
    assert mark.opaque
    assert Node(kind=Kind.LIST, entries=(text("x"), mark)).opaque
    assert Node(kind=Kind.MAPPING, pairs=((mark.text, text("x")),)).opaque
    assert not Node(kind=Kind.MAPPING, pairs=(("a", mark),)).opaque


def test_why_a_text_is_unread() -> None:
    """As a problem with its line."""
    for kind, code in ((NotYaml, "not-yaml"), (TooDeep, "too-deep"), (TooMany, "too-many-values")):
        problem = kind("why", 7).problem("f.yaml")
        assert (problem.code, problem.message, problem.where) == (code, "why", "f.yaml:7")
    assert "template" in NotYaml("why", 7).problem("f.yaml", template=True).message
