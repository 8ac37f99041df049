"""Rules of prometheus-adapter as queries: what an autoscaler is told about one pod or namespace.

``<<.Series>>`` becomes the metric of ``seriesQuery``, ``<<.LabelMatchers>>`` a matcher for each resource that the rule
maps, ``<<.GroupBy>>`` their labels. Source: prometheus-adapter, docs/config.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuledger.audit.gpu_words import names_workload
from gpuledger.audit.grafana import listing, mapping, text
from gpuledger.audit.plain import Text, key_of, line_of
from gpuledger.audit.queries import NOTHING_SHOWN, Shown

_NAME = re.compile(r"^\s*([A-Za-z_:][\w:]*)")
_BRACES = re.compile(r"\{(.*)\}", re.DOTALL)
_NAMED = re.compile(r"__name__\s*=~?\s*[\"']([^\"']*)[\"']")
_PLACES = frozenset({"node", "nodes", "no"})
"""Kinds of object that are no workload."""
_LEFT = re.compile(r"<<[^<>]*>>")


def queries(rule: Mapping[str, object]) -> list[tuple[str, Text, Shown]]:
    """The query of a rule: its name, its text at its line, what it is shown as."""
    series, query = text(rule.get("seriesQuery")), text(rule.get("metricsQuery"))
    kinds = _resources(rule)
    labels = list(kinds)
    metric, matchers = _series(series)
    more = ",".join(f'{label}=~"$object"' for label in labels)
    written = query or "<<.Series>>{<<.LabelMatchers>>}"
    written = written.replace("<<.Series>>{", f"{metric}{{{matchers}{',' if matchers else ''}")
    written = written.replace("<<.Series>>", metric or f"{{{matchers}}}")
    written = written.replace("<<.LabelMatchers>>", more).replace("<<.GroupBy>>", ", ".join(labels))
    written = _LEFT.sub("", written)
    named = mapping(rule.get("name"))
    name = text(named.get("as")) or series or "adapter rule"
    given = tuple(
        (label, f"the adapter gives it to each {kind or label}")
        for label, kind in kinds.items()
        if (kind not in _PLACES if kind else names_workload(label))
    )
    shown = Shown(labels=given) if given else NOTHING_SHOWN
    return [(f"adapter {name}", Text(written, line_of(rule.get("metricsQuery")) or line_of(series)), shown)]


def _series(query: str) -> tuple[str, str]:
    """The metric and the matchers of a ``seriesQuery``."""
    braces = _BRACES.search(query)
    inside = braces[1].strip().rstrip(",") if braces else ""
    named = _NAME.match(query)
    if named:
        return named[1], inside
    told = _NAMED.search(inside)
    if told and re.fullmatch(r"\^?[A-Za-z_:][\w:]*\$?", told[1]):
        return told[1].strip("^$"), _NAMED.sub("", inside).strip(", ")
    return "", inside


def _resources(rule: Mapping[str, object]) -> dict[str, str]:
    """The labels that the rule maps to objects of Kubernetes, each with the kind; empty where that is not told."""
    resources = mapping(rule.get("resources"))
    found = {
        key_of(label): text(mapping(each).get("resource"))
        for label, each in mapping(resources.get("overrides")).items()
    }
    template = text(resources.get("template"))
    if template:
        found = {template.replace("<<.Resource>>", kind): kind for kind in ("pod", "namespace")} | found
    found = {text(label): "" for label in listing(resources.get("labels"))} | found
    return {label: kind for label, kind in found.items() if re.fullmatch(r"[A-Za-z_]\w*", label)}
