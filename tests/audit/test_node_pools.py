"""Nodes beside each other."""

from __future__ import annotations

from gpuledger.audit.documents import documents
from gpuledger.audit.node_configs import sharings
from gpuledger.audit.node_pools import judge_configs, judge_pools, judge_spellings, judge_twice
from gpuledger.audit.node_words import GpuNode, gpu_node
from gpuledger.model.findings import Written

NODE = """\
kind: Node
metadata:
  name: %s
  labels: {agentpool: %s, nvidia.com/gpu.product: "%s", nvidia.com/gpu.count: "2", nvidia.com/gpu.replicas: "%d", %s}
status: {allocatable: {%s: "%d"}}
"""


def node(
    name: str, replicas: int, *, pool: str = "p", product: str = "A100-SHARED", label: str = "a: b", shared: str = ""
) -> GpuNode:
    """A node of two devices, each in so many replicas."""
    text = NODE % (name, pool, product, replicas, label, f"nvidia.com/gpu{shared}", 2 * replicas)
    (document,) = documents(Written(path="n.yaml", text=text))[0]
    found = gpu_node(document, document.root)
    assert found is not None
    return found


def test_a_pool_has_one_number_of_replicas() -> None:
    """The odd one is struck; another pool is another matter."""
    nodes = [node("a", 4), node("b", 4), node("c", 8), node("d", 2, pool="q")]
    assert [(finding.check.verdict, finding.where.name) for finding in judge_pools(nodes)] == [
        ("mixed-replicas", "node c")
    ]


def test_a_class_is_spelled_one_way() -> None:
    """By its product or by its resource."""
    nodes = [node("a", 4), node("b", 4), node("c", 4, product="A100", shared=".shared")]
    (finding,) = judge_spellings(nodes)
    assert (finding.check.verdict, finding.where.name) == ("two-spellings", "node c")
    assert not list(judge_spellings(nodes[:2]))


def test_a_config_is_applied() -> None:
    """What its label names gives the replicas that it has."""
    four = "{four: 'sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}'}"
    text = f"kind: ConfigMap\nmetadata: {{name: m}}\ndata: {four}"
    (document,) = documents(Written(path="c.yaml", text=text))[0]
    named = "nvidia.com/device-plugin.config: four"
    shared = list(sharings(document))
    assert not list(judge_configs([node("a", 4, label=named)], shared))
    assert [each.check.verdict for each in judge_configs([node("a", 2, label=named)], shared)] == ["config-not-applied"]


def test_a_node_stands_once() -> None:
    """A second moment of it is told, and its first place."""
    (finding,) = judge_twice([node("a", 4), node("a", 4), node("b", 4)])
    assert finding.check.verdict == "seen-twice"
    assert "n.yaml:3" in finding.message
