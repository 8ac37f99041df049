"""Judges one query: whether what it gives per workload is a whole device's figure, and why.

In: the branches of its lineage, and what stands beside it in its panel or alert. Out: the check that it meets, or why
it is fine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuledger.audit.branches import Branch, Flow, Scope
from gpuledger.audit.dashboard_checks import (
    CHECKS,
    DEVICE_SCOPE,
    JOB_LEVEL,
    LAUNDERED,
    MISATTRIBUTION,
    PRESENCE_ONLY,
    RENAMED,
    SHOWN_BY_DEFAULT,
    UNDECIDABLE,
)
from gpuledger.audit.device_metrics import is_of_dcgm
from gpuledger.audit.gpu_words import ON_EVERY_DEVICE, PER_PROCESS, LabelKind, label_kind, tells_prof
from gpuledger.audit.queries import Query, Role
from gpuledger.model.findings import AuditCheck

FINE = "fine"
_WEIGHT = {check.id: weight for weight, check in enumerate(CHECKS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a query came to.

    Args:
        check: that it meets; None where it is fine.
        why: in one sentence.
        evidence: what the sentence rests on.
    """

    check: AuditCheck | None = None
    why: str = ""
    evidence: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Its word in tables."""
        return self.check.verdict if self.check else FINE


_FINE = Judgement()


def judge(query: Query, branches: Sequence[Branch], beside: Sequence[tuple[str, str]] = ()) -> Judgement:
    """The heaviest of what the branches of a query come to.

    Args:
        query: with what is shown beside it.
        branches: of its lineage.
        beside: labels that a table joins to its rows from another query, each with the reason.
    """
    best = _FINE
    for branch in branches:
        if not branch.flows:
            continue
        given = _given_to(branch, query, beside)
        for flow in branch.flows:
            found = _of_flow(flow, branch, given, query)
            if _weight(found) < _weight(best):
                best = found
    return best


def _weight(judgement: Judgement) -> tuple[int, bool]:
    """How soon it counts: the checks in their order, then what is fine, with a reason before without."""
    return (len(CHECKS) if judgement.check is None else _WEIGHT[judgement.check.id], not judgement.why)


def _given_to(branch: Branch, query: Query, beside: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The workload labels that the figure is given by, each with the reason."""
    hidden = query.shown.hidden
    found = [(label, reason) for label, reason in branch.marks if label not in hidden]
    found += [(label, f"selected by {matcher}") for label, matcher in branch.selects]
    made = dict(branch.stands_for)
    for label, place in query.shown.labels:
        if branch.carries(label) or label in made:
            found.append((label, place))
    for variable, place in query.shown.by_variable:
        known = query.variables.get(variable)
        found.append((known.label if known is not None and known.label else variable, place))
    return list(dict.fromkeys((*found, *beside)))


def _of_flow(flow: Flow, branch: Branch, given: Sequence[tuple[str, str]], query: Query) -> Judgement:
    if flow.scope is Scope.PROF:
        return _of_prof(flow, branch, given, query)
    if flow.scope is Scope.DEVICE and flow.is_value and given:
        return Judgement(check=DEVICE_SCOPE, why=_device_scope(flow, given), evidence=_evidence(flow, given))
    if flow.scope is Scope.UNKNOWN and flow.is_value and given:
        why = f"{flow.why}, so it cannot be told whose figure it gives to {_words(given)}"
        return Judgement(check=UNDECIDABLE, why=why, evidence=_evidence(flow, given))
    return _FINE


