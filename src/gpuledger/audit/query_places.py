"""Where queries can stand: keys of documents that hold one, may hold one, or only speak of one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuledger.audit.gpu_words import names_workload, tells_prof
from gpuledger.audit.grafana import mapping, text

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
    "targetLabel target_label datasource"
)
TELLING = frozenset(_TELLING_WORDS.split())
"""Keys that say what a mapping is; one without any of them is only walked."""

_PROSE_WORDS = (
    "description title legendFormat help summary message content name text label comment note notes runbook "
    "regex runbook_url displayName unit id uid kind source sourceLabels source_labels pattern tags tag url "
    "link documentation unitText alias panelTitle groupBy refId hide current options value"
)
PROSE = frozenset(_PROSE_WORDS.split())
_ALERT_LABELS = re.compile(r"\$?labels\.(\w+)|\.Labels\.(\w+)|index\s+\$labels\s+[\"'](\w+)", re.IGNORECASE)
_LOOKS_LIKE_QUERY = re.compile(r"[({\[]|\bby\b|\bon\b")
DOCUMENT = re.compile(
    r"^[ \t]*(\{|\[|---|apiVersion:|groups:|kind:|panels:|(- )?(expr|record|alert|query):)", re.MULTILINE
)


def might_be_query(written: str) -> bool:
    """Whether a text that names a metric may be a query of it, and no list of counters."""
    return not tells_prof(written) or bool(_LOOKS_LIKE_QUERY.search(written))


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
