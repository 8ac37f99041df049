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
