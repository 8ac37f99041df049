"""Follows device metrics through a query, and through the recording rules that renamed them.

In: the tree of a query, the recording rules of all files, the variables of the dashboard. Out: branches
(:mod:`gpuledger.audit.branches`): which workload labels the result carries and why, and what its value depends on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpuledger.audit import branches as known
from gpuledger.audit.branches import Branch
from gpuledger.audit.gpu_words import (
    JOB_NUMBERS,
    LabelKind,
    is_known_label,
    is_label_of_object,
    is_of_nodes,
    label_kind,
    may_be_device,
    names_workload,
    workloads_of,
)
from gpuledger.audit.joins import binary
from gpuledger.audit.label_functions import LABEL_FUNCTIONS
from gpuledger.audit.promql_tree import (
    KEEP_SERIES,
    Aggregate,
    Binary,
    Call,
    Negative,
    Node,
    Number,
    Quoted,
    Selector,
    selectors,
)
from gpuledger.audit.query_text import Prepared, Variable, is_held, shown
from gpuledger.audit.rule_order import ordered
from gpuledger.audit.selecting import Chooser, Chosen

_IDENTITIES = frozenset({"gpu", "UUID", "uuid", "device"})
_PRESENCE = frozenset(
    {
        "absent",
        "absent_over_time",
        "count_over_time",
        "present_over_time",
        "timestamp",
        "tlast_over_time",
        "tfirst_over_time",
    }
)
_NEVER_NEGATIVE_WORDS = (
    "rate irate increase avg_over_time min_over_time max_over_time sum_over_time quantile_over_time "
    "last_over_time median_over_time first_over_time abs ceil floor round sqrt exp rollup rollup_rate "
    "stddev_over_time sum avg max min quantile count group limitk topk bottomk any median sort sort_desc "
    "sort_by_label sort_by_label_desc"
)
_NEVER_NEGATIVE = frozenset(_NEVER_NEGATIVE_WORDS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One recording rule.

    Args:
        record: the name it gives.
        tree: what it records.
        prepared: the variables of its text.
        labels: that it adds, name and value.
    """

    record: str
    tree: Node
    prepared: Prepared
    labels: tuple[tuple[str, str], ...] = ()


class Lineage:
    """The recording rules of all files, and what each name that they record stands for.

    Args:
        rules: all of them; a name that is recorded twice is the union of both.
        made: labels that relabelling makes out of a workload's, each with what it is made of.
    """

    def __init__(self, rules: Sequence[Rule] = (), made: Mapping[str, str] | None = None) -> None:
        self.made = tuple((made or {}).items())
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules:
            self._rules.setdefault(rule.record, []).append(rule)
        self.recorded = frozenset(self._rules)
        self._known: dict[str, tuple[Branch, ...]] = {}
        order, self.rings = ordered({name: self._needs(name) for name in self._rules})
        for name in order:
            self._learn(name)
        for name in order if self.rings else ():
            self._learn(name)  # once more: the first of a ring lacked what the last gives

    def of(self, tree: Node, prepared: Prepared, variables: Mapping[str, Variable] | None = None) -> tuple[Branch, ...]:
        """The branches of a query."""
        return tuple(_Follower(self, prepared, variables or {}).follow(tree))

    def concerns(self, tree: Node) -> bool:
        """Whether any selector of a query can mean a device metric; of the others nothing need be followed."""
        return any(
            not selector.name
            or is_held(selector.name)
            or selector.name in self.recorded
            or may_be_device(selector.name)
            for selector in selectors(tree)
        )

    def recorded_as(self, name: str) -> tuple[Branch, ...]:
        """The branches of a recorded name, the name added to the chain of each flow."""
        return self._known.get(name, ())

    def _learn(self, name: str) -> None:
        found: dict[Branch, None] = {}
        for rule in self._rules[name]:
            for branch in self.of(rule.tree, rule.prepared):
                found[_recorded(branch, rule)] = None
        self._known[name] = tuple(known.limited(list(found)))

    def _needs(self, name: str) -> list[str]:
        """The recorded names that the rules of a name read."""
        needed: dict[str, None] = {}
        for rule in self._rules[name]:
            chooser = Chooser(self.recorded, rule.prepared, {})
            for selector in selectors(rule.tree):
                for matchers in selector.matchers:
                    for each, _ in chooser.names(selector.name, matchers):
                        if each in self.recorded:
                            needed[each] = None
        return list(needed)


