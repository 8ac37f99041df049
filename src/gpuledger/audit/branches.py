"""What a query is known to give: the values of the analysis of lineage.

A branch is one alternative of a query (``or`` makes two): which labels its series carry and why those that name a
workload stand there, which device metrics its value comes from, and between which bounds that value lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple


class Scope(StrEnum):
    """Whose figure a flow is."""

    PROF = "prof"
    DEVICE = "device"
    UNKNOWN = "unknown"


class Flow(NamedTuple):
    """One device metric that a query depends on.

    Args:
        metric: its name as the exporter has it, or as it is written where a variable tells it.
        scope: whose figure it is.
        is_value: whether the query's value depends on its value; else only on its being there.
        is_gate: whether a comparison of it decides which series are there.
        of_instance: whether only MIG instances are selected.
        chain: the recording rules it went through, nearest to the reader first.
        why: of an unknown scope, what is not known.
    """

    metric: str
    scope: Scope
    is_value: bool = True
    is_gate: bool = False
    of_instance: bool = False
    chain: tuple[str, ...] = ()
    why: str = ""


Value = Fraction | int
"""Whole numbers stay whole: fractions are slow, and most constants of queries are none."""

Bounds = tuple[Value | None, Value | None]
"""The least and greatest value; None where there is none."""

ANYTHING: Bounds = (None, None)
AT_LEAST_ZERO: Bounds = (0, None)


class Branch(NamedTuple):
    """One alternative of a query.

    Args:
        is_open: whether series keep the labels of their metric, except those in ``names``; else they have just those.
        names: see above.
        marks: labels that name a workload and were put or asked for there, each with the reason.
        doubts: why it cannot be told whether series carry such labels.
        pinned: labels that are the exporter's own.
        stands_for: labels made out of others: ``app`` out of ``pod``.
        selects: matchers that choose the series of certain workloads.
        flows: the device metrics.
        bounds: of the value.
        is_scalar: whether it is a plain number, which joins nothing.
        of_nodes: whether its series are of nodes, so that a ``label_team`` of them is the node's.
    """

    is_open: bool = True
    names: frozenset[str] = frozenset()
    marks: tuple[tuple[str, str], ...] = ()
    doubts: tuple[str, ...] = ()
    pinned: frozenset[str] = frozenset()
    stands_for: tuple[tuple[str, str], ...] = ()
    selects: tuple[tuple[str, str], ...] = ()
    flows: tuple[Flow, ...] = ()
    bounds: Bounds = ANYTHING
    is_scalar: bool = False
    of_nodes: bool = False

    def carries(self, label: str) -> bool:
        """Whether a series can have a label that is not the exporter's own."""
        return label not in self.pinned and self.has(label)

    def has(self, label: str) -> bool:
        """Whether a series can have a label."""
        return (label not in self.names) if self.is_open else (label in self.names)

    def marked(self, label: str, reason: str) -> Branch:
        """With a label and the reason why it stands there; the first reason counts."""
        marks = self.marks if any(name == label for name, _ in self.marks) else (*self.marks, (label, reason))
        names = self.names - {label} if self.is_open else self.names | {label}
        pinned = self.pinned - {label} if self.pinned else self.pinned
        return self._replace(marks=marks, names=names, pinned=pinned)

    def with_label(self, label: str) -> Branch:
        """With a label that series have."""
        return self._replace(names=self.names - {label} if self.is_open else self.names | {label})

    def without(self, labels: frozenset[str]) -> Branch:
        """Without some labels."""
        return self._replace(
            names=self.names | labels if self.is_open else self.names - labels,
            marks=tuple(mark for mark in self.marks if mark[0] not in labels),
            stands_for=tuple(pair for pair in self.stands_for if pair[0] not in labels),
        )

    def only(self, labels: frozenset[str]) -> Branch:
        """With just some of its labels."""
        return self._replace(
            is_open=False,
            names=frozenset(label for label in labels if self.has(label)),
            marks=tuple(mark for mark in self.marks if mark[0] in labels),
            stands_for=tuple(pair for pair in self.stands_for if pair[0] in labels),
        )

    def demoted(self) -> Branch:
        """As something that is only there or not: its value counts only where a comparison decided on it."""
        if not self.flows:
            return self
        return self._replace(
            flows=tuple(flow if flow.is_gate else flow._replace(is_value=False) for flow in self.flows)
        )

    def gated(self) -> Branch:
        """After a comparison that drops series by their value."""
        if not self.flows:
            return self
        return self._replace(flows=tuple(flow._replace(is_gate=True) if flow.is_value else flow for flow in self.flows))

    def bounded(self, bounds: Bounds) -> Branch:
        """With other bounds; a value that can be only one no longer tells anything of what it came from."""
        least, greatest = bounds
        constant = least is not None and least == greatest
        if constant and self.flows:
            return self.demoted()._replace(bounds=bounds)
        return self if bounds == self.bounds else self._replace(bounds=bounds)


MOST_BRANCHES = 32
"""Alternatives of one query that are told apart; a hand-written one has four."""


