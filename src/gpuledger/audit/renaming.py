"""What happens before any query reads: metrics and labels renamed by relabelling and by collectors, streams aggregated.

In: one step of a configuration. Out: the metrics that get another name, the labels made out of a workload's, queries.
Sources: Prometheus' ``relabel_config``, the Operator's ``metricRelabelings``, the collector's ``metricstransform``,
VictoriaMetrics' stream aggregation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpuledger.audit.gpu_words import DEV_METRICS, PROF_METRICS, names_place, names_workload
from gpuledger.audit.grafana import listing, text
from gpuledger.audit.plain import Text, line_of
from gpuledger.model.findings import Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A metric that gets another name.

    Args:
        pattern: of the old names.
        name: the new one.
        where: the place.
    """

    pattern: str
    name: str
    where: Where


_ONE_GROUP = re.compile(r"\^?([\w:]*)\((\.[*+]|[\w:|]+)\)([\w:]*)\$?")
"""A pattern with one group between words: nearly all that rename a family of metrics."""

_HELD = re.compile(r"\$\{?1\}?")
_LABELLED = re.compile(r"[A-Za-z_]\w*")


def renamed(value: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The pattern of old names and the new name, for each that a step gives."""
    if "include" in value and "new_name" in value:  # of OpenTelemetry's collector
        pattern, new = text(value["include"]), text(value["new_name"])
        if pattern and new:
            yield pattern, new
        return
    pattern, new = text(value.get("regex")), text(value.get("replacement"))
    if _target(value) != "__name__" or not pattern:
        return
    if new and "$" not in new:
        yield pattern, new
    found = _ONE_GROUP.fullmatch(pattern)
    if found is None or not _HELD.search(new):
        return
    before, group, after = found.groups()
    for metric in (*PROF_METRICS, *DEV_METRICS):
        inner = metric[len(before) : len(metric) - len(after)]
        fits = metric.startswith(before) and metric.endswith(after) and inner
        if fits and (group.startswith(".") or inner in group.split("|")):
            yield metric, _HELD.sub(inner, new)


def made_label(value: Mapping[str, object]) -> tuple[str, str] | None:
    """The label that a step makes out of a workload's, and what it is made of; None where it makes none."""
    sources = [*map(text, listing(value.get("sourceLabels"))), *map(text, listing(value.get("source_labels")))]
    target = _target(value)
    workloads = [label for label in sources if names_workload(label) and label != "job"]
    if not workloads or not _LABELLED.fullmatch(target) or target.startswith("__"):
        return None
    if names_place(target) or names_workload(target) or not _HELD.search(text(value.get("replacement")) or "$1"):
        return None
    return target, ", ".join(workloads)


def aggregated(value: Mapping[str, object]) -> list[Text]:
    """The queries that a step of VictoriaMetrics' stream aggregation stands for."""
    if "match" not in value or "outputs" not in value:
        return []
    word = "without" if "without" in value else "by"
    labels = ", ".join(filter(_LABELLED.fullmatch, map(text, listing(value.get(word)))))
    matched = value["match"] if isinstance(value["match"], list) else [value["match"]]
    return [Text(f"avg {word} ({labels}) ({each})", line_of(each)) for each in matched if isinstance(each, str)]


def _target(value: Mapping[str, object]) -> str:
    return text(value.get("targetLabel")) or text(value.get("target_label"))