LONGEST_CHAIN = 30
"""Rules one behind the other that are told; the metric is followed through any number of them."""


def _recorded(branch: Branch, rule: Rule) -> Branch:
    flows = known.flows_once(
        flow._replace(chain=(rule.record, *flow.chain)[:LONGEST_CHAIN])
        for flow in branch.flows
        if rule.record not in flow.chain  # a ring comes back to itself and tells nothing new
    )
    given = branch._replace(flows=flows, is_scalar=False)
    for label, value in rule.labels:
        if not value:
            given = given.without(frozenset({label}))
        elif names_workload(label) and label != "namespace":  # by convention alerts and rules are routed by it
            given = given.marked(label, f"the rule {rule.record} sets {label}={value!r}")
        else:
            given = given.with_label(label)
    return given


class _Follower:
    """Follows one query.

    Args:
        lineage: what recorded names stand for.
        prepared: the variables of the text.
        variables: of the dashboard, for the values of matchers.
    """

    def __init__(self, lineage: Lineage, prepared: Prepared, variables: Mapping[str, Variable]) -> None:
        self._lineage = lineage
        self._prepared = prepared
        self._chooser = Chooser(lineage.recorded, prepared, variables)

    def follow(self, node: Node) -> list[Branch]:
        """The branches of a part of the query."""
        if isinstance(node, Selector):
            return self._selector(node)
        if isinstance(node, Number):
            return [Branch(is_open=False, bounds=(node.value, node.value), is_scalar=True)]
        if isinstance(node, Aggregate):
            return [self._aggregated(branch, node) for branch in self.follow(node.inner)]
        if isinstance(node, Binary):
            return self._binary(node)
        if isinstance(node, Negative):
            return [branch.bounded(known.negated(branch.bounds)) for branch in self.follow(node.inner)]
        if isinstance(node, Call):
            return self._call(node)
        return [Branch(is_open=False, is_scalar=True)]

    def _binary(self, node: Binary) -> list[Branch]:
        found = binary(node, self.follow(node.left), self.follow(node.right), same=node.left == node.right)
        told = [each.name for each in selectors(node) if each.name in JOB_NUMBERS] if node.op == "==" else []
        return [branch._replace(selects=(*branch.selects, ("jobid", f"{told[0]} == a job"))) for branch in found] \
            if told else found  # fmt: skip

    def _selector(self, node: Selector) -> list[Branch]:
        found: list[Branch] = []
        for matchers in node.matchers:
            base = self._chooser.chosen(matchers)
            recorded, flows, other = self._chooser.sources(node.name, matchers)
            for name in recorded:
                found += [_narrowed(branch, base) for branch in self._lineage.recorded_as(name)]
            if flows:
                if base.of_instance:
                    flows = [flow._replace(of_instance=True) for flow in flows]
                held = base.branch._replace(flows=tuple(flows), bounds=known.AT_LEAST_ZERO)
                if self._lineage.made:
                    made = [pair for pair in self._lineage.made if held.carries(pair[1].split(", ")[0])]
                    held = held._replace(stands_for=tuple(made))
                found.append(_of_workloads(held, node.name))
            elif is_of_nodes(node.name):
                found.append(_of_nodes(base.branch))
            elif not recorded or other:
                found.append(_of_workloads(base.branch, node.name))
        return known.limited(found)

    def _aggregated(self, branch: Branch, node: Aggregate) -> Branch:
        op = node.op
        if op in ("count", "group"):
            branch = branch.demoted()
        bounds = known.AT_LEAST_ZERO if op in _NEVER_NEGATIVE and _is_never_negative(branch) else known.ANYTHING
        if op in ("min", "max", "avg", "quantile", "any", "median", *KEEP_SERIES):
            bounds = branch.bounds
        if op == "group":
            bounds = (1, 1)
        branch = (branch._replace(is_scalar=False) if branch.is_scalar else branch).bounded(bounds)
        if op in KEEP_SERIES:
            return self._grouped(branch, node.labels or (), op) if not node.without else branch
        if node.without:
            return self._left_over(branch, node)
        if op == "count_values" and isinstance(node.parameter, Quoted):
            return self._by(branch, node).with_label(node.parameter.text)
        return self._by(branch, node)

    def _by(self, branch: Branch, node: Aggregate) -> Branch:
        wanted = self._labels(node.labels or ())
        marked = self._grouped(branch, node.labels or (), node.op)
        return marked.only(frozenset(wanted))

    def _labels(self, written: Sequence[str]) -> Sequence[str]:
        if not self._prepared.held:
            return written
        wanted: list[str] = []
        for label in written:
            names, _ = self._prepared.possible(label)
            wanted += [part.strip() for name in names for part in name.split(",") if part.strip()]
        return wanted

    def _grouped(self, branch: Branch, written: Sequence[str], op: str) -> Branch:
        """With the workload labels among those it is grouped by, and the reason."""
        wanted = self._labels(written)
        made = dict(branch.stands_for)
        alone = all(label_kind(label) is not LabelKind.OTHER or label.startswith("cluster") for label in wanted)
        for label in wanted:
            if not branch.carries(label):
                continue
            if label in made:
                branch = branch.marked(label, f"grouped by {label}, made out of {made[label]}")
            elif label == "job" and not (alone and len(branch.flows) > 0):
                continue
            elif names_workload(label):
                branch = branch.marked(label, f"{op} by {label}")
        unknown = [label for label in wanted if not is_known_label(label) and label not in made and not is_held(label)]
        if unknown and branch.flows and branch.carries(unknown[0]):
            doubt = (
                f"it is grouped by {unknown[0]}, which is no label of a device that is known here: a pod may bring it"
            )
            branch = branch._replace(doubts=(*branch.doubts, doubt))
        for label in written if self._prepared.held else ():
            if is_held(label) and not self._prepared.possible(label)[1]:
                told = shown(label, self._prepared)
                variable = self._prepared.held[int(re.findall(r"_7v(\d+)v7_", label)[0])]
                if variable.values or not branch.flows:
                    continue
                branch = branch._replace(doubts=(*branch.doubts, f"it is grouped by {told}, whatever that is"))
        return branch

    def _left_over(self, branch: Branch, node: Aggregate) -> Branch:
        """After ``without``: what it leaves is what it is grouped by, once the device is gone."""
        dropped = frozenset(self._labels(node.labels or ()))
        left = branch.without(dropped)
        if not branch.is_open or not branch.flows or not dropped & _IDENTITIES:
            return left
        kept = [
            label
            for label in ("pod", "exported_pod", "namespace", "exported_namespace", "container")
            if left.carries(label)
        ]
        if not kept:
            return left
        if {"gpu", "UUID"} <= dropped or {"gpu", "uuid"} <= dropped:
            return left.marked(kept[0], f"{node.op} without the device's labels leaves {kept[0]}")
        gone = ", ".join(sorted(dropped & _IDENTITIES))
        doubt = f"{node.op} without {gone} keeps the pod's labels, and whether the device's stay is up to the exporter"
        return left._replace(doubts=(*left.doubts, doubt))

    def _call(self, node: Call) -> list[Branch]:
        name = node.name
        followed = [self.follow(argument) for argument in node.arguments]
        vectors = [branches for branches in followed if not all(branch.is_scalar for branch in branches)]
        if not vectors:
            return [
                branch._replace(is_open=False, names=frozenset(), is_scalar=name not in ("vector", "union"))
                for branch in (followed[0] if followed else [Branch()])
            ]
        if name == "union":
            return known.limited([branch for branches in vectors for branch in branches])
        first = vectors[0]
        if len(vectors) > 1:
            first = next((each for each in vectors if any(branch.flows or branch.is_open for branch in each)), first)
        inner = first
        for more in followed:
            if more is first:
                continue
            extra = tuple([flow for branch in more for flow in branch.flows])
            if not extra:
                continue
            inner = [branch._replace(flows=known.joined_flows(branch.flows, extra)) for branch in inner]
        quoted = [argument.text if isinstance(argument, Quoted) else "" for argument in node.arguments]
        labelled: Callable[[Branch, Sequence[str]], Branch] | None = LABEL_FUNCTIONS.get(name)
        if labelled is not None:
            return [labelled(branch, quoted) for branch in inner]
        if name in ("clamp", "clamp_max", "clamp_min"):
            limits = [branches[0].bounds for branches in followed if branches not in vectors]
            return [branch.bounded(_clamped(name, branch.bounds, limits)) for branch in inner]
        if name == "label_values":
            label = _last_name(node)
            return [_enumerated(branch.demoted(), label) for branch in inner]
        if name in _PRESENCE:
            inner = [branch.demoted() for branch in inner]
        if name in ("absent", "absent_over_time", "scalar"):
            inner = [branch.only(frozenset())._replace(is_scalar=name == "scalar") for branch in inner]
        return [branch.bounded(_function_bounds(name, branch)) for branch in inner]