def limited(found: Sequence[Branch]) -> list[Branch]:
    """Each branch once, those with device metrics first; beyond the limit the last stands for all that are left.

    What is put together so is told too much rather than too little: nothing that names a workload is lost.
    """
    if len(found) <= 1:
        return list(found)
    once = list(dict.fromkeys(found))
    if len(once) <= MOST_BRANCHES:
        return once
    once = [branch for branch in once if branch.flows] or once
    kept, left = once[: MOST_BRANCHES - 1], once[MOST_BRANCHES - 1 :]
    return kept if not left else [*kept, _together(left)]


def _together(left: Sequence[Branch]) -> Branch:
    first = left[0]
    return Branch(
        is_open=any(branch.is_open for branch in left),
        names=frozenset() if any(branch.is_open for branch in left) else frozenset().union(*(b.names for b in left)),
        marks=joined_texts(*(branch.marks for branch in left)),
        doubts=tuple(dict.fromkeys(doubt for branch in left for doubt in branch.doubts)),
        pinned=frozenset.intersection(*(branch.pinned for branch in left)),
        stands_for=joined_texts(*(branch.stands_for for branch in left)),
        selects=joined_texts(*(branch.selects for branch in left)),
        flows=flows_once(flow for branch in left for flow in branch.flows),
        bounds=first.bounds if all(branch.bounds == first.bounds for branch in left) else ANYTHING,
    )


def joined_texts(*parts: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Pairs of several branches, each once, in order."""
    return tuple(dict.fromkeys(pair for part in parts for pair in part))


def joined_flows(left: tuple[Flow, ...], right: tuple[Flow, ...]) -> tuple[Flow, ...]:
    """Flows of two branches, each once, in order."""
    if not left or not right:
        return left or right
    return flows_once((*left, *right))


def flows_once(flows: Iterable[Flow]) -> tuple[Flow, ...]:
    """Flows that differ only in the rules that they came through, once, by the shortest way; a direct one stays beside.

    Ways through rules that read each other twice double with each rule: a hundred of them have more ways than atoms.
    """
    kept: dict[tuple[Flow, bool], Flow] = {}
    for flow in flows:
        key = (flow._replace(chain=()), bool(flow.chain))
        known = kept.get(key)
        if known is None or len(flow.chain) < len(known.chain):
            kept[key] = flow
    return tuple(kept.values())


def plus(left: Bounds, right: Bounds) -> Bounds:
    """Bounds of a sum."""
    return (_plus(left[0], right[0]), _plus(left[1], right[1]))


def _plus(left: Value | None, right: Value | None) -> Value | None:
    return None if left is None or right is None else left + right


def negated(bounds: Bounds) -> Bounds:
    """Bounds of the opposite."""
    least, greatest = bounds
    return (None if greatest is None else -greatest, None if least is None else -least)


def times(left: Bounds, right: Bounds) -> Bounds:
    """Bounds of a product: exact for constants, else whether it can be negative."""
    if 0 == left[0] == left[1] or 0 == right[0] == right[1]:
        return (0, 0)
    for one, other in ((left, right), (right, left)):
        if one[0] is not None and one[0] == one[1]:
            scaled = tuple(None if edge is None else edge * one[0] for edge in other)
            return (scaled[0], scaled[1]) if one[0] > 0 else (scaled[1], scaled[0])
    if left[0] is not None and right[0] is not None and left[0] >= 0 and right[0] >= 0:
        greatest = None if left[1] is None or right[1] is None else left[1] * right[1]
        return (left[0] * right[0], greatest)
    return ANYTHING


def over(left: Bounds, right: Bounds) -> Bounds:
    """Bounds of a quotient."""
    if right[0] is not None and right[0] == right[1] and right[0] != 0:
        inverse = Fraction(1) / right[0]
        return times(left, (inverse, inverse))
    if left[0] == left[1] == 0:
        return left
    if left[0] is not None and right[0] is not None and left[0] >= 0 and right[0] >= 0:
        return AT_LEAST_ZERO
    return ANYTHING


def always(op: str, left: Bounds, right: Bounds) -> bool:
    """Whether a comparison holds whatever the values are."""
    if op in ("<", "<="):
        return always({"<": ">", "<=": ">="}[op], right, left)
    if op == "==":
        return left[0] is not None and left[0] == left[1] == right[0] == right[1]
    least, greatest = left[0], right[1]
    if op in (">", ">=") and least is not None and greatest is not None:
        return least > greatest if op == ">" else least >= greatest
    if op == "!=" and least is not None and greatest is not None:
        return least > greatest
    return False


def at_most(bounds: Bounds, greatest: Bounds) -> Bounds:
    """Bounds after ``clamp_max``."""
    least, most = bounds
    limit = greatest[1]
    if limit is None:
        return bounds
    return (None if least is None else min(least, limit), limit if most is None else min(most, limit))


def at_least(bounds: Bounds, least: Bounds) -> Bounds:
    """Bounds after ``clamp_min``."""
    return negated(at_most(negated(bounds), negated(least)))
