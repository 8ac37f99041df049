"""Parses a query: Prometheus' own language by a real parser, what VictoriaMetrics adds by ours.

In: the text, its variables already replaced (:mod:`gpuledger.audit.query_text`). Out: one tree, and the dialect.
The real parser is native code that recurses: on very deep queries it ends the process and raises nothing (seen with
promql-parser 0.12 at 20,000 operators), so depth and length are bounded before it sees the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from fractions import Fraction
from typing import Any

import promql_parser

from gpuledger.audit import metricsql
from gpuledger.audit.promql_tree import (
    Aggregate,
    Binary,
    Call,
    Match,
    Negative,
    Node,
    Number,
    Quoted,
    Selector,
    Unparsable,
)

LONGEST = 64 * 1024
"""Characters of a query. The longest of a published operator has 1,300."""

DEEPEST = 60
MOST_OPERATORS = 120
"""Operators side by side make the tree as deep as brackets do."""

_STRINGS = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`|#[^\n]*", re.DOTALL)
_SIGNS = ("+", "-", "*", "/", "%", "^", "<", ">", "=", "!", "and", "or", "unless", "atan2", "default", "if")
_BRACKET = re.compile(r"[({\[\])}]")
_OPERATOR = re.compile(r"==|!=|=~|!~|>=|<=|[-+*/%^<>]|\b(?:and|or|unless|atan2|default|if|ifnot)\b", re.IGNORECASE)


class Dialect(StrEnum):
    """Which language a query is in."""

    PROMQL = "PromQL"
    METRICSQL = "MetricsQL"


def parse(text: str) -> tuple[Node, Dialect]:
    """The tree of a query.

    Raises:
        Unparsable: in neither language, or too long or deep to be read safely; the reason is what Prometheus' parser
            says where that came first.
    """
    _refuse_giants(text)
    try:
        return _tree(promql_parser.parse(text)), Dialect.PROMQL
    except ValueError as error:
        said = _one_line(str(error))
    except Exception as error:
        if type(error).__name__ != "PanicException":
            raise
        said = "the parser gave up"
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust, by pyo3: a BaseException, and no other is ours
            raise
        said = "the parser gave up"
    try:
        return metricsql.parse(text), Dialect.METRICSQL
    except Unparsable as error:
        raise Unparsable(f"{said}; nor is it MetricsQL: {error.reason}") from None


def _refuse_giants(text: str) -> None:
    if len(text) > LONGEST:
        raise Unparsable(f"longer than {LONGEST:,} characters")
    if _most(text, "({[") <= DEEPEST and (len(text) <= MOST_OPERATORS or _most(text, _SIGNS) <= MOST_OPERATORS):
        return
    bare = _STRINGS.sub('""', text) if '"' in text or "'" in text or "`" in text or "#" in text else text
    depth = 0
    for bracket in _BRACKET.findall(bare):
        depth += 1 if bracket in "({[" else -1
        if depth > DEEPEST:
            raise Unparsable(f"nested more than {DEEPEST} levels deep")
    outside = re.sub(r"\{[^{}]*\}", "", bare)
    if len(_OPERATOR.findall(outside)) > MOST_OPERATORS:
        raise Unparsable(f"more than {MOST_OPERATORS} operators")


def _most(text: str, parts: Iterable[str]) -> int:
    """How many of some parts there can be at most: those in strings and names are counted too."""
    return sum(map(text.count, parts))


def _one_line(said: str) -> str:
    line = " ".join(said.split())
    return line if len(line) <= 200 else f"{line[:199]}…"


_OPS = {
    int(promql_parser.MatchOp.Equal): "=",
    int(promql_parser.MatchOp.NotEqual): "!=",
    int(promql_parser.MatchOp.Re): "=~",
    int(promql_parser.MatchOp.NotRe): "!~",
}
"""By number: its enums have no hash."""
_WITHOUT = promql_parser.AggModifierType.Without
_ON = promql_parser.LabelModifierType.Include
_TO_ONE = promql_parser.VectorMatchCardinality.ManyToOne
_TO_MANY = promql_parser.VectorMatchCardinality.OneToMany


def _matches(matchers: Any) -> tuple[Match, ...]:
    return tuple([Match(each.name, _OPS[int(each.op)], each.value) for each in matchers])


def _selector(found: Any) -> Node:
    matchers = found.matchers
    first = matchers.matchers
    others = matchers.or_matchers
    if others:
        return Selector(found.name or "", tuple(_matches(each) for each in others))
    return Selector(found.name or "", (_matches(first),) if first else _NO_MATCHERS)


_NO_MATCHERS: tuple[tuple[Match, ...], ...] = ((),)


def _aggregate(found: Any) -> Node:
    modifier = found.modifier
    labels = None if modifier is None else tuple(modifier.labels)
    without = modifier is not None and modifier.type == _WITHOUT
    parameter = None if found.param is None else _tree(found.param)
    return Aggregate(str(found.op), _tree(found.expr), parameter, without, labels)


def _binary(found: Any) -> Node:
    left, right, modifier = _tree(found.lhs), _tree(found.rhs), found.modifier
    op = str(found.op)
    if modifier is None:
        return Binary(op, left, right)
    matching, card = modifier.matching, modifier.card
    labels = None if matching is None else tuple(matching.labels)
    is_on = matching is not None and matching.type == _ON
    group = "left" if card == _TO_ONE else "right" if card == _TO_MANY else ""
    return Binary(
        op,
        left,
        right,
        labels if is_on else None,
        None if is_on else labels,
        group,
        tuple(modifier.group_labels or ()) if group else (),
        bool(modifier.return_bool),
    )


def _number(found: Any) -> Node:
    spelled = str(found.val)
    if spelled.endswith(".0"):
        return Number(int(spelled[:-2]))
    return Number(None if spelled in ("inf", "-inf", "nan") else Fraction(spelled))


_MAKERS: dict[type, Any] = {
    promql_parser.VectorSelector: _selector,
    promql_parser.MatrixSelector: lambda found: _selector(found.vector_selector),
    promql_parser.SubqueryExpr: lambda found: _tree(found.expr),
    promql_parser.ParenExpr: lambda found: _tree(found.expr),
    promql_parser.UnaryExpr: lambda found: Negative(_tree(found.expr)),
    promql_parser.NumberLiteral: _number,
    promql_parser.StringLiteral: lambda found: Quoted(found.val),
    promql_parser.Call: lambda found: Call(found.func.name, tuple(_tree(each) for each in found.args)),
    promql_parser.AggregateExpr: _aggregate,
    promql_parser.BinaryExpr: _binary,
}


def _tree(found: Any) -> Node:
    maker = _MAKERS.get(type(found))
    if maker is None:
        raise Unparsable(f"a {type(found).__name__} is not known")
    node: Node = maker(found)
    return node