def _of_prof(flow: Flow, branch: Branch, given: Sequence[tuple[str, str]], query: Query) -> Judgement:
    evidence = _evidence(flow, given)
    if not given:
        return _without_workload(flow, branch, query)
    if not flow.is_value:
        why = f"the value of {flow.metric} is discarded: it only tells which {_words(given)} has a row"
        return Judgement(check=PRESENCE_ONLY, why=why, evidence=evidence)
    if flow.of_instance:
        why = (
            f"{flow.metric} of MIG instances is given to {_words(given)}: right where one pod has the instance, a "
            "whole instance's figure where it is time-sliced"
        )
        return Judgement(check=UNDECIDABLE, why=why, evidence=evidence)
    if all(_is_of_job(label, branch) for label, _ in given):
        why = f"{flow.metric} is a whole device's figure, and this gives it to {_words(given)}: {_reasons(given)}"
        return Judgement(check=JOB_LEVEL, why=why, evidence=evidence)
    given_to = f"a whole device's figure, and this gives it to {_words(given)}: {_reasons(given)}"
    if flow.chain and not tells_prof(flow.chain[0]):
        why = f"{flow.chain[0]} is {flow.metric} under another name, {given_to}"
        return Judgement(check=LAUNDERED, why=why, evidence=evidence)
    why = f"{flow.metric} is {given_to}"
    return Judgement(check=MISATTRIBUTION, why=why, evidence=evidence)


def _is_of_job(label: str, branch: Branch) -> bool:
    made = dict(branch.stands_for).get(label, label)
    return all(label_kind(each) is LabelKind.JOB for each in made.split(", "))


def _without_workload(flow: Flow, branch: Branch, query: Query) -> Judgement:
    """Of a profiling figure that is given to nobody by word."""
    if flow.is_value and branch.doubts:
        return Judgement(check=UNDECIDABLE, why=branch.doubts[0], evidence=_evidence(flow, ()))
    carried = [label for label in ON_EVERY_DEVICE if branch.is_open and branch.carries(label)]
    if not flow.is_value or not carried or not branch.is_open:
        return Judgement(why=f"{flow.metric} stays at the level of devices or above")
    if query.role is Role.RECORD and not tells_prof(query.record):
        why = f"{query.record} is {flow.metric} under another name, and the pod's labels go with it"
        return Judgement(check=RENAMED, why=why, evidence=_evidence(flow, ()))
    if query.role in (Role.PANEL, Role.MENTION) and query.shown.by_default and set(carried[:1]) - query.shown.hidden:
        why = f"{flow.metric} is shown with every label it has, the pod among them where the exporter puts it there"
        return Judgement(check=SHOWN_BY_DEFAULT, why=why, evidence=_evidence(flow, ()))
    return Judgement(why=f"{flow.metric} is a device's own, and no workload is selected, grouped by or shown")


def _device_scope(flow: Flow, given: Sequence[tuple[str, str]]) -> str:
    told = f"{flow.metric} is given to {_words(given)}"
    if flow.metric in PER_PROCESS:
        return (
            f"{told} ({_reasons(given)}): theirs only with process mapping on (dcgm-exporter 4.5.3), else the device's"
        )
    whose = "with every exporter" if is_of_dcgm(flow.metric) else "and no exporter of it tells the pods' parts"
    return f"{told} ({_reasons(given)}): it is a device's figure {whose}"


def _words(given: Sequence[tuple[str, str]]) -> str:
    """The labels for a sentence, each spelled once: ``pod, namespace``."""
    plain = [label.removeprefix("exported_").removesuffix("_name") or label for label, _ in given]
    return ", ".join(dict.fromkeys(plain))


def _reasons(given: Sequence[tuple[str, str]]) -> str:
    """Why it is theirs, for a sentence."""
    found = list(dict.fromkeys(reason for _, reason in given))
    return "; ".join(found[:4]) + (f"; and {len(found) - 4} more" if len(found) > 4 else "")


def _evidence(flow: Flow, given: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """All reasons in one line where the sentence has not room for them, and the rules that the metric went through."""
    found = list(dict.fromkeys(reason for _, reason in given))
    chain = (" <- ".join((*flow.chain, flow.metric)),) if flow.chain else ()
    return (*(("; ".join(found),) if len(found) > 4 else ()), *chain)


def workload_marks(branches: Sequence[Branch]) -> Mapping[str, str]:
    """The workload labels that a query's own rows name, with the reason."""
    return {label: reason for branch in branches for label, reason in branch.marks}
