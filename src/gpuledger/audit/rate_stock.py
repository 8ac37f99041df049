"""What exists that can be priced: devices and slices of nodes, by class, pool and replicas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpuledger.audit.documents import Document, Node, objects
from gpuledger.audit.node_words import DOMAIN, class_of, gpu_node
from gpuledger.model.devices import class_name
from gpuledger.model.findings import Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """One line that a bill could have.

    Args:
        class_name: as accounting has it; empty where the node does not tell it.
        pool: by the policy's hosts, else by the node's label; empty where neither says.
        replicas: of each device; 1 where it is not shared.
        where: the first place that shows it.
        nodes: where it exists.
        product: a product label of it, as written.
    """

    class_name: str
    pool: str
    replicas: int
    where: Where
    nodes: tuple[str, ...]
    product: str

    @property
    def words(self) -> str:
        """How people name it: ``A100-SXM4-40GB in pool shared, 4 replicas``."""
        pool = f" in pool {self.pool}" if self.pool else ""
        return f"{self.class_name or 'UNKNOWN class'}{pool}" + (
            f", {self.replicas} replicas" if self.replicas > 1 else ""
        )


def stock(read: Sequence[Document], pools: Mapping[str, str], pool_label: str = "") -> tuple[Priced, ...]:
    """Everything of the texts that can be priced, each once, in the order of the texts.

    Args:
        read: Nodes and ResourceSlices among others.
        pools: pool by host, as the policy has it; goes before labels.
        pool_label: the label of nodes that names their pool.
    """
    found: dict[tuple[str, str, int], Priced] = {}
    known = {**_labelled_pools(read, pool_label), **pools}
    for document in read:
        for node in objects(document):
            for one in (*_of_node(document, node, pools, pool_label), *_of_slice(document, node, known)):
                key = (one.class_name, one.pool, one.replicas)
                held = found.get(key)
                nodes = tuple(dict.fromkeys((*(held.nodes if held else ()), *one.nodes)))
                first = held or one
                found[key] = Priced(
                    class_name=first.class_name, pool=first.pool, replicas=first.replicas, where=first.where,
                    nodes=nodes, product=first.product,
                )  # fmt: skip
    return tuple(found.values())


def _labelled_pools(read: Sequence[Document], pool_label: str) -> dict[str, str]:
    """Pools by node as labels have them: a slice names its node, and the node its pool."""
    nodes = [
        gpu_node(document, node, pool_label)
        for document in read
        for node in objects(document)
        if node.at("kind").text == "Node"
    ]
    return {node.name: node.pool for node in nodes if node is not None and node.pool}


def _of_node(document: Document, node: Node, pools: Mapping[str, str], pool_label: str) -> Iterator[Priced]:
    gpu = gpu_node(document, node, pool_label) if node.at("kind").text == "Node" else None
    for offer in gpu.offers if gpu else ():
        if gpu is None or not (offer.offered or (offer.count and offer.replicas and offer.capacity)):
            continue
        product = offer.product or gpu.label("gpu.product")
        name = class_of(offer, product) if product and not offer.unread else ""
        words = (product or f"{DOMAIN}{offer.key}") + (" with an unreadable number of replicas" if offer.unread else "")
        pool = pools.get(gpu.name) or gpu.pool
        if gpu.parts is not None:  # a part is no replica: what can be priced is the device, by the share of each pod
            names = sorted({class_name(each) for each in gpu.parts.products}) or [name]
            for each in names:
                yield Priced(
                    class_name=each, pool=pool, replicas=1, where=gpu.at(offer.line), nodes=(gpu.name,), product=words
                )
            continue
        yield Priced(
            class_name=name, pool=pool, replicas=offer.shares, where=gpu.at(offer.line), nodes=(gpu.name,),
            product=words,
        )  # fmt: skip


def _of_slice(document: Document, node: Node, pools: Mapping[str, str]) -> Iterator[Priced]:
    """Devices that NVIDIA's driver publishes for resource claims; each is whole, whatever claims share it."""
    if node.at("kind").text != "ResourceSlice" or node.at("spec", "driver").text != "gpu.nvidia.com":
        return
    host = node.at("spec", "nodeName").text
    for device in node.at("spec", "devices").entries:
        attributes = device.at("attributes") if device.at("attributes").is_there else device.at("basic", "attributes")
        product = attributes.at("productName", "string").text
        profile = attributes.at("profile", "string").text
        if product:
            where = Where(path=document.path, line=device.line, name=f"ResourceSlice of {host}")
            yield Priced(
                class_name=class_name(product, profile), pool=pools.get(host, ""), replicas=1, where=where,
                nodes=(host,) if host else (), product=product,
            )  # fmt: skip
