"""What nodes offer beside NVIDIA's own devices: each told as what it is."""

from __future__ import annotations

import json

import pytest

from gpuledger.audit.documents import Node, documents
from gpuledger.audit.node_others import given_names, is_other, other_devices, parts_of, shown_others, to_machines
from gpuledger.model.findings import Written


def node(allocatable: dict[str, str], annotations: dict[str, str] | None = None, labels: object = None) -> str:
    held = {"name": "n", "annotations": annotations or {}, "labels": labels or {}}
    return json.dumps({"kind": "Node", "metadata": held, "status": {"allocatable": allocatable}})


def root(text: str) -> Node:
    return documents(Written(path="f", text=text))[0][0].root


def struck(text: str) -> list[tuple[str, str]]:
    read, _ = documents(Written(path="f", text=text))
    return [(finding.check.verdict, finding.message) for finding in other_devices(read)]


@pytest.mark.parametrize(
    ("resource", "what"),
    [
        ("amd.com/gpu", "GPUs of AMD"),
        ("amd.com/cpx_nps1", "GPUs of AMD"),
        ("gpu.intel.com/i915", "GPUs of Intel"),
        ("gpu.intel.com/xe", "GPUs of Intel"),
        ("habana.ai/gaudi", "Gaudi of Intel"),
        ("aws.amazon.com/neuroncore", "Neuron devices of AWS"),
        ("google.com/tpu", "TPUs of Google"),
        ("huawei.com/Ascend910", "Ascend NPUs of Huawei"),
        ("cambricon.com/mlu370", "MLUs of Cambricon"),
    ],
)
def test_other_makers(resource: str, what: str) -> None:
    """Never silence: a cluster of both is reported as what it is."""
    ((verdict, message),) = struck(node({resource: "8", "cpu": "4"}))
    assert (verdict, message) == (
        "other-makers",
        f"It offers 8 x {resource}, {what}: not judged, and not metered here.",
    )
    assert is_other(root(node({resource: "8"})))
    assert shown_others(root(node({resource: "8", "cpu": "4"}))) == f"8 x {resource}"


@pytest.mark.parametrize(
    "resource", ["cpu", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "gpu.intel.com/memory.max", "nvidia.com/hostdev"]
)
def test_what_is_no_other_device(resource: str) -> None:
    """NVIDIA's own, and what is no accelerator."""
    assert struck(node({resource: "8"})) == []
    assert not is_other(root(node({resource: "8"})))
    assert not is_other(root(node({"amd.com/gpu": "0"})))


@pytest.mark.parametrize(
    "resource",
    ["GRID_P40-1Q", "NVIDIA_A10-12Q", "GRID_A100D-10C", "TU104GL_Tesla_T4", "GA102GL_A10", "GH100_H100_PCIe", "pgpu"],
)
def test_devices_for_virtual_machines(resource: str) -> None:
    """By PCI name or vGPU type: no process in them is seen from the node."""
    ((verdict, message),) = struck(node({f"nvidia.com/{resource}": "2"}))
    assert verdict == "to-virtual-machines"
    assert "UNKNOWN here (passthrough)" in message
    assert list(to_machines(root(node({f"nvidia.com/{resource}": "2"})).at("status", "allocatable"))) == [
        f"nvidia.com/{resource}"
    ]


REGISTER = json.dumps(
    [{"id": f"GPU-{n}", "count": 10, "devmem": 32768, "devcore": 100, "type": "NVIDIA-Tesla V100"} for n in (1, 2)]
)
OLD = "GPU-1,10,32768,100,NVIDIA-Tesla V100,0,true:GPU-2,10,32768,100,NVIDIA-Tesla V100,0,true:"


@pytest.mark.parametrize("text", [REGISTER, OLD])
@pytest.mark.parametrize("key", ["hami.io/node-nvidia-register", "4pd.io/node-nvidia-register"])
def test_the_register_of_parts(key: str, text: str) -> None:
    """In both forms: how many devices there are, which no resource tells."""
    held = root(node({"nvidia.com/gpu": "20"}, {key: text}))
    parts = parts_of(held.at("status", "allocatable"), held.at("metadata", "annotations"))
    assert parts is not None
    assert (parts.by, parts.devices, parts.products) == ("HAMi", 2, ("NVIDIA-Tesla V100",))


@pytest.mark.parametrize("text", ["nonsense", "{}", "[1]", '[{"a": 1}]', "GPU-1,ten,1,1,x,0"])
def test_a_register_in_other_words(text: str) -> None:
    """How many devices there are is UNKNOWN then, and not none."""
    told = node({"nvidia.com/gpu": "20"}, {"hami.io/node-nvidia-register": text})
    read, _ = documents(Written(path="f", text=told))
    (finding,) = other_devices(read)
    assert "parts of its devices by memory" in finding.message
    assert "how many devices is UNKNOWN" in finding.evidence[-1]


@pytest.mark.parametrize(
    ("resources", "by"),
    [
        (("nvidia.com/gpu", "nvidia.com/gpumem"), "HAMi"),
        (("nvidia.com/vgpu",), "HAMi"),
        (("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"), "Volcano"),
        (("aliyun.com/gpu-mem",), "gpushare of Alibaba"),
        (("k8s.amazonaws.com/vgpu",), "AWS' virtual GPU plugin"),
    ],
)
def test_parts_by_their_resources(resources: tuple[str, ...], by: str) -> None:
    """Without a register the resources alone tell it."""
    ((verdict, message),) = struck(node(dict.fromkeys(resources, "10")))
    assert verdict == "parts-by-memory"
    assert message.startswith(f"{by} gives out parts of its devices")


def test_names_that_somebody_gave() -> None:
    """GPUs under another name; not the network's devices, nor those for virtual machines."""
    held = root(node({"nvidia.com/a100": "8", "nvidia.com/hostdev": "1", "nvidia.com/GRID_P40-1Q": "1", "cpu": "1"}))
    assert [key for key, _ in given_names(held.at("status", "allocatable"))] == ["nvidia.com/a100"]


def test_slices_of_other_makers() -> None:
    """Resource slices say their driver."""
    text = '{"kind": "ResourceSlice", "spec": {"driver": "gpu.amd.com", "devices": [{"name": "gpu-0"}]}}'
    assert [verdict for verdict, _ in struck(text)] == ["other-makers"]
    assert struck(text.replace("gpu.amd.com", "gpu.nvidia.com")) == []
