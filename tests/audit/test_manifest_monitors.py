"""Scrape configurations that rename the exporter's own pod label."""

from __future__ import annotations

import pytest

from gpuledger.audit.documents import documents
from gpuledger.audit.manifest_monitors import renamed_labels
from gpuledger.model.findings import Written

MONITOR = (
    "kind: ServiceMonitor\nmetadata: {name: dcgm-exporter}\n"
    "spec:\n  endpoints:\n  - {port: metrics, honorLabels: false}\n"
)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (MONITOR, [5]),
        (MONITOR.replace(", honorLabels: false", ""), [5]),
        (MONITOR.replace("false", "true"), []),
        (MONITOR.replace("dcgm-exporter", "node-exporter"), []),
        (MONITOR.replace("false", "'{{ .Values.h }}'").replace("metadata", "{{- if .x }}\nmetadata"), []),
        (MONITOR.replace("ServiceMonitor", "PodMonitor").replace("endpoints", "podMetricsEndpoints"), [5]),
        (MONITOR.replace("ServiceMonitor", "VMServiceScrape"), [5]),
        (MONITOR.replace("ServiceMonitor", "VMPodScrape").replace("endpoints", "podMetricsEndpoints"), [5]),
        ("serviceMonitor: {enabled: true, honorLabels: false}", [1]),
        ("serviceMonitor: {enabled: false, honorLabels: false}", []),
        ("dcgmExporter:\n  serviceMonitor:\n    honorLabels: false", [3]),
        ("kind: ClusterPolicy\nspec: {dcgmExporter: {serviceMonitor: {honorLabels: false}}}", [2]),
    ],
)
def test_who_keeps_the_label(text: str, lines: list[int]) -> None:
    """Monitors of the exporter and values that make one, where honorLabels is not true."""
    (document,), _ = documents(Written(path="f", text=text))
    assert [finding.where.line for finding in renamed_labels(document)] == lines
