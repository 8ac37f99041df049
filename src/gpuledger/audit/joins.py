"""What an operator between two queries gives: which side's labels stay, which come over, what the value rests on.

Source: Prometheus, "Operators", vector matching; MetricsQL for ``default``, ``if`` and ``ifnot``.
"""

from __future__ import annotations

from gpuledger.audit import branches as known
from gpuledger.audit.branches import Bounds, Branch
from gpuledger.audit.gpu_words import is_label_of_object, names_place, names_workload
from gpuledger.audit.promql_tree import COMPARISONS, Binary

_ONE: Bounds = (1, 1)
_ZERO: Bounds = (0, 0)
_TRUTH: Bounds = (0, 1)


def binary(node: Binary, left: list[Branch], right: list[Branch], *, same: bool) -> list[Branch]:
    """The branches of an operator.

    Args:
        node: the operator with its matching.
        left: branches before it.
        right: branches after it.
        same: whether both sides are the same text.
    """
    if node.op in ("or", "default"):
        both = [*left, *right]
        vectors = [branch for branch in both if not branch.is_scalar]
        return known.limited(vectors or both)
    pairs = [(one, other) for one in left for other in right]
    return known.limited([_pair(node, one, other, same=same) for one, other in pairs])


def _pair(node: Binary, left: Branch, right: Branch, *, same: bool) -> Branch:
    if node.op in ("and", "if"):
        return _kept(node, left, right.demoted())
    if node.op in ("unless", "ifnot"):
        return left._replace(flows=known.joined_flows(left.flows, right.demoted().flows))
    if node.op in COMPARISONS:
        return _compared(node, left, right, same=same)
    return _labels(node, left, right).bounded(_bounds(node.op, left.bounds, right.bounds, same=same))


def _kept(node: Binary, left: Branch, right: Branch) -> Branch:
    """``and``: the left side's series that have a partner on the right."""
    for label in node.on or ():
        if names_workload(label) and label != "job" and left.carries(label) and label not in right.pinned:
            left = left.marked(label, f"kept by {node.op} on({label})")
        elif label in right.pinned:
            left = left._replace(pinned=left.pinned | {label})
    selects = known.joined_texts(left.selects, right.selects)
    return left._replace(selects=selects, flows=known.joined_flows(left.flows, right.flows))


def _compared(node: Binary, left: Branch, right: Branch, *, same: bool) -> Branch:
    holds = known.always(node.op, left.bounds, right.bounds) or (same and node.op in ("==", ">=", "<="))
    result = _labels(node, left, right if holds or node.as_bool else right.gated())
    if node.as_bool:
        return result._replace(bounds=known.ANYTHING).bounded(_ONE if holds else _TRUTH)
    result = result._replace(bounds=left.bounds if not left.is_scalar else right.bounds)
    return result if holds else result.gated()


def _labels(node: Binary, left: Branch, right: Branch) -> Branch:
    """Both sides' flows under the labels that the matching leaves."""
    flows = known.joined_flows(left.flows, right.flows)
    if left.is_scalar or right.is_scalar:
        vector = right if left.is_scalar else left
        is_scalar = left.is_scalar and right.is_scalar
        return vector._replace(flows=flows, is_scalar=is_scalar, selects=_selects(left, right))
    if node.group:
        many, one = (left, right) if node.group == "left" else (right, left)
        result = _brought(node, many, one)
    elif node.on is not None:
        result = _matched(node.on, left, right, f"joined on({', '.join(node.on)})").only(frozenset(node.on))
    else:
        result = _alike(node, left, right)
    selects = _selects(left, right)
    doubts = tuple(dict.fromkeys((*left.doubts, *right.doubts)))
    return result._replace(flows=flows, selects=selects, doubts=doubts)


def _selects(left: Branch, right: Branch) -> tuple[tuple[str, str], ...]:
    """Of both sides, except where a side is one figure without labels and holds no device metric."""
    parts = [side.selects for side in (left, right) if side.is_open or side.names or side.flows]
    return known.joined_texts(*parts)


def _matched(labels: tuple[str, ...], side: Branch, other: Branch, reason: str) -> Branch:
    """A side with the workload labels that it was matched on."""
    for label in labels:
        if label in other.pinned or label in side.pinned:
            side = side._replace(pinned=side.pinned | {label})
        elif names_workload(label) and label != "job" and side.carries(label) and other.has(label):
            side = side.marked(label, reason)
    return side


def _brought(node: Binary, many: Branch, one: Branch) -> Branch:
    """``group_left``: the many side's labels, and those that it brings over."""
    result = _matched(node.on or (), many, one, f"joined on({', '.join(node.on or ())})")
    made = dict(one.stands_for)
    by = [label for label in node.on or () if _is_of_workload(label, many) and _is_of_workload(label, one)]
    for label in node.include:
        if label == "*":
            for name, reason in one.marks:
                result = result.marked(name, f"group_{node.group}(*) brings it: {reason}")
        elif label in one.pinned or (one.of_nodes and is_label_of_object(label)):
            result = result.with_label(label)._replace(pinned=result.pinned | {label})
        elif not one.has(label):
            result = result.without(frozenset({label}))
        elif (names_workload(label) and label != "job") or label in made:
            result = result.marked(label, f"group_{node.group}({label}) brings it over")
        elif by and not names_place(label) and label != "job":
            result = result.with_label(label)
            result = result._replace(stands_for=known.joined_texts(result.stands_for, ((label, ", ".join(by)),)))
        else:
            result = result.with_label(label)
    return result


def _is_of_workload(label: str, side: Branch) -> bool:
    return names_workload(label) and label != "job" and side.carries(label)


def _alike(node: Binary, left: Branch, right: Branch) -> Branch:
    """One to one: both sides have the same labels but for those ignored."""
    base, other = (left, right) if not left.is_open or right.is_open else (right, left)
    for label, reason in other.marks:
        if base.has(label):
            base = base.marked(label, reason)
    base = base._replace(stands_for=known.joined_texts(base.stands_for, other.stands_for))
    if base.is_open and other.is_open:
        base = base._replace(names=base.names | other.names, pinned=base.pinned | other.pinned)
    return base.without(frozenset(node.ignoring)) if node.ignoring else base


def _bounds(op: str, left: Bounds, right: Bounds, *, same: bool) -> Bounds:
    if same and op in ("-", "%"):
        return _ZERO
    if same and op == "/":
        return _ONE
    if op == "+":
        return known.plus(left, right)
    if op == "-":
        return known.plus(left, known.negated(right))
    if op == "*":
        return known.times(left, right)
    if op == "/":
        return known.over(left, right)
    if op == "^" and right == _ZERO:
        return _ONE
    if op == "^" and left[0] is not None and left[0] >= 0:
        return known.AT_LEAST_ZERO
    return known.AT_LEAST_ZERO if op == "%" and left[0] is not None and left[0] >= 0 else known.ANYTHING
