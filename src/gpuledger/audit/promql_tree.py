"""The tree of a query: what both parsers give (Prometheus' language and VictoriaMetrics' extension of it).

Values only. Ranges, offsets, ``@`` and subqueries move a query in time and change no label, so they leave no node.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple


class Match(NamedTuple):
    """One label matcher: ``op`` is ``=``, ``!=``, ``=~`` or ``!~``."""

    label: str
    op: str
    value: str


class Selector(NamedTuple):
    """The series of a metric.

    Args:
        name: the metric's; empty where only matchers tell it.
        matchers: that all hold; of alternatives (``or`` between braces) one tuple each.
    """

    name: str
    matchers: tuple[tuple[Match, ...], ...] = ((),)


class Number(NamedTuple):
    """A constant; None where a variable of the dashboard gives it."""

    value: Fraction | int | None


class Quoted(NamedTuple):
    """A string."""

    text: str


class Negative(NamedTuple):
    """``- expression``."""

    inner: Node


class Call(NamedTuple):
    """A function of a query."""

    name: str
    arguments: tuple[Node, ...]


class Aggregate(NamedTuple):
    """``sum by (...) (...)`` and the like.

    Args:
        op: ``sum``, ``topk`` and so on.
        inner: what is aggregated.
        parameter: of ``topk`` and its kind; None without one.
        without: whether the labels are those to drop.
        labels: of ``by`` or ``without``; None without either.
    """

    op: str
    inner: Node
    parameter: Node | None = None
    without: bool = False
    labels: tuple[str, ...] | None = None


class Binary(NamedTuple):
    """An operator between two queries.

    Args:
        op: the operator, lower case.
        left: what stands before it.
        right: what stands after it.
        on: the labels of ``on``; None without it.
        ignoring: the labels of ``ignoring``; None without it.
        group: ``left`` or ``right`` for ``group_left`` and ``group_right``; empty without.
        include: the labels that it brings over.
        as_bool: whether a comparison answers 0 or 1.
    """

    op: str
    left: Node
    right: Node
    on: tuple[str, ...] | None = None
    ignoring: tuple[str, ...] | None = None
    group: str = ""
    include: tuple[str, ...] = ()
    as_bool: bool = False


Node = Selector | Number | Quoted | Negative | Call | Aggregate | Binary
"""Any part of a query."""

COMPARISONS = frozenset({"==", "!=", ">", "<", ">=", "<="})

_AGGREGATIONS_WORDS = (
    "sum min max avg group stddev stdvar count count_values bottomk topk quantile limitk limit_ratio any "
    "median mode distinct geomean sum2 mad iqr share zscore histogram quantiles outliersk outliers_iqr "
    "outliers_mad topk_min topk_max topk_avg topk_median topk_last bottomk_min bottomk_max bottomk_avg "
    "bottomk_median bottomk_last mode_over"
)
AGGREGATIONS = frozenset(_AGGREGATIONS_WORDS.split())
_KEEP_SERIES_WORDS = (
    "topk bottomk limitk limit_ratio outliersk outliers_iqr outliers_mad any share zscore topk_min topk_max "
    "topk_avg topk_median topk_last bottomk_min bottomk_max bottomk_avg bottomk_median bottomk_last"
)
KEEP_SERIES = frozenset(_KEEP_SERIES_WORDS.split())
"""Aggregations that pick series and leave their labels as they are."""

_PARAMETERS_WORDS = (
    "topk bottomk limitk limit_ratio quantile count_values outliersk outliers_mad quantiles topk_min topk_max "
    "topk_avg topk_median topk_last bottomk_min bottomk_max bottomk_avg bottomk_median bottomk_last"
)
PARAMETERS = frozenset(_PARAMETERS_WORDS.split())
"""Aggregations whose first argument is a parameter."""


def selectors(tree: Node) -> Iterator[Selector]:
    """Every selector of a query."""
    waiting: list[Node] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Selector):
            yield node
        elif isinstance(node, Binary):
            waiting += (node.right, node.left)
        elif isinstance(node, Aggregate | Negative):
            waiting.append(node.inner)
        elif isinstance(node, Call):
            waiting.extend(reversed(node.arguments))


class Unparsable(Exception):
    """A query that is in neither language.

    Args:
        reason: what the parser said, in one line.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
