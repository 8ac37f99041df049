"""What nodes offer beside NVIDIA's whole devices, replicas and slices: told as what it is, never left out.

Accelerators of other makers, parts of devices by memory and cores (HAMi and its kin), devices handed to virtual
machines, and devices under names that somebody gave them. In: what a node says. Out: what that means for a bill.
Sources: device plugins' own documentation and nodes in public issues; HAMi's protocol (``node-nvidia-register``);
NVIDIA's kubevirt-gpu-device-plugin, which names devices by their PCI name or vGPU type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuledger.audit import node_checks as checks
from gpuledger.audit.documents import Document, Node, objects
from gpuledger.model.durations import several
from gpuledger.model.findings import Finding, Where

_MAKERS = (
    (r"amd\.com/.+", "GPUs of AMD"),
    (r"gpu\.intel\.com/(i915|xe|.*tiles)", "GPUs of Intel"),
    (r"habana\.ai/gaudi", "Gaudi of Intel"),
    (r"aws\.amazon\.com/neuron\w*", "Neuron devices of AWS"),
    (r"google\.com/tpu|cloud-tpus\.google\.com/.+", "TPUs of Google"),
    (r"huawei\.com/Ascend.*|huawei\.com/npu.*", "Ascend NPUs of Huawei"),
    (r"cambricon\.com/.+", "MLUs of Cambricon"),
    (r"hygon\.com/dcu.*", "DCUs of Hygon"),
    (r"iluvatar\.(ai|com)/.+", "GPUs of Iluvatar"),
    (r"metax-tech\.com/.+", "GPUs of MetaX"),
    (r"mthreads\.com/.+", "GPUs of Moore Threads"),
    (r"enflame\.com/.+", "GCUs of Enflame"),
    (r"(kunlunxin|baidu)\.com/xpu.*", "XPUs of Kunlunxin"),
    (r"qualcomm\.com/qaic.*", "accelerators of Qualcomm"),
)
_PARTS = (
    (r"nvidia\.com/(gpumem|gpumem-percentage|gpucores|vgpu|vgpu-memory|vgpu-cores)", "HAMi"),
    (r"volcano\.sh/v?gpu-\w+", "Volcano"),
    (r"aliyun\.com/gpu-\w+", "gpushare of Alibaba"),
    (r"tencent\.com/vcuda-\w+|tke\.cloud\.tencent\.com/qgpu-\w+", "Tencent's GPU manager"),
    (r"koordinator\.sh/gpu-\S+", "Koordinator"),
    (r"k8s\.amazonaws\.com/vgpu", "AWS' virtual GPU plugin"),
)
_MACHINES = re.compile(r"nvidia\.com/([A-Z]{2}\d{2,3}[A-Z]*_.+|.+-\d+[QABC]|(GRID|NVIDIA)_.+|[pv]gpu_.+|pgpu)")
"""A device by its PCI name (``TU104GL_Tesla_T4``), or a vGPU type (``GRID_P40-1Q``): for virtual machines."""

_GIVEN = re.compile(
    r"nvidia\.com/(?!gpu$|gpu\.shared$|mig-)(.*gpu.*|[abhlptv]\d{1,4}\w*|g[bh]\d.*|.*rtx.*|tesla.*|geforce.*|quadro.*)"
    r"(\.shared)?",
    re.IGNORECASE,
)
"""A name that somebody gave to GPUs; the network operator has names under the same domain for other things."""

_REGISTERS = (
    ("hami.io/node-nvidia-register", "HAMi"),
    ("4pd.io/node-nvidia-register", "HAMi"),
    ("volcano.sh/node-vgpu-register", "Volcano"),
)
"""Annotations in which schedulers of parts keep their devices."""

_OTHER_PRODUCTS = ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name", "gpu.intel.com/product")
_SLICE_MAKERS = (("gpu.amd.com", "GPUs of AMD"), ("gpu.intel.com", "GPUs of Intel"), ("gaudi.intel.com", "Gaudi"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Devices of a node that a scheduler gives out in parts of memory and cores.

    Args:
        by: the scheduler.
        devices: how many there are; None where no register tells.
        products: what they are, as the register spells them; empty where none does.
        register: the annotation; empty where the resources alone tell it.
        unread: whether the annotation is in words that are not known.
    """

    by: str
    devices: int | None
    products: tuple[str, ...]
    register: str = ""
    unread: bool = False


def parts_of(allocatable: Node, annotations: Node) -> Parts | None:
    """Whether a node's devices are given out in parts; None where they are not.

    Args:
        allocatable: of its status.
        annotations: of its metadata.
    """
    for key, by in _REGISTERS:
        if text := annotations.at(key).text:
            devices = _registered(text)
            products = tuple(sorted({product for product in devices or () if product}))
            count = None if devices is None else len(devices)
            return Parts(by=by, devices=count, products=products, register=key, unread=devices is None)
    for key, value in allocatable.pairs:
        for pattern, by in _PARTS:
            if value.text not in ("", "0") and re.fullmatch(pattern, key):
                return Parts(by=by, devices=None, products=())
    return None


