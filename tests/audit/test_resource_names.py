"""Names under which pods get GPUs: renamed ones, and resource claims."""

from __future__ import annotations

import pytest

from gpuledger.audit.documents import documents
from gpuledger.audit.resource_names import names_gpus, renamed_resources, uses_claims
from gpuledger.model.findings import Written

SHARING = (
    "version: v1\nsharing:\n  timeSlicing:\n    renameByDefault: true\n"
    "    resources: [{name: nvidia.com/gpu, replicas: 4}]\n"
)


def read(*texts: str):
    return [document for text in texts for document in documents(Written(path="f.yaml", text=text))[0]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (SHARING, {"nvidia.com/gpu.shared"}),
        (SHARING.replace("true", "false"), set()),
        (
            "kind: ConfigMap\ndata:\n  any: |\n" + "".join(f"    {row}\n" for row in SHARING.splitlines()),
            {"nvidia.com/gpu.shared"},
        ),
        (
            "devicePlugin:\n  config:\n    data:\n      any: |-\n"
            + "".join(f"        {row}\n" for row in SHARING.splitlines()),
            {"nvidia.com/gpu.shared"},
        ),
        ("sharing: {timeSlicing: {resources: [{name: gpu, rename: gold, replicas: 4}]}}", {"nvidia.com/gold"}),
        ("sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}", {"nvidia.com/gpu.shared"}),
        (
            "kind: Pod\nspec: {containers: [{resources: {limits: {nvidia.com/gpu.shared: 1, cpu: 2}}}]}",
            {"nvidia.com/gpu.shared"},
        ),
        (
            "kind: Deployment\nspec: {template: {spec: {containers: [{resources: {limits: {nvidia.com/a100: 1}}}]}}}",
            {"nvidia.com/a100"},
        ),
        (
            "kind: Pod\nspec: {containers: [{resources: {limits: {nvidia.com/gpu: 1, nvidia.com/mig-1g.5gb: 1}}}]}",
            set(),
        ),
        (
            "kind: Node\nstatus: {allocatable: {nvidia.com/gpu: '0', nvidia.com/gpu.shared: '8'}}",
            {"nvidia.com/gpu.shared"},
        ),
        ("kind: Node\nstatus: {allocatable: {nvidia.com/gpu: '2', nvidia.com/gpu.shared: '0'}}", set()),
        ("kind: Pod\nspec: {containers: [{resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 3000}}}]}", set()),
        ("kind: Node\nstatus: {allocatable: {nvidia.com/gpucores: 30, nvidia.com/gpumem-percentage: 50}}", set()),
    ],
)
def test_names_that_are_not_nvidias_own(text: str, names: set[str]) -> None:
    """Of configs wherever they stand, of pods, of nodes; each with its place."""
    found = renamed_resources(read(text))
    assert set(found) == names
    assert all("f.yaml:" in where for where in found.values())


def test_resource_claims() -> None:
    """Slices of NVIDIA's driver, and claims for its classes."""
    assert uses_claims(read("kind: ResourceSlice\nspec: {driver: gpu.nvidia.com}"))
    assert uses_claims(
        read(
            "kind: ResourceClaimTemplate\n"
            "spec: {spec: {devices: {requests: [{exactly: {deviceClassName: mig.nvidia.com}}]}}}"
        )
    )
    assert uses_claims(read("kind: ResourceClaim\nspec: {devices: {requests: [{deviceClassName: gpu.nvidia.com}]}}"))
    assert not uses_claims(read("kind: ResourceSlice\nspec: {driver: compute-domain.nvidia.com}", SHARING))


def test_claims_in_other_words() -> None:
    """One of several classes, and classes that stand for a resource of their own."""
    ways = "firstAvailable: [{name: a, deviceClassName: other}, {name: b, deviceClassName: gpu.nvidia.com}]"
    assert uses_claims(read(f"kind: ResourceClaim\nspec: {{devices: {{requests: [{{name: r, {ways}}}]}}}}"))
    selects = "selectors: [{cel: {expression: \"device.driver == 'gpu.nvidia.com'\"}}]"
    given = f"kind: DeviceClass\nmetadata: {{name: own}}\nspec: {{extendedResourceName: own/gpu, {selects}}}"
    assert uses_claims(read(given))
    assert not uses_claims(read(given.replace("extendedResourceName: own/gpu, ", "")))
    assert not uses_claims(read(given.replace("gpu.nvidia.com", "gpu.amd.com")))


def test_what_is_a_number_of_devices() -> None:
    """Devices, replicas and slices, under any name; no amounts, and no devices of the network."""
    for name in ("gpu", "gpu.shared", "mig-1g.5gb", "a100", "GRID_T4-2Q".lower() + "-gpu"):
        assert names_gpus(f"nvidia.com/{name}")
    for name in ("gpumem", "gpumem-percentage", "gpucores", "hostdev"):
        assert not names_gpus(f"nvidia.com/{name}")
