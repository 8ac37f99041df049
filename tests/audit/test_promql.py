"""Queries parsed, and refused before they can hurt the parser."""

from __future__ import annotations

import pytest

from gpuledger.audit.promql import LONGEST, Dialect, parse
from gpuledger.audit.promql_tree import Aggregate, Binary, Match, Number, Selector, Unparsable


def test_prometheus_own_language_goes_through_its_parser() -> None:
    """Matching, grouping, modifiers."""
    tree, dialect = parse('sum by (a) (x{b!~"c"}) / on(a, d) group_left(e) max without (f) (y) > bool 0.5')
    assert dialect is Dialect.PROMQL
    left = Aggregate("sum", Selector("x", ((Match("b", "!~", "c"),),)), None, False, ("a",))
    joined = Binary("/", left, Aggregate("max", Selector("y"), None, True, ("f",)), ("a", "d"), None, "left", ("e",))
    assert isinstance(tree, Binary)
    assert (tree.op, tree.left, tree.as_bool) == (">", joined, True)


def test_what_it_refuses_is_tried_as_metricsql() -> None:
    """A function that Prometheus has not, a rate without a range."""
    assert parse("rate(x)")[1] is Dialect.METRICSQL
    assert parse('label_move(x, "a", "b")')[1] is Dialect.METRICSQL


def test_numbers_are_exact() -> None:
    """No float is kept."""
    assert parse("3")[0] == Number(3)
    assert parse("NaN")[0] == Number(None)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "x" + ")" * 5000,
        "+".join(["x"] * 20_000),
        "-" * 20_000 + "x",
        "sum(" * 3000,
        "x" * (LONGEST + 1),
        "x or " * 200 + "x",
    ],
)
def test_giants_are_refused_before_the_parser_sees_them(text: str) -> None:
    """It is native code and would end the process."""
    with pytest.raises(Unparsable):
        parse(text)


def test_the_reason_is_one_line() -> None:
    """What Prometheus' parser says comes first."""
    with pytest.raises(Unparsable) as refused:
        parse("sum(x")
    assert "\n" not in refused.value.reason
    assert refused.value.reason.startswith("unclosed left parenthesis")
