"""Filters of Google Cloud Monitoring's dashboards as queries, so that they are judged by the same rules.

``metric.type="prometheus.googleapis.com/NAME/gauge"`` names the metric, ``metric.labels.pod`` and the like its labels,
``groupByFields`` what it is grouped by. Source: Cloud Monitoring API, TimeSeriesFilter, Aggregation, filter syntax.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from gpuledger.audit.grafana import listing, mapping, text

_TYPE = re.compile(
    r"metric\.type\s*=\s*\"?(?:prometheus\.googleapis\.com/)?([\w:./-]+?)(?:/(?:gauge|counter|unknown|histogram|summary)[\w:]*)?\"?(?=\s|$)"
)
_LABEL = re.compile(
    r"metric\.labels?\.?(?:\"|\\\")?([\w]+)(?:\"|\\\")?\s*(!?=)\s*(?:monitoring\.regex\.full_match\()?\"([^\"]*)\""
)
_OTHER = re.compile(r"(?:resource|metadata)\.(?:labels?|user_labels|system_labels)\.?\"?([\w]+)\"?")
_OF_CONTAINER = re.compile(r"resource\.labels?\.?\"?(pod_name|namespace_name|container_name)\"?\s*=\s*\"([^\"]*)\"")
_REDUCERS = {
    "REDUCE_COUNT": "count",
    "REDUCE_MEAN": "avg",
    "REDUCE_SUM": "sum",
    "REDUCE_MAX": "max",
    "REDUCE_MIN": "min",
}
_OF_TARGET = frozenset({"namespace", "pod", "container", "pod_name", "namespace_name", "container_name"})


LONGEST = 20_000
"""Characters of a filter."""


def is_filter(value: Mapping[str, object]) -> bool:
    """Whether a mapping is a filter of time series."""
    return "metric.type" in text(value.get("filter")) and len(text(value.get("filter"))) < LONGEST


def as_query(value: Mapping[str, object]) -> tuple[str, str]:
    """The filter in the words of PromQL, and a note of what it is.

    Labels of the resource are those of the target that was scraped, which is the exporter: they are no workload's.
    """
    written = text(value.get("filter"))
    found = _TYPE.search(written)
    name = found[1].rsplit("/", 1)[-1] if found else ""
    is_container = bool(found) and "kubernetes.io/container/accelerator/" in written
    if is_container:
        name = f"container_accelerator_{name}"
    matchers = [
        f"{label}{'!~' if op == '!=' else '=~'}{json.dumps(given)}" for label, op, given in _LABEL.findall(written)
    ]
    if is_container:  # the resource is the container itself, not the exporter
        matchers += [f"{label}=~{json.dumps(given)}" for label, given in _OF_CONTAINER.findall(written)]
    query = f"{re.sub('[^a-zA-Z0-9_:]', '_', name)}{{{', '.join(matchers)}}}" if name else written
    for key in ("aggregation", "secondaryAggregation"):
        query = _aggregated(query, mapping(value.get(key)), is_container=is_container)
    return query, "a filter of Cloud Monitoring"


def _aggregated(query: str, aggregation: Mapping[str, object], *, is_container: bool) -> str:
    fields = [text(each) for each in listing(aggregation.get("groupByFields"))]
    reducer = text(aggregation.get("crossSeriesReducer"))
    if not reducer or reducer == "REDUCE_NONE":
        return query
    labels = [label for each in fields if (label := _label_of(each, is_container=is_container))]
    return f"{_REDUCERS.get(reducer, 'avg')} by ({', '.join(labels)}) ({query})"


def _label_of(field: str, *, is_container: bool) -> str:
    told = re.fullmatch(r"metric\.labels?\.?\"?(\w+)\"?", field.strip())
    if told:
        return told[1]
    other = _OTHER.fullmatch(field.strip())
    if other is None:
        return ""
    if "user_labels" in field:
        return f"label_{other[1]}"
    is_target = other[1] in _OF_TARGET and not is_container
    return f"__target_{other[1]}" if is_target else other[1]
