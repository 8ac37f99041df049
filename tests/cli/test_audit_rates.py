"""``gpuledger audit rates``: statuses, and a policy that cannot be read."""

from __future__ import annotations

from pathlib import Path

NODE = (
    'kind: Node\nmetadata: {name: n, labels: {nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "1"}}\n'
    'status: {allocatable: {nvidia.com/gpu: "1"}, capacity: {nvidia.com/gpu: "1"}}\n'
)
RATES = 'rates: {currency: EUR, cards: [{meter: gpu.reserved, class: L4, rate: "1", unit: device-hour}]}\n'


def test_priced_or_not(gpuledger, tmp_path: Path) -> None:
    """0 where each has one rate; 1 with the class that has none; 2 for a policy that cannot be understood."""
    policy, nodes = tmp_path / "policy.yaml", tmp_path / "nodes.yaml"
    nodes.write_text(NODE, encoding="utf-8")
    policy.write_text(RATES, encoding="utf-8")
    assert gpuledger("audit", "rates", policy, nodes).status == 0
    policy.write_text(RATES.replace("L4", "L4-SHARED"), encoding="utf-8")
    done = gpuledger("audit", "rates", policy, nodes)
    assert (done.status, "rates/spelling" in done.out, "L4 has no rate" in done.out) == (1, True, True)
    policy.write_text(RATES.replace("EUR", "euro"), encoding="utf-8")
    done = gpuledger("audit", "rates", policy, nodes, "--format", "json")
    assert (done.status, done.error["code"]) == (2, "policy-bad-value")
