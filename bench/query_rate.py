"""The rate of ``audit dashboards``: 20,000 distinct expressions a second apart, as rules, lists and dashboards.

Expressions are of the kinds that published dashboards hold: plain series with matchers, aggregations, joins, renamed
labels, variables, a recording rule in between. The verdict of each is known, so speed is not bought with answers.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import promql_parser

from gpuledger.audit.dashboards import audit_dashboards
from gpuledger.model.findings import Written

LEAST_PER_SECOND = 5000
EXPRESSIONS = 20_000
ROUNDS = 5
"""The fastest counts: what else the machine does only takes away."""
PROF = ("SM_ACTIVE", "PIPE_TENSOR_ACTIVE", "DRAM_ACTIVE", "GR_ENGINE_ACTIVE", "PCIE_TX_BYTES")

JOIN = (
    'avg by (Hostname) (DCGM_FI_PROF_{m}{{cluster="c{n}"}}) * on(Hostname) group_left(pod) '
    'label_replace(kube_pod_info, "Hostname", "$1", "node", "(.+)")'
)
SHAPES: tuple[tuple[str, str], ...] = (
    ('DCGM_FI_DEV_GPU_TEMP{{instance=~"i{n}.*", gpu=~"$gpu"}}', "fine"),
    ('avg(DCGM_FI_DEV_POWER_USAGE{{Hostname=~"h{n}"}}) / 1000', "fine"),
    ('sum by (Hostname, gpu) (rate(DCGM_FI_PROF_{m}{{cluster="c{n}"}}[$__rate_interval])) * 100', "fine"),
    ('topk(10, avg by (pod) (DCGM_FI_PROF_{m}{{namespace=~"n{n}"}}) * 100)', "misattribution"),
    ('avg(DCGM_FI_PROF_{m}{{exported_pod=~"p{n}-.*"}} * 1979)', "misattribution"),
    ("count by (namespace) (DCGM_FI_PROF_{m}{{Hostname='h{n}'}})", "presence-only"),
    (JOIN, "misattribution"),
    ('sum by (exported_namespace) (DCGM_FI_DEV_FB_USED{{cluster="c{n}"}})', "device-scope"),
    ('sum(rate(container_cpu_usage_seconds_total{{pod=~"p{n}"}}[5m])) by (pod)', "fine"),
    ('max without (instance) (busy:{m}{{namespace="n{n}"}}) > 0.9', "laundered"),
)


def race(say: Callable[[str], None]) -> dict[str, Any]:
    """Each form of file, its rate in expressions a second of CPU time, from the text to the report."""
    pairs = _expressions()
    result: dict[str, Any] = {"expressions": len(pairs), "broken": []}
    bare = _bare([text.replace("$__rate_interval", "5m") for text, _ in pairs])
    result["parser_alone"] = {"per_second": round(bare)}
    say(f"promql-parser alone          {bare:>8,.0f} expressions/s")
    seconds_each: list[float] = []
    for form, texts in (("rules", _rules(pairs)), ("lists", _lists(pairs)), ("dashboards", _boards(pairs))):
        rates = []
        for _ in range(ROUNDS):
            before = time.process_time()
            report = audit_dashboards([*texts, _recorded()])
            rates.append(len(pairs) / (time.process_time() - before))
        found = Counter(each.verdict for each in report.looked if not each.where.name.startswith("record busy"))
        if found != Counter(verdict for _, verdict in pairs):
            result["broken"].append(f"{form}: wrong verdicts, {dict(found)}")
        rate = max(rates)
        size = sum(len(text.text) for text in texts)
        result[form] = {"per_second": round(rate), "bytes_each": round(size / len(pairs))}
        say(f"audit dashboards, {form:<10} {rate:>8,.0f} expressions/s   {size / len(pairs):>5,.0f} bytes each")
        seconds_each.append(1 / rate)
    together = len(seconds_each) / sum(seconds_each)
    result["together"] = {"per_second": round(together)}
    say(f"audit dashboards, together   {together:>8,.0f} expressions/s")
    if together < LEAST_PER_SECOND:
        result["broken"].append(f"{together:,.0f} expressions a second, least {LEAST_PER_SECOND:,}")
    return result


def _bare(texts: list[str]) -> float:
    """What the parser needs alone, on the same machine at the same time: what load does to it, it does to us."""
    before = time.process_time()
    for text in texts:
        promql_parser.parse(text)
    return len(texts) / (time.process_time() - before)


def _expressions() -> list[tuple[str, str]]:
    chosen = random.Random(6)
    given = []
    for number in range(EXPRESSIONS):
        shape, verdict = SHAPES[number % len(SHAPES)]
        given.append((shape.format(n=number, m=chosen.choice(PROF)), verdict))
    return given


def _recorded() -> Written:
    rules = "".join(f"  - {{record: 'busy:{metric}', expr: DCGM_FI_PROF_{metric}}}\n" for metric in PROF)
    return Written(path="recorded.yaml", text=f"groups:\n- rules:\n{rules}")


def _rules(pairs: list[tuple[str, str]]) -> list[Written]:
    """Rule files of fifty alerts."""
    texts = []
    for first in range(0, len(pairs), 50):
        lines = ["groups:", "- name: g", "  rules:"]
        for number, (text, _) in enumerate(pairs[first : first + 50], first):
            lines += [f"  - alert: A{number}", f"    expr: {json.dumps(text)}", "    for: 5m"]
        texts.append(Written(path=f"rules{first}.yaml", text="\n".join(lines)))
    return texts


def _lists(pairs: list[tuple[str, str]]) -> list[Written]:
    """Lists of a hundred queries by name."""
    texts = []
    for first in range(0, len(pairs), 100):
        lines = [
            f"  q{number}: {json.dumps(text)}" for number, (text, _) in enumerate(pairs[first : first + 100], first)
        ]
        texts.append(Written(path=f"lists{first}.yaml", text="queries:\n" + "\n".join(lines)))
    return texts


def _boards(pairs: list[tuple[str, str]]) -> list[Written]:
    """Dashboards of twenty panels, each with what Grafana 10 writes beside a query."""
    texts = []
    for first in range(0, len(pairs), 20):
        panels = [_panel(first + place, text) for place, (text, _) in enumerate(pairs[first : first + 20])]
        board = {"title": f"d{first}", "panels": panels, "templating": {"list": []}, "schemaVersion": 39}
        texts.append(Written(path=f"d{first}.json", text=json.dumps(board, indent=2)))
    return texts


def _panel(number: int, text: str) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
    custom = {"drawStyle": "line", "lineInterpolation": "linear", "fillOpacity": 10, "stacking": {"mode": "none"}}
    defaults = {"color": {"mode": "palette-classic"}, "custom": custom, "unit": "percent", "mappings": []}
    options = {"legend": {"calcs": ["mean", "max"], "displayMode": "table"}, "tooltip": {"mode": "multi"}}
    target = {"datasource": source, "expr": text, "legendFormat": "GPU {{gpu}}", "refId": "A", "interval": ""}
    return {
        "id": number, "type": "timeseries", "title": f"panel {number}", "datasource": source, "targets": [target],
        "gridPos": {"h": 8, "w": 12, "x": 0, "y": number}, "options": options,
        "fieldConfig": {"defaults": defaults, "overrides": []},
    }  # fmt: skip
