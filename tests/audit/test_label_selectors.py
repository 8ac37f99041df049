"""Selectors of labels: each operator in both forms, and what cannot be read."""

from __future__ import annotations

import pytest

from gpuledger.audit.document_node import NOTHING, Node
from gpuledger.audit.documents import documents
from gpuledger.audit.label_selectors import meets, requirements_of_node, requirements_of_text
from gpuledger.model.findings import Written


def node(text: str) -> Node:
    return documents(Written(path="f", text=text))[0][0].root


LABELS = node("{app: e, example.org/tier: x, empty: ''}")


@pytest.mark.parametrize(
    ("selector", "met"),
    [
        ("", True),
        ("app", True),
        ("gone", False),
        ("!gone", True),
        ("! app", False),
        ("app=e", True),
        ("app == e,example.org/tier=x", True),
        ("app=z", False),
        ("empty=", True),
        ("app!=z", True),
        ("app!=e", False),
        ("gone!=e", True),
        ("app in (z,e),!gone", True),
        ("app in(z)", False),
        ("gone in (e)", False),
        ("app notin (z)", True),
        ("app notin ( e , z )", False),
        ("gone notin (e)", True),
        ("in in (e)", False),
    ],
)
def test_each_operator_of_a_text(selector: str, met: bool) -> None:
    """A label that is not there meets what must not be."""
    asked = requirements_of_text(selector)
    assert asked is not None
    assert meets(LABELS, asked) is met


@pytest.mark.parametrize(
    "selector",
    [",", "a,,b", "a=b,", "a b", "a > 1", "a<1", "!a=b", "!a in (b)", "a in b", "a in (b", "(a)", "a" * 10_001],
)
def test_a_text_that_cannot_be_read(selector: str) -> None:
    """It is nothing, so that whoever asks can say so."""
    assert requirements_of_text(selector) is None


def test_an_object_asks_all_of_its_parts() -> None:
    """Labels and expressions together; an empty one asks nothing."""
    both = (
        "{matchLabels: {app: e}, matchExpressions: [{key: app, operator: NotIn, values: [z]}, {key: %s, operator: %s}]}"
    )
    for key, operator, met in (("empty", "Exists", True), ("empty", "DoesNotExist", False), ("gone", "Exists", False)):
        asked = requirements_of_node(node(both % (key, operator)))
        assert asked is not None
        assert meets(LABELS, asked) is met
    assert requirements_of_node(node("{}")) == ()
    assert requirements_of_node(node("{matchExpressions: [{key: a, operator: Gt, values: ['1']}]}")) is None
    assert requirements_of_node(NOTHING) is None
