"""Pods on rows against the pods that the cluster has: who is gone, who is missing.

In: what ``kubectl get pods -A -o json`` printed. Pure; the kubelet lists ended pods for a while (kubernetes #119423,
#132020), so an exporter can name a pod that holds nothing any more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuledger.audit import exporter_checks as checks
from gpuledger.audit.exporter_rows import Pod
from gpuledger.audit.exporter_scrape import Scrape
from gpuledger.audit.exporter_words import HOST_LABELS
from gpuledger.audit.resource_names import names_gpus
from gpuledger.errors import BadInput
from gpuledger.model.findings import Finding, Written
from gpuledger.model.problem import Problem

_ENDED = ("Succeeded", "Failed")
_HINT = "kubectl get pods -A -o json > pods.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One pod of the cluster's list.

    Args:
        pod: its namespace and name.
        node: where it runs; empty before it is placed.
        phase: as the cluster says it.
        devices: how many GPUs, replicas or MIG instances its containers ask for.
    """

    pod: Pod
    node: str
    phase: str
    devices: int


def parse_pods(written: Written) -> tuple[Listed, ...]:
    """The pods of a list.

    Raises:
        BadInput: ``pods-not-json`` or ``pods-not-list``.
    """
    try:
        answer = json.loads(written.text)
    except (ValueError, RecursionError):
        message = "no JSON: the pods are read as kubectl prints them"
        raise BadInput("pods-not-json", message, path=written.path, hint=_HINT) from None
    items = answer.get("items") if isinstance(answer, dict) else answer
    if isinstance(answer, dict) and answer.get("kind") == "Pod":
        items = [answer]
    if not isinstance(items, list) or any(_at(item, "kind") not in ("", "Pod") for item in items):
        raise BadInput("pods-not-list", "JSON, and no list of pods", path=written.path, hint=_HINT)
    return tuple(_listed(item) for item in items)


def _listed(item: Any) -> Listed:
    containers = _at(item, "spec", "containers") or []
    return Listed(
        pod=Pod(str(_at(item, "metadata", "namespace")), str(_at(item, "metadata", "name"))),
        node=str(_at(item, "spec", "nodeName")),
        phase=str(_at(item, "status", "phase")),
        devices=sum(_devices(container) for container in containers) if isinstance(containers, list) else 0,
    )


def _at(item: Any, *path: str) -> Any:
    for key in path:
        item = item.get(key, "") if isinstance(item, dict) else ""
    return item


def _devices(container: Any) -> int:
    limits = _at(container, "resources", "limits")
    asked = limits.items() if isinstance(limits, dict) else ()
    return sum(int(many) for name, many in asked if names_gpus(name) and re.fullmatch(r"\d{1,6}", str(many)))


def compare_pods(scrape: Scrape, listed: Sequence[Listed]) -> tuple[list[Finding], list[Problem]]:
    """Rows of pods that are gone or ended, and running pods without a row.

    Returns:
        The findings, and a problem for each thing that could not be compared.
    """
    known = {each.pod: each for each in listed} | {Pod("", each.pod.name): each for each in listed}
    places = _places(scrape)
    namespaces = {each.pod.namespace for each in listed}
    findings: list[Finding] = []
    unlisted: set[str] = set()
    for pod in scrape.rows.pods:
        found = known.get(pod)
        if found is None and pod.namespace and pod.namespace not in namespaces:
            unlisted.add(pod.namespace)
        elif found is None:
            findings.append(
                _stale(scrape, pod, places[pod], f"{pod} is on rows of this scrape, and the cluster has no such pod")
            )
        elif found.phase in _ENDED:
            findings.append(
                _stale(scrape, pod, places[pod], f"{pod} is on rows of this scrape, and has ended ({found.phase})")
            )
    problems = [
        Problem(code="namespace-not-listed", message=f"the list of pods has none of {name}: was it taken with -A?")
        for name in sorted(unlisted)
    ]
    nodes = _nodes(scrape, listed)
    holding = [each for each in listed if each.devices and each.node and each.phase == "Running"]
    if holding and not nodes:
        message = "no host of this scrape is a node or an exporter's pod of the list: missing pods cannot be told"
        problems.append(Problem(code="host-not-listed", message=message))
    findings += _missing(scrape, [each for each in holding if each.node in nodes])
    return findings, problems


def _places(scrape: Scrape) -> dict[Pod, tuple[int, str]]:
    """Where each pod stands first: line, and name of the device."""
    places: dict[Pod, tuple[int, str]] = {}
    for unit in scrape.rows.units:
        name = unit.name
        for pods in unit.figures.values():
            for pod, rows in pods.items():
                places[pod] = min(places.get(pod, (rows[0].line, name)), (rows[0].line, name))
    return places


def _stale(scrape: Scrape, pod: Pod, place: tuple[int, str], message: str) -> Finding:
    line, name = place
    return Finding(check=checks.STALE_POD, where=scrape.where(f"{name} {pod}", line), message=message)


def _missing(scrape: Scrape, holding: Sequence[Listed]) -> Iterator[Finding]:
    shown = set(scrape.rows.pods)
    names = {pod.name for pod in shown if not pod.namespace}
    for each in holding:
        if each.pod not in shown and each.pod.name not in names:
            devices = f"{each.devices} of nvidia.com/*"
            message = f"{each.pod} runs on {each.node} with {devices}, and stands on no row"
            yield Finding(check=checks.MISSING_POD, where=scrape.where(f"pod {each.pod}"), message=message)


def _nodes(scrape: Scrape, listed: Sequence[Listed]) -> set[str]:
    """The nodes that the scrape is of: by its host label, which is a node's name or that of the exporter's pod."""
    hosts = {host for unit in scrape.rows.units for host in _hosts(unit.figures)}
    by_pod: Mapping[str, str] = {each.pod.name: each.node for each in listed if each.node}
    nodes = {each.node for each in listed if each.node}
    exporters = set(scrape.rows.exporter_pods)
    return {by_pod.get(host, host) for host in hosts | exporters if host in by_pod or host in nodes}


def _hosts(figures: Mapping[str, Mapping[Pod, Sequence[Any]]]) -> Iterator[str]:
    for pods in figures.values():
        for rows in pods.values():
            labels = rows[0].labels
            yield from (labels[name] for name in (*HOST_LABELS, "node") if labels.get(name))