def _registered(text: str) -> list[str] | None:
    """The products of a register, one for each device: JSON, or fields between commas, devices between colons."""
    try:
        devices = json.loads(text)
    except (ValueError, RecursionError):
        rows = [row.split(",") for row in text.strip().strip(":").split(":")]
        return [row[4].strip() for row in rows] if all(len(row) >= 6 and row[1].isdigit() for row in rows) else None
    if not isinstance(devices, list) or not all(isinstance(each, dict) and "id" in each for each in devices):
        return None
    return [str(each.get("type", "")) for each in devices]


def other_devices(read: Sequence[Document]) -> Iterator[Finding]:
    """Devices of other makers, parts of devices, and devices for virtual machines, of all nodes and slices.

    Args:
        read: every document.
    """
    for document in read:
        for node in objects(document):
            kind, name = node.at("kind").text, node.at("metadata", "name")
            if kind not in ("Node", "ResourceSlice") or document.is_template:
                continue
            spelled = f"node {name.text}" if kind == "Node" else f"{kind} {name.text}"
            where = Where(path=document.path, line=name.line or node.line, name=spelled)
            allocatable = node.at("status", "allocatable")
            parts = parts_of(allocatable, node.at("metadata", "annotations"))
            if parts is not None:
                yield judge_parts(parts, allocatable, where)
            yield from judge_others(node, where)


def judge_parts(parts: Parts, allocatable: Node, where: Where) -> Finding:
    """What parts mean for a share, in one finding.

    Args:
        parts: of the node.
        allocatable: of its status.
        where: the node.
    """
    offered = [
        f"{value.text} x {key}"
        for key, value in allocatable.pairs
        if key == "nvidia.com/gpu" or any(re.fullmatch(pattern, key) for pattern, _ in _PARTS)
    ]
    of = f" of {several(parts.devices, 'device')}" if parts.devices is not None else " of its devices"
    named = f" ({', '.join(parts.products)})" if parts.products else ""
    message = (
        f"{parts.by} gives out parts{of}{named} by memory and cores: what a pod holds is what it asked for, "
        "and no replica is a fixed share."
    )
    evidence = [", ".join(offered)] if offered else []
    if parts.unread:
        evidence.append(f"the annotation {parts.register} is in words that are not known: how many devices is UNKNOWN")
    return Finding(check=checks.PARTS, where=where, message=message, evidence=tuple(evidence))


def given_names(allocatable: Node) -> Iterator[tuple[str, Node]]:
    """Resources under which GPUs of NVIDIA are offered by a name that somebody gave them."""
    for key, value in allocatable.pairs:
        parts = any(re.fullmatch(pattern, key) for pattern, _ in _PARTS)
        if value.text not in ("", "0") and _GIVEN.fullmatch(key) and not parts and not _MACHINES.fullmatch(key):
            yield key, value


def judge_others(node: Node, where: Where) -> Iterator[Finding]:
    """Devices of other makers, and devices for virtual machines.

    Args:
        node: a Node or a ResourceSlice.
        where: its place.
    """
    driver = node.at("spec", "driver").text
    for key, what in _SLICE_MAKERS:
        if driver == key:
            many = several(len(node.at("spec", "devices").entries), "device")
            message = f"It publishes {many} of {driver}, {what}: not judged, and not metered here."
            yield Finding(check=checks.OTHER_MAKERS, where=where, message=message)
    labels = node.at("metadata", "labels")
    for key, value in node.at("status", "allocatable").pairs:
        if value.text in ("", "0"):
            continue
        what = next((what for pattern, what in _MAKERS if re.fullmatch(pattern, key)), "")
        place = Where(path=where.path, line=value.line or where.line, name=where.name)
        if what:
            products = [f"{each}: {labels.at(each).text}" for each in _OTHER_PRODUCTS if labels.at(each).is_there]
            message = f"It offers {value.text} x {key}, {what}: not judged, and not metered here."
            yield Finding(check=checks.OTHER_MAKERS, where=place, message=message, evidence=tuple(products[:1]))
        elif _MACHINES.fullmatch(key):
            message = (
                f"It gives {value.text} x {key} to virtual machines: their reservation can be metered, "
                "and who computes in them is UNKNOWN here (passthrough)."
            )
            yield Finding(check=checks.TO_MACHINES, where=place, message=message)


def to_machines(allocatable: Node) -> Iterator[str]:
    """Resources that virtual machines get."""
    yield from (key for key, value in allocatable.pairs if value.text not in ("", "0") and _MACHINES.fullmatch(key))


def is_other(node: Node) -> bool:
    """Whether a node offers devices that are not NVIDIA's own whole devices, replicas and slices."""
    allocatable = node.at("status", "allocatable")
    return parts_of(allocatable, node.at("metadata", "annotations")) is not None or any(
        value.text not in ("", "0")
        and (_MACHINES.fullmatch(key) or any(re.fullmatch(pattern, key) for pattern, _ in _MAKERS))
        for key, value in allocatable.pairs
    )


def shown_others(node: Node) -> str:
    """What such a node offers, as one line: ``8 x amd.com/gpu``."""
    patterns = [pattern for pattern, _ in (*_MAKERS, *_PARTS)]
    return ", ".join(
        f"{value.text} x {key}"
        for key, value in node.at("status", "allocatable").pairs
        if value.text not in ("", "0")
        and (_MACHINES.fullmatch(key) or any(re.fullmatch(pattern, key) for pattern in patterns))
    )
