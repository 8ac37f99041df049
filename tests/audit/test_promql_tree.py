"""The tree of a query."""

from __future__ import annotations

from gpuledger.audit.metricsql import parse
from gpuledger.audit.promql_tree import AGGREGATIONS, KEEP_SERIES, PARAMETERS, Unparsable, selectors


def test_every_selector_is_found() -> None:
    """In arguments, on both sides, below aggregations and signs."""
    tree = parse("-sum(a) + topk(b, rate(c[5m])) or (d, e)")
    assert [selector.name for selector in selectors(tree)] == ["a", "c", "d", "e"]


def test_the_lists_of_aggregations_agree() -> None:
    """What keeps series or has a parameter is an aggregation."""
    assert KEEP_SERIES <= AGGREGATIONS
    assert PARAMETERS <= AGGREGATIONS


def test_a_refusal_has_its_reason() -> None:
    """For the list of what is unread."""
    assert Unparsable("why").reason == "why"
