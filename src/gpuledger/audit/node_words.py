"""What a Kubernetes Node says of its GPUs: labels of gpu-feature-discovery beside what the kubelet offers.

Labels by k8s-device-plugin 0.20 (internal/lm): ``.replicas`` counts per device; ``-SHARED`` is added to the product
where a resource is shared and not renamed; ``.replicas`` 0 stands at a device that is cut into MIG slices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpuledger.audit.documents import Document, Node
from gpuledger.audit.node_others import Parts, given_names, parts_of
from gpuledger.audit.versions import Version, exporter_version
from gpuledger.model.devices import class_name
from gpuledger.model.findings import Where
from gpuledger.model.problem import Problem

DOMAIN = "nvidia.com/"

POOL_LABELS = (
    "gpuledger/pool", "karpenter.sh/nodepool", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool", "agentpool", "doks.digitalocean.com/node-pool", "oke.oraclecloud.com/pool.name",
    "ibm-cloud.kubernetes.io/worker-pool-name", "runai/node-pool", "node.kubernetes.io/pool",
)  # fmt: skip
"""Labels by which clusters name their pools; the first that a node has counts."""

CLOUD_PRODUCTS = (
    "cloud.google.com/gke-accelerator", "cloud.google.com/gke-gpu-partition-size",
    "eks.amazonaws.com/instance-gpu-name", "karpenter.k8s.aws/instance-gpu-name", "k8s.amazonaws.com/accelerator",
    "node.kubernetes.io/instance-type",
)  # fmt: skip
"""Labels by which clouds name a card or a machine, in words of their own; no class of the driver's."""

_GKE_SHARES = "cloud.google.com/gke-max-shared-clients-per-gpu"
"""Pods that share a device where GKE's own plugin gives it out, which no label of NVIDIA's tells."""

