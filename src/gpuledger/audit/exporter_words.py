"""What exporters of GPU figures call things: metrics, labels, blanks, pods of schedulers, other exporters.

Facts only, each with its source; the names are those of dcgm-exporter unless said.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum

GPU_UTIL = "DCGM_FI_DEV_GPU_UTIL"
FB_USED = "DCGM_FI_DEV_FB_USED"

MAPPED = (GPU_UTIL, FB_USED)
"""The two figures that an exporter can give by process (dcgm-exporter #594); nothing else is."""

ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
POWER = "DCGM_FI_DEV_POWER_USAGE"
PROF = "DCGM_FI_PROF_"

SELF = ("dcgm_exporter_", "dcgm_build_info")
"""How the exporter's metrics about itself begin (4.8.4, when switched on)."""

UTIL_TOLERANCE = Decimal(10)
"""Points by which pods and their device may differ: each is a mean over samples of its own moments."""

FIRST_MAPPING = "4.5.3-4.8.2"
"""The first release of dcgm-exporter that maps processes to pods (2026-05-06)."""

OLD_METRICS = {
    "dcgm_sm_clock": "DCGM_FI_DEV_SM_CLOCK",
    "dcgm_memory_clock": "DCGM_FI_DEV_MEM_CLOCK",
    "dcgm_memory_temp": "DCGM_FI_DEV_MEMORY_TEMP",
    "dcgm_gpu_temp": "DCGM_FI_DEV_GPU_TEMP",
    "dcgm_power_usage": POWER,
    "dcgm_total_energy_consumption": ENERGY,
    "dcgm_pcie_replay_counter": "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "dcgm_gpu_utilization": GPU_UTIL,
    "dcgm_mem_copy_utilization": "DCGM_FI_DEV_MEM_COPY_UTIL",
    "dcgm_enc_utilization": "DCGM_FI_DEV_ENC_UTIL",
    "dcgm_dec_utilization": "DCGM_FI_DEV_DEC_UTIL",
    "dcgm_xid_errors": "DCGM_FI_DEV_XID_ERRORS",
    "dcgm_fb_free": "DCGM_FI_DEV_FB_FREE",
    "dcgm_fb_used": FB_USED,
}
"""The 1.x names (its ``1.x-compatibility-metrics.csv``); others: lower case."""

POD_LABELS = (
    ("exported_pod", "exported_namespace", "exported_container"),
    ("pod_name", "pod_namespace", "container_name"),
    ("pod", "namespace", "container"),
)
"""Pod, namespace, container: behind Prometheus without honorLabels; of the old namespace; now."""

HOST_LABELS = ("Hostname", "hostname")
"""The capital went after the release 4.5.3-4.8.2 (its change #655)."""

SCRAPED_LABELS = ("instance", "job", "endpoint", "service", "prometheus")
"""Labels that Prometheus adds: where one stands, the text went through it, and a query may have left rows out."""

OWN_LABELS = frozenset({
    "gpu", "UUID", "uuid", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "Hostname", "hostname",
    "DCGM_FI_DRIVER_VERSION", "container", "namespace", "pod", "pod_uid", "vgpu", "hpc_job", "pod_name",
    "pod_namespace", "container_name", "err_code", "err_msg", "window_size_in_ms", "clock_event",
})  # fmt: skip
"""Labels of dcgm-exporter that are no pod's own and no device's of DRA."""

PLAIN_RESERVATIONS = re.compile(r"^(runai-reservation|kai-resource-reservation|gpu-reservation)")
"""Namespaces and pods that hold a GPU for others: Run:ai, KAI Scheduler. The pod that computes is another one."""

_EXPORTER_POD = re.compile(r"(dcgm|gpu)[-_]?(metrics-)?exporter|nvidia-dcgm")
_MPS_POD = re.compile(r"(^|-)mps-(control|server|daemon)")
_UNNAMED_UUIDS = re.compile(r"^(GPU-)?[0-]*$")


class Kind(StrEnum):
    """What a figure of an exporter is about."""

    MAPPED = "mapped"  # may be by process
    PROFILING = "profiling"  # counters of the whole device or instance
    DEVICE = "device"  # power, energy, clocks, temperature
    OTHER = "other"


def canonical(name: str) -> str:
    """A metric's present name, for its old one; any other name as it is."""
    if name.startswith("DCGM_"):
        return name
    if not name.startswith("dcgm_") or name.startswith(SELF):
        return name
    if name.startswith(("dcgm_fi_", "dcgm_exp_")):
        return name.upper()
    return OLD_METRICS.get(name, f"DCGM_FI_DEV_{name.removeprefix('dcgm_').upper()}")


def kind_of(name: str) -> Kind:
    """What the figure of a metric, by its present name, is about."""
    if name in MAPPED:
        return Kind.MAPPED
    if name.startswith(PROF):
        return Kind.PROFILING
    return Kind.DEVICE if name.startswith(("DCGM_FI_", "DCGM_EXP_")) else Kind.OTHER


def is_exporter_pod(pod: str, container: str) -> bool:
    """Whether a pod label that Prometheus set names the exporter itself, and no pod that holds a device."""
    return bool(_EXPORTER_POD.search(pod)) or container in ("exporter", "dcgm-exporter", "nvidia-dcgm-exporter")


def is_reservation(namespace: str, pod: str) -> bool:
    """Whether a pod holds a device for a scheduler of fractions, so that others compute on it."""
    return bool(PLAIN_RESERVATIONS.match(namespace) or PLAIN_RESERVATIONS.match(pod))


def is_mps_server(pod: str) -> bool:
    """Whether a pod runs MPS' control daemon and server, which work for the pods that are its clients."""
    return bool(_MPS_POD.search(pod))


def is_named(uuid: str) -> bool:
    """Whether a UUID tells devices apart: masked ones (all zeros) and empty ones do not."""
    return not _UNNAMED_UUIDS.match(uuid)


_SMI = "nvidia_gpu_exporter"
_MONITOR = "HAMi's monitor"
_SCHEDULER = "HAMi's scheduler"
_AMD = "an exporter for AMD"

OTHER_EXPORTERS = (
    ("nvidia_smi_", _SMI),
    ("DCGM_", "dcgm-exporter"),
    ("dcgm_", "dcgm-exporter"),
    ("vGPU_device_", _MONITOR),
    ("Device_utilization_desc_of_container", _MONITOR),
    ("Device_memory_desc_of_container", _MONITOR),
    ("Device_last_kernel_of_container", _MONITOR),
    ("HostGPUMemoryUsage", _MONITOR),
    ("HostCoreUtilization", _MONITOR),
    ("vGPU", _SCHEDULER),
    ("GPUDevice", _SCHEDULER),
    ("nodeGPU", _SCHEDULER),
    ("QuotaUsed", _SCHEDULER),
    ("hami_", "HAMi's web interface"),
    ("volcano_", "Volcano's scheduler"),
    ("nvidia_gpu_", "an exporter of nvidia_gpu_* (older than dcgm-exporter)"),
    ("gpu_operator_", "the gpu-operator itself"),
    ("kubelet_", "a kubelet"),
    ("container_accelerator_", "cAdvisor"),
    ("ceems_", "CEEMS"),
    ("gpu_usage_", "gpu-usage-audit"),
    ("nvml_", "an exporter of NVML"),
    ("nvitop_", "nvitop-exporter"),
    ("nv_gpu_", "Triton"),
    ("nv_inference_", "Triton"),
    ("vllm:", "vLLM"),
    ("hw_gpu_", "OpenTelemetry's host metrics"),
    ("amd_", _AMD),
    ("amdgpu_", _AMD),
    ("rocm_", _AMD),
    ("gpu_gfx_activity", _AMD),
    ("gpu_used_vram", _AMD),
    ("gpu_umc_activity", _AMD),
    ("gpu_nodes_total", _AMD),
    ("gpu_package_power", _AMD),
    ("habanalabs_", "an exporter for Gaudi"),
    ("xpum_", "an exporter for Intel"),
    ("neuron", "an exporter for Neuron"),
    ("slurm_", "an exporter for Slurm"),
    ("node_", "node_exporter"),
)
"""How a metric's name begins, and whose it is; the first that fits."""

MEANINGS = {
    _SMI: "figures of devices, which name no pod",
    _MONITOR: "figures of containers, as HAMi's library in them counts; limits are what was asked; Host* are devices'",
    _SCHEDULER: "what was given out, and not what is used",
    _AMD: "figures of whole devices; a pod on a row is the one that holds the device",
    "Triton": "figures of devices as the server sees them, and of its requests",
    "cAdvisor": "figures of devices on every container that has one",
}
"""What the figures of others are about."""

_BLANKS = (
    *((Decimal(2147483632 + i), "DCGM's int32 blank") for i in range(4)),
    *((Decimal(9223372036854775792 + i), "DCGM's int64 blank") for i in range(4)),
    (Decimal(140737488355328), "DCGM's fp64 blank"),
    *((Decimal(140737488355328 + i), "DCGM's fp64 blank") for i in range(1, 4)),
    (Decimal(17592186044415), "NVML's `not available`, taken as bytes and divided into MiB"),
    (Decimal(18446744073709551615), "NVML's `not available` (64 bit)"),
    (Decimal(4294967295), "NVML's `not available` (32 bit)"),
)
BLANKS = dict(_BLANKS)
"""Figures that stand for their absence (DCGM's dcgm_fields.h, NVML's nvml.h; the exporter drops most since 4.5.3)."""

_ROUNDED = {
    Decimal(9223372036854775808): "DCGM's int64 blank, rounded",
    Decimal("9.223372036854776E+18"): "DCGM's int64 blank, rounded",
    Decimal(18446744073709551616): "NVML's `not available` (64 bit), rounded",
    Decimal("1.8446744073709552E+19"): "NVML's `not available` (64 bit), rounded",
}
_UNBOUNDED = (ENERGY, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER")
"""Counters that may truly pass 2^31 and 2^32."""


def blank_of(name: str, figure: Decimal) -> str:
    """What a figure says instead of a figure; empty for a real one.

    Args:
        name: the metric's present name.
        figure: what stands there; NaN is no blank of DCGM's.
    """
    if not figure.is_finite() or figure < 2147483632:  # below the least blank
        return ""
    told = BLANKS.get(figure) or _ROUNDED.get(figure, "")
    if told and figure < 2**33 and (name in _UNBOUNDED or "BYTES" in name or "BANDWIDTH" in name):
        return ""  # a byte counter passes such values on its way
    return told


LONGEST_FIGURE = 400
"""Digits before or behind the point: one of 64 bits has 309 and 324, and more would take memory without a bound."""


def number(value: str) -> Decimal | None:
    """A figure as it is written, exact; None where none is written, or one that is no figure of 64 bits."""
    if not value or len(value) > LONGEST_FIGURE:
        return None
    try:
        figure = Decimal(value)
    except ArithmeticError:
        return None
    return figure if not figure.is_finite() or abs(figure.adjusted()) <= LONGEST_FIGURE else None
