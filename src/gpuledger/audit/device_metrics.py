"""Which metrics are a whole device's figure, whoever exports them: dcgm-exporter and the others of the field.

In: the name of a metric, or a text. Out: whether it is such a figure, whether a text speaks of one.
What an exporter counts for each process, container or job by itself is none (HAMi's ``vGPU_*`` and
``hami_container_*``, Run:ai's ``runai_*``, Alibaba's ``DCGM_CUSTOM_PROCESS_*``), nor what a scheduler has allocated.
Sources: the metric lists of each exporter named below, read 2026-11-29.
"""

from __future__ import annotations

import re
from functools import lru_cache

_DCGM = r"(?i:DCGM_FI_|DCGM_EXP_|dcgm_(?!exporter_|custom_|fi_|exp_))[\w:]*"
"""dcgm-exporter; not its metrics of itself (4.8.4), nor what Alibaba's fork counts for each process."""

_OTHERS = (
    # nvidia_gpu_exporter (utkuozdemir), Telegraf's plugin of the same prefix: NVML's figures by uuid
    r"nvidia_smi_(?!\w*process)\w+",
    # nvidia_gpu_prometheus_exporter (mindprince) and what jobstats made of it: NVML's figures by minor_number and uuid
    r"nvidia_gpu_(duty_cycle|memory_(used|total)_bytes|power_usage_milliwatts|temperature_celsius|fanspeed_percent)",
    # cAdvisor up to Kubernetes 1.24: NVML's figures of each device that a container can open
    r"container_accelerator_(duty_cycle|memory_used(_bytes)?|memory_total(_bytes)?|memory_bandwidth_utilization)",
    # HAMi: the host's own figures beside those that it counts for each container
    r"Host(CoreUtilization|GPUMemoryUsage)|hami_host_gpu_\w+",
    # AMD device-metrics-exporter and amd_smi_exporter, which put pods and jobs on them as dcgm-exporter does
    r"(?i:(amd_)?gpu_(gfx|umc|mma|vcn|jpeg)_(activity|busy_instantaneous))|(?i:(amd_)?gpu_prof_\w+)",
    r"(?i:(amd_)?gpu_((used|free|total)_(visible_)?(vram|gtt)|(average_)?package_power|energy_consumed))",
    r"(?i:(amd_)?gpu_(edge|junction|hbm)_temperature)",
    r"amd_gpu_\w+|amd_smi_\w+|amdgpu_\w+|rocm_smi_\w+",
    # Intel XPU Manager, Gaudi's exporter
    r"xpum_\w+|habanalabs_\w+",
    # Triton and Ray: the figures of the devices below them, scraped from a pod
    r"nv_gpu_\w+|nv_energy_consumption|ray_node_(gpus_utilization|gram_used|gram_available)",
    # OpenTelemetry's conventions for hardware, its receiver of DCGM; node_exporter's drm collector
    r"hw_gpu_\w+|gpu_dcgm_\w+|node_drm_\w+",
)
_DEVICE = re.compile("|".join((_DCGM, *_OTHERS)))
_TOLD_WORDS = (
    "dcgm nvidia_smi_ nvidia_gpu_ container_accelerator_ container/accelerator/ hostcoreutil hostgpumem hami_host_ "
    "gpu_gfx_ gpu_umc_ gpu_prof_ gpu_mma_ gpu_vcn_ gpu_jpeg_ _vram _gtt package_power amd_gpu_ amd_smi_ amdgpu_ "
    "rocm_smi_ gpu_edge_temp gpu_junction_temp gpu_hbm_temp gpu_energy_consumed xpum_ habanalabs_ nv_gpu_ nv_energy_ "
    "ray_node_g hw_gpu_ node_drm_"
)
_TOLD = tuple(_TOLD_WORDS.split())


@lru_cache(maxsize=4096)
def is_device_metric(name: str) -> bool:
    """Whether a metric is a figure of a whole device."""
    return _DEVICE.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def is_of_dcgm(name: str) -> bool:
    """Whether a metric is one of dcgm-exporter's own of devices."""
    return re.match(_DCGM, name) is not None


def tells_device(text: str) -> bool:
    """Whether a text may speak of such a metric; none that does is missed."""
    if "_" not in text and "/" not in text and "Host" not in text:
        return "dcgm" in text.lower()
    low = text.lower()
    return any(word in low for word in _TOLD)


OF_OTHERS = (
    "nvidia_smi_utilization_gpu_ratio", "nvidia_smi_memory_used_bytes", "nvidia_gpu_duty_cycle",
    "nvidia_gpu_memory_used_bytes", "container_accelerator_duty_cycle", "HostCoreUtilization",
    "hami_host_gpu_utilization_ratio", "gpu_gfx_activity", "amd_gpu_gfx_activity", "gpu_prof_sm_active",
    "xpum_engine_ratio", "habanalabs_utilization", "nv_gpu_utilization", "ray_node_gpus_utilization",
)  # fmt: skip
"""One or two of each exporter: a pattern over ``__name__`` that speaks of them is tried on these."""
