"""Sharing configs, pods and claims: what they do to shares."""

from __future__ import annotations

import pytest

from gpuledger.audit.documents import documents
from gpuledger.audit.node_configs import judge_pods, judge_sharing, running_exporters, sharings, slices_by_node
from gpuledger.model.findings import Written

CONFIG = """\
version: v1
flags: {migStrategy: none}
sharing:
  timeSlicing:
    renameByDefault: false
    failRequestsGreaterThanOne: true
    resources:
    - {name: nvidia.com/gpu, replicas: 4}
"""


def read(text: str):
    found, unread = documents(Written(path="f.yaml", text=text))
    assert not unread
    return found


def nested(indent: int) -> str:
    return "".join(" " * indent + f"{row}\n" for row in CONFIG.splitlines())


@pytest.mark.parametrize(
    ("text", "config", "line"),
    [
        (CONFIG, "", 8),
        ("kind: ConfigMap\nmetadata: {name: m}\ndata:\n  gold: |-\n" + nested(4), "gold", 12),
        ("devicePlugin:\n  config:\n    data:\n      gold: |\n" + nested(8), "gold", 12),
        ("config:\n  map:\n    gold: |\n" + nested(6), "gold", 11),
        ("config:\n  map:\n    gold:\n" + nested(6), "gold", 11),
    ],
)
def test_configs_wherever_they_stand(text: str, config: str, line: int) -> None:
    """Alone, in a ConfigMap, in values of either chart; with the line that an editor shows."""
    (sharing,) = [each for document in read(text) for each in sharings(document)]
    assert (sharing.config, sharing.resource, sharing.replicas, sharing.key) == (config, "nvidia.com/gpu", 4, "gpu")
    assert sharing.where.line == line


@pytest.mark.parametrize(
    ("old", "new", "verdicts"),
    [
        ("", "", []),
        ("    failRequestsGreaterThanOne: true\n", "", ["many-replicas-allowed"]),
        ("renameByDefault: false", "renameByDefault: true", ["shared-unmarked"]),
        ("nvidia.com/gpu", "nvidia.com/mig-1g.5gb", ["mig-time-sliced"]),
        ("migStrategy: none", "migStrategy: single", ["mig-time-sliced"]),
        ("replicas: 4", "replicas: 1", []),
        ("replicas: 4", "replicas: many", []),
        ("timeSlicing", "mps", []),
    ],
)
def test_what_a_config_does(old: str, new: str, verdicts: list[str]) -> None:
    """Requests for several, renaming without a mark, slices shared again; MPS refuses several by itself."""
    found = [each for document in read(CONFIG.replace(old, new)) for each in sharings(document)]
    assert [finding.check.verdict for sharing in found for finding in judge_sharing(sharing)] == verdicts


def test_mps_on_slices() -> None:
    """Which the device plugin does not support."""
    text = CONFIG.replace("timeSlicing", "mps").replace("nvidia.com/gpu", "nvidia.com/mig-1g.5gb")
    (sharing,) = [each for document in read(text) for each in sharings(document)]
    assert [finding.check.verdict for finding in judge_sharing(sharing)] == ["mps-with-mig"]


POD = "kind: Pod\nmetadata: {name: p}\nspec: {nodeName: n, containers: [{resources: {limits: {RESOURCE: 2}}}]}"
CLAIM = (
    "kind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {config: [{opaque: {parameters: "
    "{kind: GpuConfig, sharing: {strategy: TimeSlicing}}}}]}}"
)


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        (POD.replace("RESOURCE", "nvidia.com/gpu.shared"), ["many-replicas-asked"]),
        (POD.replace("RESOURCE", "nvidia.com/gpu"), ["many-replicas-asked"]),
        (POD.replace("RESOURCE", "nvidia.com/gpu").replace("nodeName: n", "nodeName: other"), []),
        (POD.replace("RESOURCE: 2", "nvidia.com/gpu.shared: 1"), []),
        (CLAIM, ["claim-shared"]),
        (CLAIM.replace("GpuConfig", "MigDeviceConfig"), ["mig-time-sliced"]),
        (CLAIM.replace("TimeSlicing", "Exclusive"), []),
        ("kind: ResourceClaim\nmetadata: {name: c}\nstatus: {reservedFor: [{name: a}, {name: b}]}", ["claim-shared"]),
        ("kind: Pod\nmetadata: {name: p, annotations: {gpu-fraction: '0.5'}}", ["held-for-others"]),
        ("kind: Pod\nmetadata: {name: p, labels: {app.runai.resource.reservation: x}}", ["held-for-others"]),
    ],
)
def test_pods_and_claims(text: str, verdicts: list[str]) -> None:
    """Several replicas asked for, claims that several use, devices held for others."""
    found = [finding for document in read(text) for finding in judge_pods(document, {"n": {"nvidia.com/gpu"}})]
    assert [finding.check.verdict for finding in found] == verdicts


def test_exporters_and_slices() -> None:
    """What runs where, and which nodes have slices of NVIDIA's driver."""
    pod = "kind: Pod\nmetadata: {name: p}\nspec: {nodeName: n, containers: [{image: 'x/dcgm-exporter:3.1.3-3.1.2-u'}]}"
    ((where, version, _, on),) = running_exporters(read(pod))
    assert (where.name, version, on) == ("Pod p", (3, 1, 2), "n")
    slices = "kind: ResourceSlice\napiVersion: resource.k8s.io/v1\nspec: {driver: gpu.nvidia.com, nodeName: n}"
    assert slices_by_node(read(slices))["n"][1] == "resource.k8s.io/v1"
    assert slices_by_node(read(slices.replace("gpu.nvidia", "compute-domain.nvidia"))) == {}
