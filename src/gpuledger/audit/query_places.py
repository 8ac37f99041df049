"""Where queries can stand: keys of documents that hold one, may hold one, or only speak of one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuledger.audit.device_metrics import tells_device
from gpuledger.audit.gpu_words import MetricKind, metric_kind, names_device, names_workload, tells_prof
from gpuledger.audit.grafana import mapping, text
from gpuledger.audit.plain import Text, line_of

CERTAIN = frozenset({"expr", "promql", "promQL", "prometheusQuery", "metricsQuery"})
OTHER_LANGUAGES = {
    "timeSeriesQueryLanguage": "MQL",
    "rawSql": "SQL",
    "sqlQuery": "SQL",
    "sqlExpression": "SQL",
    "rawQueryText": "SQL",
}
"""Keys whose texts are in a language that is not judged."""

POSSIBLE = frozenset({"query", "expression", "queryExpression", "metric_query", "rawQuery", "definition"})
LISTS = frozenset({"queries", "exprs", "expressions", "promqls", "rules", "recordingRules", "recording_rules"})
MAY_HOLD = CERTAIN | POSSIBLE | frozenset(OTHER_LANGUAGES)
"""Keys whose texts are looked at whatever they hold."""

NO_QUERIES = frozenset({"fieldConfig", "gridPos", "datasource"})
"""What a panel says of its looks and its source: with thousands of panels the most of a dashboard."""

OF_PANELS = NO_QUERIES | {"options"}
"""The same of a mapping with targets, which is a panel for certain."""

_TELLING_WORDS = (
    "templating panels rows elements __inputs repeat title targets kind expr metricsQuery condition filter "
    "targetLabel target_label datasource metadata new_name expression model outputs"
)
TELLING = frozenset(_TELLING_WORDS.split())
"""Keys that say what a mapping is; one without any of them is only walked."""

OF_QUERIES = frozenset({"expr", "datasource"})
"""Of these, what says no more than that a query stands there."""

RENAMING = frozenset({"targetLabel", "target_label", "new_name"})
"""Of these, what a step of relabelling has."""

_PROSE_WORDS = (
    "description title legendFormat help summary message content name text label comment note notes runbook "
    "regex runbook_url displayName unit id uid kind source sourceLabels source_labels pattern tags tag url "
    "link documentation unitText alias panelTitle groupBy refId hide current options value"
)
PROSE = frozenset(_PROSE_WORDS.split())
RELABELLING = frozenset({"metricRelabelings", "metric_relabel_configs", "metricRelabeling", "write_relabel_configs"})
"""Steps over the labels of what was scraped; ``relabelings`` and the like only see those of the target."""

_ASKED = re.compile(r"\bquery\s+\(?(?:printf\s+)?(?:\"((?:[^\"\\]|\\.)*)\"|`([^`]*)`)")
_ALERT_LABELS = re.compile(
    r"\$?labels\.(\w+)|\.Labels\.(\w+)|index\s+(?:\$labels|\.Labels)\s+[\"'](\w+)", re.IGNORECASE
)
_COUNTER = re.compile(r"\s*\w+\s*,\s*(gauge|counter|label|histogram)\s*,")
"""A line of the exporter's own list: name, kind, help."""

_LOOKS_LIKE_QUERY = re.compile(r"[({\[]|\bby\b|\bon\b")
_ELSEWHERE = (
    (re.compile(r"\s*(\w+\()*\s*(avg|sum|min|max|count|p\d\d):[a-z][\w.]*\{"), "Datadog"),
    (re.compile(r"\s*(SEARCH\(|METRICS\(|SELECT\b.*\bFROM\s+(SCHEMA\(|\"))", re.DOTALL), "CloudWatch"),
    (re.compile(r"\s*(SELECT\b.*\bFROM|FROM\b.*\bSELECT)\b", re.DOTALL | re.IGNORECASE), "SQL or NRQL"),
    (re.compile(r"\s*(\w+\s*=\s*)?data\(\s*['\"]"), "Splunk"),
    (re.compile(r"\s*(fetch\s+\w+|from\(\s*bucket)"), "MQL or Flux"),
)
"""Languages that are told by how a query begins, where no place says it."""


def language_of(written: str) -> str:
    """The language of a query that is not PromQL; empty where it is none that is known."""
    return next((name for pattern, name in _ELSEWHERE if pattern.match(written)), "")


_DOCUMENT = re.compile(
    r"^[ \t]*(\{|\[|---|apiVersion:|groups:|kind:|panels:|(- )?(expr|record|alert|query):)", re.MULTILINE
)


_OBJECT = re.compile(r'\s*\{\s*"[^"\n]{1,200}"\s*:')
"""How JSON of one line begins, as `kubectl get configmap` prints a dashboard; a name in braces has no colon behind."""


_ASKS = re.compile(r"[(\s]([A-Za-z_:][\w:]*)[{\[]|\(\s*([A-Za-z_:][\w:]*)\s*\)")


def asks_at(written: str) -> int:
    """The line of a text where a metric of a device stands as in a query: in brackets, or before some; 0 without."""
    if not tells_device(written):
        return 0
    for found in _ASKS.finditer(written):
        if metric_kind(found[1] or found[2]) is not MetricKind.OTHER:
            return written.count("\n", 0, found.start(1 if found[1] else 2)) + 1
    return 0


def is_document(written: str) -> bool:
    """Whether a text may be a document itself: JSON of one line, or the lines of a dashboard or of rules."""
    return ("\n" in written and bool(_DOCUMENT.search(written))) or bool(_OBJECT.match(written))


def might_be_query(written: str) -> bool:
    """Whether a text names a metric of a device and may be a query of it, and no list of counters."""
    if _COUNTER.match(written) or not names_device(written):
        return False
    return not tells_prof(written) or bool(_LOOKS_LIKE_QUERY.search(written))


def asked_by(rule: Mapping[str, object]) -> list[str]:
    """The queries that the texts of an alert ask: ``{{ query "..." | first | value }}``."""
    found: list[str] = []
    for each in mapping(rule.get("annotations")).values():
        for quoted, raw in _ASKED.findall(each) if isinstance(each, str) else ():
            written = raw or quoted.replace('\\"', '"').replace("\\\\", "\\")
            found.append(Text(written, line_of(each)))
    return found


def said_by(rule: Mapping[str, object]) -> list[tuple[str, str]]:
    """The workload labels that the texts of an alert print."""
    found: list[tuple[str, str]] = []
    if "annotations" not in rule and "labels" not in rule:
        return found
    for part in ("annotations", "labels"):
        for each in mapping(rule.get(part)).values():
            for names in _ALERT_LABELS.findall(text(each)):
                label = next(name for name in names if name)
                if names_workload(label) and label != "job":
                    found.append((label, f"the alert's text prints {label}"))
    return list(dict.fromkeys(found))
