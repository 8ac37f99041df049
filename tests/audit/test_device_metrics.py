"""Whose figure a metric is, by the exporter that has it."""

from __future__ import annotations

import pytest

from gpuledger.audit.device_metrics import OF_OTHERS, is_device_metric, is_of_dcgm, tells_device

OF_DEVICES = """
DCGM_FI_DEV_GPU_UTIL DCGM_FI_PROF_SM_ACTIVE DCGM_EXP_XID_ERRORS_COUNT dcgm_gpu_utilization dcgm_fi_dev_fb_used
nvidia_smi_utilization_gpu_ratio nvidia_smi_power_draw_watts nvidia_gpu_duty_cycle nvidia_gpu_memory_used_bytes
container_accelerator_duty_cycle container_accelerator_memory_used_bytes HostCoreUtilization HostGPUMemoryUsage
hami_host_gpu_utilization_ratio gpu_gfx_activity GPU_GFX_ACTIVITY amd_gpu_gfx_activity GPU_USED_VRAM gpu_prof_sm_active
gpu_package_power amd_smi_power xpum_engine_ratio habanalabs_utilization nv_gpu_utilization ray_node_gpus_utilization
hw_gpu_utilization_ratio node_drm_gpu_busy_percent
"""
OF_NONE = """
up container_cpu_usage_seconds_total container_gpu_allocation node_gpu_hourly_cost kube_pod_container_resource_requests
vGPU_device_memory_usage_in_bytes Device_utilization_desc_of_container hami_container_device_utilization_ratio
hami_vgpu_memory_used_bytes runai_gpu_utilization_per_fractional_pod DCGM_CUSTOM_PROCESS_SM_UTIL
dcgm_exporter_scrape_errors_total nvidia_smi_process_used_memory vllm:gpu_cache_usage_perc nvidia_gpu_jobId
container_gpu_utilization nv_inference_count ray_node_cpu_utilization
"""


@pytest.mark.parametrize("name", OF_DEVICES.split())
def test_figures_of_whole_devices(name: str) -> None:
    """Whatever labels the exporter, or Prometheus beside it, puts on them."""
    assert is_device_metric(name)
    assert tells_device(f"avg by (pod) ({name})")


@pytest.mark.parametrize("name", OF_NONE.split())
def test_figures_that_are_no_device_s(name: str) -> None:
    """Counted for a process, container or job by itself, allocated by a scheduler, or of the exporter itself."""
    assert not is_device_metric(name)


def test_which_of_them_are_dcgm_s() -> None:
    """Only of these an exporter can tell pods apart."""
    assert is_of_dcgm("DCGM_FI_DEV_GPU_UTIL")
    assert not is_of_dcgm("nvidia_smi_utilization_gpu_ratio")


def test_texts_that_speak_of_none() -> None:
    """Most of a dashboard: they are looked at no further."""
    for text in ("Memory", "rate(node_cpu_seconds_total[5m])", "sum by (pod) (up)", "palette-classic"):
        assert not tells_device(text)


def test_the_examples_are_what_they_stand_for() -> None:
    """A pattern over names is tried on them."""
    assert all(is_device_metric(name) and tells_device(name) for name in OF_OTHERS)
