"""What a Node says of its GPUs, in our words."""

from __future__ import annotations

import pytest

from gpuledger.audit.documents import documents
from gpuledger.audit.node_words import GpuNode, class_of, gpu_node, product_parts
from gpuledger.model.findings import Written


def node(labels: str = "", offered: str = "", capacity: str = "", more: str = "") -> GpuNode | None:
    text = (
        f"kind: Node\nmetadata:\n  name: n\n  labels: {{{labels}}}\n"
        f"status:\n  allocatable: {{{offered}}}\n  capacity: {{{capacity or offered}}}\n{more}"
    )
    (document,), unread = documents(Written(path="f.yaml", text=text))
    assert not unread
    return gpu_node(document, document.root, "team/pool")


def test_a_shared_node() -> None:
    """Product, count, replicas and what is offered under both names."""
    found = node(
        "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3-SHARED, nvidia.com/gpu.count: '2', nvidia.com/gpu.replicas: '4'",
        "nvidia.com/gpu: '8', cpu: '4'",
    )
    assert found is not None
    (offer,) = found.offers
    assert (offer.key, offer.count, offer.replicas, offer.plain, offer.shared) == ("gpu", 2, 4, 8, None)
    assert (offer.shares, offer.marked, offer.renamed, offer.is_slice) == (4, True, False, False)
    assert class_of(offer, "") == "H100-80GB-HBM3"


def test_slices_by_both_strategies() -> None:
    """Mixed: by the resource's name; single: by the product."""
    mixed = node(
        "nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB",
        "nvidia.com/mig-1g.5gb.shared: '6', nvidia.com/mig-2g.10gb.me: '1'",
    )
    assert mixed is not None
    by_key = {offer.key: offer for offer in mixed.offers}
    assert set(by_key) == {"mig-1g.5gb", "mig-2g.10gb.me", "gpu"}
    assert by_key["mig-1g.5gb"].renamed
    assert class_of(by_key["mig-1g.5gb"], "NVIDIA-A100-SXM4-40GB") == "A100-SXM4-40GB/1g.5gb"
    single = node("nvidia.com/gpu.product: NVIDIA-H100-NVL-MIG-1g.12gb", "nvidia.com/gpu: '7'")
    assert single is not None
    assert single.offers[0].is_slice
    assert class_of(single.offers[0], "") == "H100-NVL/1g.12gb"


def test_shares_without_labels() -> None:
    """By what is offered for each device, where the labels do not know."""
    found = node("nvidia.com/gpu.count: '2', nvidia.com/gpu.replicas: '1'", "nvidia.com/gpu: '8'")
    assert found is not None
    assert found.offers[0].shares == 4


def test_the_rest_of_a_node() -> None:
    """Ready, pool, strategies, images of the exporter."""
    more = (
        "  conditions: [{type: Ready, status: 'False'}]\n"
        "  images: [{names: ['nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-ubi9', 'x/dcgm-exporter:3.1.3-3.1.2-u']}]\n"
    )
    found = node(
        "team/pool: gold, agentpool: silver, nvidia.com/mig.strategy: mixed, nvidia.com/mps.capable: 'true'",
        "nvidia.com/gpu: '1'",
        more=more,
    )
    assert found is not None
    assert (found.ready, found.pool, found.strategy, found.sharing) == (False, "gold", "mixed", "mps")
    assert found.exporters == ((3, 1, 2), (4, 8, 2))
    assert (found.label("mig.strategy"), found.label("nothing")) == ("mixed", "")


@pytest.mark.parametrize(
    ("labels", "offered", "is_one"),
    [
        ("", "cpu: '4'", False),
        ("kubernetes.io/os: linux", "", False),
        ("", "nvidia.com/gpu: '0'", True),
        ("nvidia.com/gpu.present: 'true'", "", True),
        ("feature.node.kubernetes.io/pci-10de.present: 'true'", "", True),
        ("", "nvidia.com/hostdev: '4'", False),
    ],
)
def test_which_nodes_have_gpus(labels: str, offered: str, is_one: bool) -> None:
    """By labels or by what is offered."""
    assert (node(labels, offered) is not None) == is_one


@pytest.mark.parametrize(
    ("product", "parts"),
    [
        ("A100-SXM4-40GB-MIG-1g.5gb-SHARED", ("A100-SXM4-40GB", "1g.5gb")),
        ("Tesla-T4-SHARED", ("Tesla-T4", "")),
        ("Tesla-V100-SXM2-16GB-N", ("Tesla-V100-SXM2-16GB-N", "")),
        ("", ("", "")),
    ],
)
def test_parts_of_a_product(product: str, parts: tuple[str, str]) -> None:
    """The parent and the profile, without the mark of sharing."""
    assert product_parts(product) == parts
