"""Resource names under which pods get GPUs, and whether they get them by resource claims, as texts tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpuledger.audit.documents import Document, Kind, Node, documents, objects
from gpuledger.model.findings import Written

_PLAIN = re.compile(r"nvidia\.com/(gpu|mig-.*)")
"""What the exporter maps without being told: whole GPUs and MIG slices (pkg/transformation, toDeviceToPod)."""

_GPU = re.compile(
    r"nvidia\.com/(?!gpumem|gpucores)(.*\.shared|.*gpu.*|mig-.*|[abhlptv]\d{1,4}\b.*|g[bh]\d.*|rtx.*|tesla.*|geforce.*|quadro.*)",
    re.IGNORECASE,
)
"""What names GPUs: the network operator has other things under this domain, and HAMi amounts of memory and cores."""


def names_gpus(resource: str) -> bool:
    """Whether a resource of pods and nodes is a number of GPUs, replicas or slices of NVIDIA's.

    Args:
        resource: ``nvidia.com/gpu``; HAMi's amounts of memory and cores are no number of devices.
    """
    return bool(_GPU.fullmatch(resource))


def renamed_resources(read: Iterable[Document]) -> dict[str, str]:
    """Names other than ``nvidia.com/gpu`` and MIG's, each with where the texts use it."""
    found: dict[str, str] = {}
    for document in read:
        for config, line in plugin_configs(document):
            for name in renamed_by(config):
                if not _PLAIN.fullmatch(name):
                    found.setdefault(name, f"time-slicing config at {document.path}:{line}")
        for node in objects(document):
            for name, line, kind in _asked(node):
                if not _PLAIN.fullmatch(name):
                    found.setdefault(name, f"{kind} at {document.path}:{line}")
    return found


def renamed_by(config: Node) -> Iterator[str]:
    """The names that a config of the device plugin gives to shared resources, where it renames them."""
    for strategy in ("timeSlicing", "mps"):
        sharing = config.at("sharing", strategy)
        for entry in sharing.at("resources").entries:
            name, given = entry.at("name").text, entry.at("rename").text
            full = name if "/" in name else f"nvidia.com/{name}"
            if given:
                yield given if "/" in given else f"nvidia.com/{given}"
            elif sharing.at("renameByDefault").truth or strategy == "mps":
                yield f"{full}.shared"


def plugin_configs(document: Document) -> Iterator[tuple[Node, int]]:
    """Configs of the device plugin with their lines: alone, in ConfigMaps, and in values of its charts."""
    root = document.root
    for node in objects(document):
        if node.at("sharing").kind is Kind.MAPPING and not node.at("kind").is_there:
            yield node, node.at("sharing").line
        if node.at("kind").text == "ConfigMap":
            yield from _of_texts(document, node.at("data"))
    for values in (root.at("devicePlugin", "config", "data"), root.at("config", "map"), root.at("config", "data")):
        yield from _of_texts(document, values)


def _of_texts(document: Document, texts: Node) -> Iterator[tuple[Node, int]]:
    for _, value in texts.pairs:
        if value.kind is Kind.MAPPING:
            inside: tuple[Document, ...] = (Document(path=document.path, line=value.line, root=value),)
        else:
            inside, _ = documents(Written(path=document.path, text="\n" * value.line + value.text))
        for each in inside:
            if each.root.at("sharing").kind is Kind.MAPPING:
                yield each.root, value.line


def _asked(node: Node) -> Iterator[tuple[str, int, str]]:
    """Resource names that pods ask for and nodes offer."""
    kind = node.at("kind").text
    pod = node.at("spec") if kind == "Pod" else node.at("spec", "template", "spec")
    if kind == "CronJob":
        pod = node.at("spec", "jobTemplate", "spec", "template", "spec")
    for container in (*pod.at("containers").entries, *pod.at("initContainers").entries):
        for key in ("limits", "requests"):
            for name, value in container.at("resources", key).pairs:
                if _GPU.fullmatch(name):
                    yield name, value.line, kind
    if kind == "Node":
        for name, value in node.at("status", "allocatable").pairs:
            if _GPU.fullmatch(name) and value.text != "0":
                yield name, value.line, kind


def uses_claims(read: Iterable[Document]) -> str:
    """Where the texts give devices by resource claims of NVIDIA's driver; empty where they do not."""
    for document in read:
        for node in objects(document):
            kind = node.at("kind").text
            if kind == "ResourceSlice" and node.at("spec", "driver").text == "gpu.nvidia.com":
                return f"ResourceSlice at {document.path}:{node.line}"
            requests = (
                *node.at("spec", "spec", "devices", "requests").entries,
                *node.at("spec", "devices", "requests").entries,
            )
            for request in requests if kind in ("ResourceClaim", "ResourceClaimTemplate") else ():
                ways = (request.at("exactly"), request, *request.at("firstAvailable").entries)
                if any(way.at("deviceClassName").text.endswith("nvidia.com") for way in ways):
                    return f"{kind} at {document.path}:{node.line}"
            if kind == "DeviceClass" and node.at("spec", "extendedResourceName").is_there:
                said = [each.at("cel", "expression").text for each in node.at("spec", "selectors").entries]
                if any("gpu.nvidia.com" in each for each in (*said, node.at("metadata", "name").text)):
                    return f"DeviceClass at {document.path}:{node.line}"
    return ""