def _of_workloads(branch: Branch, name: str) -> Branch:
    """With the labels of workloads that every series of a metric has."""
    for label in workloads_of(name):
        if not branch.carries(label):
            continue
        branch = branch.marked(label, f"{name} has one series a {label}")
        if not names_workload(label):  # uuid of a compute unit
            branch = branch._replace(stands_for=(*branch.stands_for, (label, "compute_unit")))
    return branch


def _of_nodes(branch: Branch) -> Branch:
    """Series of nodes: a label that somebody put on the node chooses nodes, and no workload."""
    selects = tuple(each for each in branch.selects if not is_label_of_object(each[0]))
    return branch._replace(selects=selects, of_nodes=True)


def _narrowed(branch: Branch, chosen: Chosen) -> Branch:
    """A recorded branch after the matchers of the reader."""
    selects = tuple(each for each in chosen.branch.selects if branch.carries(each[0]))
    dropped = chosen.branch.names
    narrowed = branch.without(dropped) if dropped else branch
    flows = branch.flows
    if chosen.of_instance:
        flows = tuple(flow._replace(of_instance=True) for flow in flows)
    pinned = branch.pinned | chosen.branch.pinned
    return narrowed._replace(selects=known.joined_texts(branch.selects, selects), flows=flows, pinned=pinned)


def _enumerated(branch: Branch, label: str) -> Branch:
    marked = branch.marked(label, f"its values of {label} are listed") if names_workload(label) else branch
    return marked.only(frozenset({label}))


def _last_name(node: Call) -> str:
    last = node.arguments[-1]
    return last.name if isinstance(last, Selector) and len(node.arguments) > 1 else ""


def _clamped(name: str, bounds: known.Bounds, limits: Sequence[known.Bounds]) -> known.Bounds:
    if name == "clamp_max" and limits:
        return known.at_most(bounds, limits[0])
    if name == "clamp_min" and limits:
        return known.at_least(bounds, limits[0])
    if len(limits) == 2:
        return known.at_most(known.at_least(bounds, limits[0]), limits[1])
    return known.ANYTHING


def _is_never_negative(branch: Branch) -> bool:
    return branch.bounds[0] is not None and branch.bounds[0] >= 0


def _function_bounds(name: str, branch: Branch) -> known.Bounds:
    if name in ("avg_over_time", "min_over_time", "max_over_time", "last_over_time", "sort", "sort_desc"):
        return branch.bounds
    return known.AT_LEAST_ZERO if name in _NEVER_NEGATIVE and _is_never_negative(branch) else known.ANYTHING
