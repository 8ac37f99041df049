"""Metrics of a HorizontalPodAutoscaler as queries: which figure decides how many pods a workload gets.

``type: Pods`` reads the metric of each pod, ``Object`` that of one object, ``External`` what its selector leaves.
Sources: Kubernetes' API (autoscaling v2 and v2beta1), names of Google's adapter
(``prometheus.googleapis.com|NAME|gauge``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from gpuledger.audit.grafana import listing, mapping, text
from gpuledger.audit.plain import Text, key_of, line_of
from gpuledger.audit.queries import NOTHING_SHOWN, Shown

_NAME = re.compile(r"[A-Za-z_:][\w:]*")


def is_autoscaler(value: Mapping[str, object]) -> bool:
    """Whether an object is one."""
    return value.get("kind") == "HorizontalPodAutoscaler"


def queries(value: Mapping[str, object]) -> Iterator[tuple[str, Text, Shown]]:
    """The query of each metric but those of CPU and memory: its name, its text at its line, whose it is read as."""
    named = text(mapping(value.get("metadata")).get("name")) or "autoscaler"
    for each in listing(mapping(value.get("spec")).get("metrics")):
        for kind in ("pods", "object", "external"):
            one = mapping(mapping(each).get(kind))
            metric = mapping(one.get("metric"))
            written = metric.get("name", one.get("metricName"))
            name = _spelled(text(written))
            if not name:
                continue
            selector = mapping(metric.get("selector")) or mapping(one.get("selector") or one.get("metricSelector"))
            query = Text(f"{name}{_matchers(selector)}", line_of(written))
            yield f"autoscaler {named} / {name}", query, _read_as(kind, one)


def _spelled(name: str) -> str:
    """The metric in Prometheus' spelling; empty where it has none."""
    parts = name.split("|")
    if parts[0] == "kubernetes.io":
        return "_".join(parts[1:])
    if parts[0] == "prometheus.googleapis.com" and len(parts) > 1:
        return parts[1]
    return name if _NAME.fullmatch(name) else ""


def _matchers(selector: Mapping[str, object]) -> str:
    """Matchers of the labels that the metric has; Google's ``resource.labels`` are those of what was scraped."""
    given = [
        f"{key.rsplit('.', 1)[-1]}={json.dumps(each)}"
        for key, each in ((key_of(key), each) for key, each in mapping(selector.get("matchLabels")).items())
        if isinstance(each, str) and not key.startswith("resource.")
    ]
    return f"{{{', '.join(given)}}}" if given else ""


def _read_as(kind: str, one: Mapping[str, object]) -> Shown:
    if kind == "pods":
        return Shown(labels=(("pod", "the autoscaler reads it of each pod"),))
    described = mapping(one.get("describedObject") or one.get("target"))
    what = text(described.get("kind"))
    if kind == "object" and what and what != "Node":
        return Shown(labels=((what.lower(), f"the autoscaler reads it of the {what} {text(described.get('name'))}"),))
    return NOTHING_SHOWN
