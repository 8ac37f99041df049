"""MetricsQL: what it adds to PromQL, expanded."""

from __future__ import annotations

import pytest

from gpuledger.audit.metricsql import parse
from gpuledger.audit.promql_tree import Aggregate, Binary, Call, Match, Number, Quoted, Selector, Unparsable


def test_templates_are_expanded() -> None:
    """Constants, functions, and filters between braces."""
    tree = parse('WITH (f = {a="b", c=~"d"}, u(m) = sum(m{f, e!=""}) by (pod)) u(x) * 100')
    matchers = (Match("a", "=", "b"), Match("c", "=~", "d"), Match("e", "!=", ""))
    assert tree == Binary("*", Aggregate("sum", Selector("x", (matchers,)), None, False, ("pod",)), Number(100))


def test_words_that_change_no_label_leave_no_trace() -> None:
    """Ranges, offsets, steps, limits, names that are kept."""
    for text in ("x", "x[5m:1i] offset -3d", "x @ end()", "x keep_metric_names", "(x)", "x[5m] @ (end() - 1h)"):
        assert parse(text) == Selector("x")
    assert parse("sum(x) by (a) limit 3") == Aggregate("sum", Selector("x"), None, False, ("a",))


def test_operators_of_its_own() -> None:
    """``default``, ``if``, ``ifnot`` bind loosest; ``^`` to the right."""
    assert parse("a default 0") == Binary("default", Selector("a"), Number(0))
    assert parse("a + b if c") == Binary("if", Binary("+", Selector("a"), Selector("b")), Selector("c"))
    assert parse("a ^ b ^ c") == Binary("^", Selector("a"), Binary("^", Selector("b"), Selector("c")))


def test_functions_and_unions() -> None:
    """Names of functions are lower case; brackets with commas are a union."""
    assert parse('Label_Move(x, "a", "b")') == Call("label_move", (Selector("x"), Quoted("a"), Quoted("b")))
    assert parse("(a, b)") == Call("union", (Selector("a"), Selector("b")))
    assert parse('{a="1" or b="2"}') == Selector("", ((Match("a", "=", "1"),), (Match("b", "=", "2"),)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sum(",
        "sum()",
        "x{",
        "x{a}",
        "x{a=b}",
        "x y",
        "1 +",
        "x[5m",
        "WITH (a = b",
        "(" * 100 + "x",
        "x{a>1}",
        ")",
    ],
)
def test_what_is_no_query_is_said_to_be_none(text: str) -> None:
    """With a reason, whatever it is."""
    with pytest.raises(Unparsable):
        parse(text)


def test_templates_of_templates_are_bounded() -> None:
    """Forty that each stand for the last one twice would be a million million selectors."""
    doubled = ", ".join(f"a{n} = a{n - 1} + a{n - 1}" for n in range(1, 40))
    with pytest.raises(Unparsable, match="expand more than"):
        parse(f"WITH (a0 = x + x, {doubled}) a39")


def test_a_template_that_names_itself_ends() -> None:
    """Inside its own body the name is a metric again."""
    assert parse("WITH (a = a + 1) a") == Binary("+", Selector("a"), Number(1))
