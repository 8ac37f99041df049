"""Sharing configs of the device plugin, pods and claims, judged for what they do to shares of GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuledger.audit import node_checks as checks
from gpuledger.audit.documents import Document, Kind, Node, documents, objects
from gpuledger.audit.versions import Version, exporter_version
from gpuledger.model.devices import class_name
from gpuledger.model.findings import Finding, Where, Written

_SHARED = re.compile(r"nvidia\.com/.+\.shared")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """One sharing of one resource by a config of the device plugin.

    Args:
        where: its place.
        config: the key that nodes name in their label; empty for a config that stands alone.
        strategy: ``time-slicing`` or ``mps``.
        resource: ``nvidia.com/gpu``, ``nvidia.com/mig-1g.5gb``.
        replicas: of each device; None where it is not a number.
        renamed: whether the resource gets another name.
        refuses_many: whether a request for more than one fails.
        migs: ``migStrategy`` of the config; may be empty.
    """

    where: Where
    config: str
    strategy: str
    resource: str
    replicas: int | None
    renamed: bool
    refuses_many: bool
    migs: str

    @property
    def key(self) -> str:
        """The middle of the labels it stands for: ``gpu``, ``mig-1g.5gb``."""
        return self.resource.removeprefix("nvidia.com/")


def sharings(document: Document) -> Iterator[Sharing]:
    """Every sharing of a document: configs alone, in ConfigMaps, in values of charts."""
    for key, config, path in _configs(document):
        for word, strategy in (("timeSlicing", "time-slicing"), ("mps", "mps")):
            sharing = config.at("sharing", word)
            renamed = sharing.at("renameByDefault").truth is True
            for entry in sharing.at("resources").entries:
                name = entry.at("name").text
                yield Sharing(
                    where=Where(path=document.path, line=entry.at("replicas").line or entry.line, name=path),
                    config=key, strategy=strategy, resource=name if "/" in name else f"nvidia.com/{name}",
                    replicas=entry.at("replicas").whole, renamed=renamed or entry.at("rename").is_there,
                    refuses_many=sharing.at("failRequestsGreaterThanOne").truth is True or strategy == "mps",
                    migs=config.at("flags", "migStrategy").text,
                )  # fmt: skip


def _configs(document: Document) -> Iterator[tuple[str, Node, str]]:
    """Key, config and name for people."""
    for node in objects(document):
        kind = node.at("kind").text
        if not kind and node.at("sharing").kind is Kind.MAPPING:
            yield "", node, "device plugin config"
        elif kind == "ConfigMap":
            yield from _keyed(
                document, node.at("data"), f"ConfigMap {document.shown(node.at('metadata', 'name').text)}"
            )
        elif not kind:
            for place in (("devicePlugin", "config", "data"), ("config", "map"), ("config", "data")):
                yield from _keyed(document, node.at(*place), "values")


def _keyed(document: Document, texts: Node, name: str) -> Iterator[tuple[str, Node, str]]:
    for key, value in texts.pairs:
        roots = (value,) if value.kind is Kind.MAPPING else _inside(document, value)
        for root in roots:
            if root.at("sharing").kind is Kind.MAPPING:
                yield key, root, f"{name} {key}"


def _inside(document: Document, text: Node) -> tuple[Node, ...]:
    """The documents of a text that stands in a document, with the lines of the whole."""
    if text.kind is not Kind.TEXT or "sharing" not in text.text:
        return ()
    found, _ = documents(Written(path=document.path, text="\n" * text.line + text.text))
    return tuple(each.root for each in found)


def judge_sharing(sharing: Sharing) -> Iterator[Finding]:
    """What a config does to shares, whichever nodes take it."""
    said = f"{sharing.resource}: {sharing.replicas} replicas by {sharing.strategy}"
    shared = sharing.replicas is None or sharing.replicas > 1
    if shared and not sharing.refuses_many:
        message = "A pod may ask for several replicas of one device; it pays for them and gets no more than for one."
        yield Finding(check=checks.MANY_REPLICAS, where=sharing.where, message=message, evidence=(said,))
    is_slice = sharing.key.startswith("mig-") or (sharing.migs == "single" and sharing.key == "gpu")
    if shared and is_slice:
        check = checks.MPS_WITH_MIG if sharing.strategy == "mps" else checks.MIG_TIME_SLICED
        message = f"{sharing.resource} is a slice already, and is shared again by {sharing.replicas}."
        yield Finding(check=check, where=sharing.where, message=message, evidence=(said,))
    if shared and sharing.renamed and not is_slice:
        message = "The resource becomes nvidia.com/gpu.shared, and the product label stays that of a whole device."
        evidence = (said, "renameByDefault: true")
        yield Finding(check=checks.UNMARKED, where=sharing.where, message=message, evidence=evidence)


def judge_pods(document: Document, shared_nodes: dict[str, set[str]]) -> Iterator[Finding]:
    """Pods that ask for several replicas, that hold a device for others, and claims that several share.

    Args:
        document: any.
        shared_nodes: names of nodes with the resources that they share under the plain name.
    """
    for node in objects(document):
        kind, name = node.at("kind").text, document.shown(node.at("metadata", "name").text)
        where = Where(path=document.path, line=node.at("metadata", "name").line or node.line, name=f"{kind} {name}")
        if kind in ("ResourceClaim", "ResourceClaimTemplate"):
            yield from _judge_claim(node, where)
            continue
        pod = node.at("spec") if kind == "Pod" else node.at("spec", "template", "spec")
        plain = shared_nodes.get(pod.at("nodeName").text, set())
        for container in pod.at("containers").entries:
            for resource, wanted in container.at("resources", "limits").pairs:
                if (wanted.whole or 0) > 1 and (_SHARED.fullmatch(resource) or resource in plain):
                    message = f"It asks for {wanted.text} replicas of a shared device; they may even be of one."
                    place = Where(path=where.path, line=wanted.line, name=where.name)
                    evidence = (f"{resource}: {wanted.text}",)
                    yield Finding(check=checks.MANY_ASKED, where=place, message=message, evidence=evidence)
        if kind == "Pod":
            yield from _judge_fractions(node, where)


def _judge_fractions(node: Node, where: Where) -> Iterator[Finding]:
    """Fractional schedulers: one pod holds the device, others use it (Run:ai, KAI)."""
    metadata = node.at("metadata")
    labels, annotations = metadata.at("labels"), metadata.at("annotations")
    if labels.at("app.runai.resource.reservation").is_there or annotations.at("run.ai/reserve_for_gpu_index").is_there:
        message = (
            "It holds a device for pods that the kubelet does not list: every figure of that device gets its name."
        )
        yield Finding(check=checks.HELD_FOR_OTHERS, where=where, message=message, evidence=("a reservation pod",))
    for key in ("gpu-fraction", "gpu-memory"):
        if (share := annotations.at(key)).is_there:
            message = "It uses a device that another pod holds for it, so no figure of the kubelet's list is its own."
            evidence = (f"{key}: {share.text}",)
            yield Finding(check=checks.HELD_FOR_OTHERS, where=where, message=message, evidence=evidence)
    for key, mig in annotations.pairs:
        if key == "runai-mig-device" and mig.is_there:
            message = "Its slice was given by the scheduler, not by the kubelet, which does not list it."
            yield Finding(check=checks.HELD_FOR_OTHERS, where=where, message=message, evidence=(f"{key} is set",))


def _judge_claim(node: Node, where: Where) -> Iterator[Finding]:
    """Claims that are shared: by their own config, or by several pods that hold them."""
    spec = node.at("spec", "spec", "devices") if node.at("spec", "spec").is_there else node.at("spec", "devices")
    for entry in spec.at("config").entries:
        parameters = entry.at("opaque", "parameters")
        strategy = parameters.at("sharing", "strategy")
        if strategy.text in ("TimeSlicing", "MPS"):
            mig = parameters.at("kind").text == "MigDeviceConfig"
            place = Where(path=where.path, line=strategy.line, name=where.name)
            check = checks.MIG_TIME_SLICED if mig else checks.DRA_SHARED
            message = (
                "A MIG slice is time-sliced among all who use the claim."
                if mig
                else "All who use the claim share one device, and nothing says how many they are."
            )
            yield Finding(check=check, where=place, message=message, evidence=(f"sharing.strategy: {strategy.text}",))
    holders = node.at("status", "reservedFor").entries
    if len(holders) > 1:
        names = ", ".join(holder.at("name").text for holder in holders[:5])
        message = f"{len(holders)} pods hold this claim at once; each is shown with the whole device."
        yield Finding(check=checks.DRA_SHARED, where=where, message=message, evidence=(names,))


def running_exporters(read: Sequence[Document]) -> Iterator[tuple[Where, Version | None, str, str]]:
    """Exporters that pods and workloads run: place, version, image, and the node of a pod."""
    for document in read:
        for node in objects(document):
            kind = node.at("kind").text
            pod = node.at("spec") if kind == "Pod" else node.at("spec", "template", "spec")
            for container in pod.at("containers").entries:
                image = container.at("image")
                if "dcgm-exporter" in image.text:
                    name = f"{kind} {document.shown(node.at('metadata', 'name').text)}"
                    where = Where(path=document.path, line=image.line, name=name)
                    yield where, exporter_version(image.text), document.shown(image.text), pod.at("nodeName").text


def slices_by_node(read: Sequence[Document]) -> dict[str, tuple[Where, str]]:
    """Nodes with resource slices of NVIDIA's driver, each with a place and the version of the API."""
    slices: dict[str, tuple[Where, str]] = {}
    for document in read:
        for node in objects(document):
            if node.at("kind").text == "ResourceSlice" and node.at("spec", "driver").text == "gpu.nvidia.com":
                name = node.at("spec", "nodeName")
                where = Where(path=document.path, line=name.line or node.line, name=f"ResourceSlice of {name.text}")
                slices.setdefault(name.text, (where, node.at("apiVersion").text))
    return slices


def sliced(node: Node) -> dict[str, int]:
    """Devices of a resource slice of NVIDIA's driver by class; none for another object.

    Args:
        node: any object.
    """
    classes: dict[str, int] = {}
    if node.at("kind").text == "ResourceSlice" and node.at("spec", "driver").text == "gpu.nvidia.com":
        for device in node.at("spec", "devices").entries:
            told = device.at("attributes") if device.at("attributes").is_there else device.at("basic", "attributes")
            product = told.at("productName", "string").text
            name = class_name(product, told.at("profile", "string").text) if product else "UNKNOWN class"
            if device.at("consumesCounters").is_there and "/" in name:
                name = f"{name}, possible partitions"  # each shuts others out: they are not there all at once
            classes[name] = classes.get(name, 0) + 1
    return classes