_RESOURCE = re.compile(r"nvidia\.com/(gpu|mig-\d+g\.\d+gb(?:[.+-](?!shared)[a-z.]+?)?)(\.shared)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One kind of device of a node, whole or slice.

    Args:
        key: ``gpu`` or ``mig-1g.5gb``: the middle of its labels.
        product: its label, as written; empty where there is none.
        count: devices by label; None where there is none.
        replicas: replicas of each by label; None where there is none.
        plain: what the kubelet offers under the plain name; None where the name is absent.
        shared: what it offers under the name ending in ``.shared``.
        capacity: of both names together.
        line: of the product label, else of what is offered.
        offered_line: of what is offered.
        alias: the name under which it is offered, where somebody gave it another one; empty for its own.
        unread: counts and replicas that are no whole numbers: name, what stands there, line.
    """

    key: str
    product: str
    count: int | None
    replicas: int | None
    plain: int | None
    shared: int | None
    capacity: int
    line: int
    offered_line: int
    alias: str = ""
    unread: tuple[tuple[str, str, int], ...] = ()

    @property
    def offered(self) -> int:
        """Under either name."""
        return (self.plain or 0) + (self.shared or 0)

    @property
    def marked(self) -> bool:
        """Whether the product label says that it is shared."""
        return self.product.endswith("-SHARED")

    @property
    def renamed(self) -> bool:
        """Whether it is offered under the other name."""
        return bool(self.shared)

    @property
    def is_slice(self) -> bool:
        """Whether it is a MIG slice, by its name or by its product label (the single strategy)."""
        return self.key != "gpu" or "-MIG-" in self.product

    @property
    def shares(self) -> int:
        """Replicas of each device, by label or else by what is offered for each; 1 where it is not shared."""
        if self.replicas and self.replicas > 1:
            return self.replicas
        if self.count and self.offered > self.count and self.offered % self.count == 0:
            return self.offered // self.count
        return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNode:
    """One Node with GPUs, or one that should have some.

    Args:
        where: the place.
        name: the node's.
        labels: all of them, with lines.
        offers: its devices by kind.
        ready: of its Ready condition; None where there is none.
        pool: by the first pool label; empty where it has none.
        strategy: of MIG: ``none``, ``single``, ``mixed``; may be empty.
        sharing: ``time-slicing``, ``mps``, ``none``, or empty where an older version does not say.
        exporters: versions of the exporter whose images lie on it, newest last.
        parts: where a scheduler gives its devices out in parts; None where it does not.
        allocatable: what the kubelet offers, as written.
    """

    where: Where
    name: str
    labels: dict[str, tuple[str, int]]
    offers: tuple[Offer, ...]
    ready: bool | None
    pool: str
    strategy: str
    sharing: str
    exporters: tuple[Version, ...]
    parts: Parts | None
    allocatable: Node

    def label(self, key: str) -> str:
        """A label of NVIDIA's domain; empty where it is not there."""
        return self.labels.get(f"{DOMAIN}{key}", ("", 0))[0]

    def at(self, line: int) -> Where:
        """A place inside the node."""
        return Where(path=self.where.path, line=line or self.where.line, name=self.where.name)


def product_parts(product: str) -> tuple[str, str]:
    """The parent product and the MIG profile of a product label: ``A100-SXM4-40GB-MIG-1g.5gb-SHARED``."""
    parent, _, profile = product.removesuffix("-SHARED").partition("-MIG-")
    return parent, profile


def class_of(offer: Offer, parent: str) -> str:
    """The accounting class of a device.

    Args:
        offer: what it is.
        parent: the product label of the whole device, for slices whose own label is absent.
    """
    whole, profile = product_parts(offer.product or parent)
    return class_name(whole, profile or _profile(offer))


def _profile(offer: Offer) -> str:
    return offer.key.removeprefix("mig-") if offer.key != "gpu" else ""


def template_problem(document: Document, node: Node) -> tuple[Problem, ...]:
    """Why a Node of a template is not judged: its labels and resources are not known before they are filled in."""
    if not document.is_template:
        return ()
    message = "a Node of a template says nothing before it is filled: helm template ... | gpuledger audit nodes -"
    return (Problem(code="template", message=message, where=f"{document.path}:{node.line}"),)


def described(document: Document, node: Node) -> tuple[Problem, ...]:
    """What ``kubectl describe`` prints looks like YAML and is none of the API's objects."""
    if node.at("kind").is_there or not (node.at("Labels").is_there and node.at("Allocatable").is_there):
        return ()
    message = "this is what kubectl describe prints: kubectl get nodes -o json | gpuledger audit nodes -"
    return (Problem(code="described", message=message, where=f"{document.path}:{node.line}"),)


def gpu_node(document: Document, node: Node, pool_label: str = "") -> GpuNode | None:
    """A Node in these words; None where neither labels nor resources speak of NVIDIA's GPUs.

    Args:
        document: the one it stands in.
        node: the object.
        pool_label: the label that names pools here, before the known ones; may be empty.
    """
    labels = {key: (value.text, value.line) for key, value in node.at("metadata", "labels").pairs}
    allocatable = node.at("status", "allocatable")
    capacity = node.at("status", "capacity")
    offers = tuple(_offers(labels, allocatable, capacity))
    present = labels.get(f"{DOMAIN}gpu.present", ("", 0))[0] == "true" or f"{DOMAIN}gpu.product" in labels
    pci = any(key.startswith("feature.node.kubernetes.io/pci-") and "10de.present" in key for key in labels)
    if not offers and not present and not pci:
        return None
    name = node.at("metadata", "name").text
    ready = [
        each.at("status").text for each in node.at("status", "conditions").entries if each.at("type").text == "Ready"
    ]
    versions = {
        version
        for image in node.at("status", "images").entries
        for named in image.at("names").entries
        if "dcgm-exporter" in named.text and (version := exporter_version(named.text)) is not None
    }
    return GpuNode(
        where=Where(path=document.path, line=node.at("metadata", "name").line or node.line, name=f"node {name}"),
        name=name, labels=labels, offers=offers, ready=ready[0] == "True" if ready else None,
        pool=next((labels[key][0] for key in (pool_label, *POOL_LABELS) if key in labels), ""),
        strategy=labels.get(f"{DOMAIN}mig.strategy", ("", 0))[0],
        sharing=_sharing(labels), exporters=tuple(sorted(versions)),
        parts=parts_of(allocatable, node.at("metadata", "annotations")), allocatable=allocatable,
    )  # fmt: skip


def _sharing(labels: dict[str, tuple[str, int]]) -> str:
    said = labels.get(f"{DOMAIN}gpu.sharing-strategy", ("", 0))[0]
    if said:
        return said
    if labels.get("cloud.google.com/gke-gpu-sharing-strategy", ("", 0))[0] == "mps":
        return "mps"
    return "mps" if labels.get(f"{DOMAIN}mps.capable", ("", 0))[0] == "true" else ""


_SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def quantity(text: str) -> int | None:
    """A whole number as Kubernetes writes quantities (``8``, ``1k``); None where it is none.

    Args:
        text: as the kubelet prints it.
    """
    found = re.fullmatch(r"(\d{1,9})([kMG]i?|Ki)?", text)
    return int(found[1]) * _SUFFIXES[found[2] or ""] if found else None


def _offers(labels: dict[str, tuple[str, int]], allocatable: Node, capacity: Node) -> Iterator[Offer]:
    offered = {key: (quantity(value.text), value.line) for key, value in allocatable.pairs}
    held = {key: quantity(value.text) for key, value in capacity.pairs}
    written = {key: (value.text, value.line) for key, value in (*capacity.pairs, *allocatable.pairs)}
    given = next(given_names(allocatable), None)
    keys = [found[1] for key in (*offered, *held) if (found := _RESOURCE.fullmatch(key))]
    keys += [found[1] for key in labels if (found := re.fullmatch(r"nvidia\.com/(gpu|mig-\d+g\..+?)\.product", key))]
    keys += ["gpu"] if given else []
    for key in dict.fromkeys(keys):
        label = f"{DOMAIN}{key}"
        plain, plain_line = offered.get(label, (None, 0))
        shared, shared_line = offered.get(f"{label}.shared", (None, 0))
        alias = ""
        if key == "gpu" and given and not plain and not shared:
            alias, (plain, plain_line) = given[0], offered[given[0]]
            if alias.endswith(".shared"):
                plain, plain_line, shared, shared_line = None, 0, plain, plain_line
        product, line = labels.get(f"{label}.product", ("", 0))
        replicas = _whole(labels, f"{label}.replicas")
        if replicas is None and key == "gpu":
            replicas = _whole(labels, _GKE_SHARES)
        counted = (f"{label}.count", f"{label}.replicas")
        unread = [(name, *labels[name]) for name in counted if name in labels and _whole(labels, name) is None]
        unread += [
            (name, *written[name])
            for name in (label, f"{label}.shared", alias)
            if name in written and quantity(written[name][0]) is None
        ]
        yield Offer(
            key=key, product=product, count=_whole(labels, f"{label}.count"),
            replicas=replicas, plain=plain, shared=shared,
            capacity=(held.get(alias or label) or 0) + (held.get(f"{label}.shared") or 0),
            line=line or plain_line or shared_line, offered_line=(shared_line if shared else plain_line) or line,
            alias=alias, unread=tuple(unread),
        )  # fmt: skip


def _whole(labels: dict[str, tuple[str, int]], key: str) -> int | None:
    text = labels.get(key, ("", 0))[0]
    return int(text) if re.fullmatch(r"\d{1,9}", text) else None
