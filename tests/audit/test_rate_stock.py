"""What exists that can be priced."""

from __future__ import annotations

from gpuledger.audit.documents import documents
from gpuledger.audit.rate_stock import stock
from gpuledger.model.findings import Written

NODES = """\
kind: List
items:
- kind: Node
  metadata: {name: a, labels: &h100 {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, agentpool: gold}}
  status: {allocatable: {nvidia.com/gpu: "8"}, capacity: {nvidia.com/gpu: "8"}}
- kind: Node
  metadata: {name: b, labels: *h100}
  status: {allocatable: {nvidia.com/gpu: "8"}, capacity: {nvidia.com/gpu: "8"}}
- kind: Node
  metadata:
    name: c
    labels: {nvidia.com/gpu.product: Tesla-T4-SHARED, nvidia.com/gpu.count: "2", nvidia.com/gpu.replicas: "4"}
  status: {allocatable: {nvidia.com/gpu: "8"}, capacity: {nvidia.com/gpu: "8"}}
- kind: Node
  metadata: {name: d}
  status: {allocatable: {nvidia.com/gpu: "1"}}
- kind: Node
  metadata: {name: cpu}
- kind: ResourceSlice
  spec:
    driver: gpu.nvidia.com
    nodeName: e
    devices:
    - {name: gpu-0, attributes: {productName: {string: NVIDIA H100 80GB HBM3}, type: {string: gpu}}}
    - {name: mig-0, attributes: {productName: {string: NVIDIA A100-SXM4-40GB}, profile: {string: 1g.5gb}}}
    - {name: old, basic: {attributes: {productName: {string: NVIDIA L4}}}}
"""


def test_lines_that_a_bill_could_have() -> None:
    """Each class, pool and number of replicas once; the policy's pool before the label's; else UNKNOWN."""
    read, _ = documents(Written(path="n.yaml", text=NODES))
    found = stock(read, {"b": "silver", "e": "dra"})
    assert [(one.words, one.nodes) for one in found] == [
        ("H100-80GB-HBM3 in pool gold", ("a",)),
        ("H100-80GB-HBM3 in pool silver", ("b",)),
        ("Tesla-T4, 4 replicas", ("c",)),
        ("UNKNOWN class", ("d",)),
        ("H100-80GB-HBM3 in pool dra", ("e",)),
        ("A100-SXM4-40GB/1g.5gb in pool dra", ("e",)),
        ("L4 in pool dra", ("e",)),
    ]
    assert [one.nodes for one in stock(read, {}) if one.pool == "gold"] == [("a", "b")]


def test_a_slice_is_in_the_pool_of_its_node() -> None:
    """Where devices come by resource claims, the node's label alone says so."""
    node = "kind: Node\nmetadata: {name: a, labels: {nvidia.com/gpu.product: H100, agentpool: gold}}\n---\n"
    slices = (
        "kind: ResourceSlice\nspec: {driver: gpu.nvidia.com, nodeName: a, devices: "
        "[{attributes: {productName: {string: NVIDIA H100}}}]}\n"
    )
    read, _ = documents(Written(path="n.yaml", text=node + slices))
    assert [(one.class_name, one.pool) for one in stock(read, {})] == [("H100", "gold")]
    assert [one.pool for one in stock(read, {"a": "lab"})] == ["lab"]


PARTS = """\
kind: Node
metadata:
  name: h
  labels: {nvidia.com/gpu.product: Tesla-V100-PCIE-32GB, nvidia.com/gpu.count: "2", nvidia.com/gpu.replicas: "1"}
  annotations: {hami.io/node-nvidia-register: '[{"id": "GPU-1", "type": "NVIDIA-Tesla V100-PCIE-32GB"}]'}
status: {allocatable: {nvidia.com/gpu: "20"}, capacity: {nvidia.com/gpu: "20"}}
"""


def test_parts_are_priced_as_their_device() -> None:
    """Ten parts of a device are no ten replicas: each pod has a share of its own of what has one rate."""
    read, _ = documents(Written(path="n.yaml", text=PARTS))
    assert [one.words for one in stock(read, {})] == ["Tesla-V100-PCIE-32GB"]
    bare = PARTS.replace("nvidia.com/gpu.product: Tesla-V100-PCIE-32GB, ", "")
    assert [one.words for one in stock(documents(Written(path="n.yaml", text=bare))[0], {})] == ["Tesla-V100-PCIE-32GB"]


def test_replicas_that_are_no_number() -> None:
    """What has an unknown share has no rate, and is not taken for whole."""
    odd = NODES.replace('replicas: "4"', 'replicas: "4x"')
    (found,) = [one for one in stock(documents(Written(path="n.yaml", text=odd))[0], {}) if one.nodes == ("c",)]
    assert (found.class_name, found.product) == ("", "Tesla-T4-SHARED with an unreadable number of replicas")
