"""Variables replaced by what a parser takes at their place."""

from __future__ import annotations

import pytest

from gpuledger.audit.query_text import Choice, Prepared, Variable, prepare, shown, spread

NAMES = {
    "metric": Variable(name="metric", choice=Choice.LISTED, values=("a", "b")),
    "limit": Variable(name="limit", values=("3",)),
}


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("x", "x"),
        ('x{a="$b"}', 'x{a="$b"}'),
        ("rate(x[$__rate_interval])", "rate(x[5m])"),
        ("rate(x[${__range_s}s:1m])", "rate(x[5s:1m])"),
        ("rate(x[3$unit])", "rate(x[3m])"),
        ("x offset $ago", "x offset 5m"),
        ("$metric{a='b'}", "_7v0v7_{a='b'}"),
        ("DCGM_[[kind]]_$name", "DCGM__7v0v7___7v1v7_"),
        ("sum by ($a, b) (x)", "sum by (_7v0v7_, b) (x)"),
        ("x{a=~$b}", 'x{a=~"$b"}'),
        ("x{$filters}", 'x{_7v0v7_="any"}'),
        ("x{$label='a'}", "x{_7v0v7_='a'}"),
        ("topk($limit, x)", "topk(3, x)"),
        ("topk($n, x)", "topk(1, x)"),
        ("x > $threshold", "x > NaN"),
        ("x * ${factor}", "x * NaN"),
        ("$fn(x)", "avg(x)"),
        ("x # $comment by (pod)", "x "),
        ("x[%s] by (%s) % s", "x[5m] by (_7v0v7_) % s"),
        ("x > \ue0000\ue000", "x > NaN"),
    ],
)
def test_each_place_gets_what_belongs_there(text: str, prepared: str) -> None:
    """Durations, numbers, names, matchers, functions."""
    assert prepare(text, NAMES).text == prepared


def test_a_name_can_be_each_value_of_its_variables() -> None:
    """All of them, and whether those are all."""
    found = prepare("x_${metric}_$open{}", {**NAMES, "open": Variable(name="open", values=("1",))})
    assert found.possible("x__7v0v7___7v1v7_") == (("x_a_1", "x_b_1"), False)
    assert found.possible("y") == (("y",), True)
    assert shown("x__7v0v7_", found) == "x_$metric"


def test_values_that_name_variables_end() -> None:
    """Whatever they are made of, no name is expanded without end."""
    nasty = Prepared(text="", held=(Variable(name="a", choice=Choice.LISTED, values=("_7v0v7_",)),))
    assert nasty.possible("_7v0v7_")[0] == ("0v7_",)
    loop = {"a": Variable(name="a", choice=Choice.LISTED, values=("$a", "[[a]]"))}
    assert spread("$a", loop) == ("a", "a]]")


def test_many_variables_are_bounded() -> None:
    """Two hundred values each, five in one name."""
    many = Variable(name="v", choice=Choice.LISTED, values=tuple(str(n) for n in range(200)))
    found = prepare("a$v$v$v$v$v{}", {"v": many})
    names, whole = found.possible(found.text.removesuffix("{}"))
    assert len(names) == 200
    assert not whole
    other = Variable(name="w", choice=Choice.LISTED, values=("1", "2"))
    assert spread("$v$w", {"v": many, "w": other}) is None


def test_quoted_texts_are_spread_where_all_values_are_known() -> None:
    """An open variable can be anything."""
    assert spread("x$metric", NAMES) == ("xa", "xb")
    assert spread("$other", NAMES) is None
    assert spread("$limit", NAMES) is None
