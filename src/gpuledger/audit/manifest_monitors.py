"""Scrape configurations through which Prometheus renames the exporter's own pod label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuledger.audit import manifest_checks as checks
from gpuledger.audit.documents import Document, Kind, objects
from gpuledger.model.findings import Finding, Where

_MONITORS = ("ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape")
"""Of Prometheus' operator and of VictoriaMetrics', which spell honorLabels alike."""


def renamed_labels(document: Document) -> Iterator[Finding]:
    """ServiceMonitors and values through which Prometheus renames the exporter's pod label (#27, #340)."""
    message = "Prometheus calls the exporter's own label exported_pod, and pod becomes the exporter itself."
    for node in objects(document):
        kind = node.at("kind").text
        name = document.shown(node.at("metadata", "name").text)
        where = Where(path=document.path, line=node.line, name=f"{kind} {name}".strip())
        if kind in _MONITORS:
            ends = (*node.at("spec", "endpoints").entries, *node.at("spec", "podMetricsEndpoints").entries)
            text = f"{name} {' '.join(value.text for _, value in node.at('spec', 'selector', 'matchLabels').pairs)}"
            if "dcgm" in text:
                for end in ends:
                    keeps = end.at("honorLabels")
                    if keeps.truth is not True and not keeps.opaque:
                        yield Finding(check=checks.RENAMED_LABELS, where=replace(where, line=end.line), message=message)
            continue
        for values in (node, node.at("dcgmExporter"), node.at("spec", "dcgmExporter"), node.at("spec", "values")):
            monitor = values.at("serviceMonitor")
            enabled = monitor.at("enabled").truth is not False and monitor.kind is Kind.MAPPING
            if enabled and kind in ("", "ClusterPolicy", "HelmRelease") and monitor.at("honorLabels").truth is False:
                line = monitor.at("honorLabels").line
                yield Finding(check=checks.RENAMED_LABELS, where=replace(where, line=line), message=message)
