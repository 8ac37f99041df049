"""What a selector chooses: which metrics its name or pattern can mean, and whose series its matchers leave.

In: a selector of a query, the recorded names, the variables. Out: metrics with what is not certain about them, and the
branch that the matchers make.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuledger.audit.branches import Branch, Flow, Scope
from gpuledger.audit.device_metrics import tells_device
from gpuledger.audit.gpu_words import (
    KNOWN_RENAMES,
    PLACES,
    MetricKind,
    is_anything,
    is_nothing,
    is_the_exporter,
    metric_kind,
    metrics_matching,
    names_workload,
    sounds_recorded,
)
from gpuledger.audit.promql_tree import Match
from gpuledger.audit.query_text import Prepared, Variable, is_held, literal, shown, spread, without_variables

_SCOPES = {MetricKind.PROF: Scope.PROF, MetricKind.DEVICE: Scope.DEVICE}
_INSTANCE = frozenset({"GPU_I_ID", "GPU_I_PROFILE"})


@dataclass(frozen=True, slots=True)
class Chosen:
    """What matchers made of a selector.

    Args:
        branch: the series that are left.
        of_instance: whether they are of MIG instances only.
    """

    branch: Branch
    of_instance: bool


_EVERY_SERIES = Chosen(Branch(), False)


class Chooser:
    """Reads the selectors of one query.

    Args:
        recorded: the names that recording rules give.
        prepared: the variables of the text.
        variables: of the dashboard, for the values of matchers.
    """

    def __init__(self, recorded: frozenset[str], prepared: Prepared, variables: Mapping[str, Variable]) -> None:
        self._recorded = recorded
        self._prepared = prepared
        self._variables = variables

    def sources(self, name: str, matchers: Sequence[Match]) -> tuple[list[str], list[Flow], bool]:
        """The recorded names, the device metrics, and whether anything else can be meant."""
        recorded: list[str] = []
        flows: list[Flow] = []
        other = False
        for each, why in self.names(name, matchers):
            if not why and each in self._recorded:
                recorded.append(each)
                continue
            flow = self._flow(each, why)
            if flow is None:
                other = True
            elif flow not in flows:
                flows.append(flow)
        return recorded, flows, other

    def _flow(self, name: str, why: str) -> Flow | None:
        if why:
            return Flow(name, Scope.UNKNOWN, why=why)
        kind = metric_kind(name)
        if kind in _SCOPES:
            return Flow(name, _SCOPES[kind])
        if name in KNOWN_RENAMES:
            return Flow(KNOWN_RENAMES[name], Scope.DEVICE, chain=(name,))
        if sounds_recorded(name):
            return Flow(name, Scope.UNKNOWN, why=f"{name} is recorded by a rule that is not among the files")
        return None

    def names(self, name: str, matchers: Sequence[Match]) -> list[tuple[str, str]]:
        """The names a selector can mean, each with the reason why it is not certain; empty if it is."""
        if name:
            return self._spelled(name)
        found: list[tuple[str, str]] = []
        told = [match for match in matchers if match.label == "__name__" and match.op in ("=", "=~")]
        denied = self._denied(matchers)
        for match in told:
            values = spread(match.value, self._variables)
            is_variable = values is None and without_variables(match.value) == ".*"
            if match.op == "=" or is_variable:
                found += self._opened(match.value) if values is None else [(value, "") for value in values]
                continue
            pattern = values[0] if values is not None and len(values) == 1 else without_variables(match.value)
            if values is not None and len(values) > 1:
                pattern = "|".join(values)
            found += self._matching(pattern, match.value, denied)
        if not told and any(tells_device(match.value) or tells_device(match.label) for match in matchers):
            return [("{}", "the selector names no metric")]
        return found

    def _opened(self, value: str) -> list[tuple[str, str]]:
        before = re.split(r"\$|\[\[", value, maxsplit=1)[0]
        if metric_kind(before + "X") is MetricKind.PROF:
            return [(value, "")]
        offered = [each for name in re.findall(r"\w+", value) if name in self._variables
                   for each in (self._variables[name].metrics,) if each]  # fmt: skip
        for pattern in offered:
            return self._matching(pattern, value)
        return [(value, f"the metric is chosen by {value}")]

    def _denied(self, matchers: Sequence[Match]) -> frozenset[str]:
        """The metrics that the selector's own ``!=`` and ``!~`` leave out, as far as their values are known."""
        denied: set[str] = set()
        for match in matchers:
            if match.label == "__name__" and match.op in ("!=", "!~"):
                values = spread(match.value, self._variables) or ()
                for value in values if len(values) == 1 else ():
                    denied |= {value} if match.op == "!=" else metrics_matching(value, self._recorded) or set()
        return frozenset(denied)

    def _matching(self, pattern: str, written: str, denied: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
        names = metrics_matching(pattern, self._recorded)
        speaks = re.search(r"dcgm|prof", pattern, re.IGNORECASE) is not None
        if names is None:
            why = f"the pattern {written} could not be read"
            return [(written, why)] if speaks or "." in pattern else []
        if not speaks and "up" in names:
            recorded = [(name, "") for name in sorted(names) if name in self._recorded]
            return [*recorded, (written, f"the pattern {written} lets device metrics through among others")]
        ordered = sorted(names - denied, key=lambda name: (metric_kind(name) is not MetricKind.PROF, name))
        devices = [name for name in ordered if name not in self._recorded]
        return [(name, "") for name in [*devices[:3], *(name for name in ordered if name in self._recorded)]]

    def _spelled(self, name: str) -> list[tuple[str, str]]:
        if not is_held(name):
            return [(name, "")]
        if metric_kind(literal(name) + "X") is MetricKind.PROF:
            return [(shown(name, self._prepared), "")]
        names, complete = self._prepared.possible(name)
        found = [(each, "") for each in names]
        written = shown(name, self._prepared)
        for pattern in self._prepared.offered(name):
            found += self._matching(pattern, written)
        if not complete and not self._prepared.offered(name):
            found.append((written, f"the metric is chosen by {written}"))
        return found

    def chosen(self, matchers: Sequence[Match]) -> Chosen:
        """What the matchers of a selector make of its series."""
        if not any(match.label in _INSTANCE or names_workload(match.label) for match in matchers):
            return _EVERY_SERIES
        branch = Branch()
        selects: list[tuple[str, str]] = []
        dropped: set[str] = set()
        pinned: set[str] = set()
        of_instance = False
        for match in matchers:
            of_instance = of_instance or (match.label in _INSTANCE and _is_present(match))
            if match.label == "__name__" or not names_workload(match.label) or match.label == "job":
                continue
            values = spread(match.value, self._variables)
            if match.op in ("!=", "!~"):
                if match.op == "!~" and values is not None and all(is_anything(value) for value in values):
                    dropped.add(match.label)
                continue
            if values is not None and all(is_nothing(value) for value in values):
                dropped.add(match.label)
            elif values is not None and all(match.op == "=~" and is_anything(value) for value in values):
                continue
            elif match.label in PLACES and values is not None and all(is_the_exporter(value) for value in values):
                pinned |= PLACES
            elif values is not None and all(is_the_exporter(value) for value in values):
                pinned.add(match.label)
            else:
                selects.append((match.label, f'{match.label}{match.op}"{match.value}"'))
        if pinned:
            selects = [each for each in selects if each[0] not in pinned]
        if dropped or pinned or selects:
            branch = branch._replace(names=frozenset(dropped), pinned=frozenset(pinned), selects=tuple(selects))
        return Chosen(branch, of_instance)


def _is_present(match: Match) -> bool:
    if match.op in ("!=", "!~"):
        return is_nothing(match.value)
    return not is_nothing(match.value) and match.value not in (".*", "^.*$") and "$" not in match.value
