"""MIG instances: profiles, memory that is counted once, and the place of a process."""

from __future__ import annotations

import pynvml
import pytest

from gpuledger.model.missing import Missing
from gpuledger.model.readings import SliceReading
from gpuledger.sources.nvml_slices import (
    NO_INSTANCE,
    Slice,
    count_memory_once,
    place_of,
    profile_in_name,
    profile_of,
    read_slices,
    slice_of,
)
from gpuledger.sources.simulated import SimulatedDriver


def instance(uuid: str, gpu_instance: int, compute_instance: int = 0) -> Slice:
    """A MIG instance of 20,096 MiB."""
    reading = SliceReading(
        uuid=uuid,
        gpu_instance=gpu_instance,
        compute_instance=compute_instance,
        profile="3g.20gb",
        memory_mib=20096,
    )
    return Slice(reading=reading, handle=None)


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "1g.5gb"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", "1g.10gb+me"),
        ("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", "1c.3g.20gb"),
        ("NVIDIA A100-SXM4-40GB", ""),
        ("Graphics Device", ""),
    ],
)
def test_profile_stands_in_the_name(name: str, profile: str) -> None:
    """Since R470 an instance is named after its GPU and profile."""
    assert profile_in_name(name) == profile


@pytest.mark.parametrize(
    ("gpu_slices", "compute_slices", "memory_mib", "gpu_memory_mib", "profile"),
    [
        (1, 1, 4864, 40536, "1g.5gb"),
        (2, 2, 9984, 40536, "2g.10gb"),
        (3, 3, 20096, 40536, "3g.20gb"),
        (7, 7, 40192, 40536, "7g.40gb"),
        (3, 1, 20096, 40536, "1c.3g.20gb"),
        (1, 1, 9856, 81559, "1g.10gb"),
    ],
)
def test_profile_is_built_from_the_size_where_the_name_lacks_it(
    gpu_slices: int, compute_slices: int, memory_mib: int, gpu_memory_mib: int, profile: str
) -> None:
    """Sizes as A100 and H100 report them give the names that NVIDIA's tools print."""
    built = profile_of(
        gpu_slices=gpu_slices, compute_slices=compute_slices, memory_mib=memory_mib, gpu_memory_mib=gpu_memory_mib
    )
    assert built == profile


def test_profile_without_the_memory_of_the_gpu_is_not_told() -> None:
    """No size of the whole, no fraction of it."""
    assert profile_of(gpu_slices=1, compute_slices=1, memory_mib=4864, gpu_memory_mib=Missing("x")) == ""


def test_compute_instances_of_one_gpu_instance_share_its_memory() -> None:
    """Each reports all of it: only the first keeps it, so that a sum is not more than the device."""
    first, second, other = count_memory_once([instance("MIG-1", 1, 0), instance("MIG-2", 1, 1), instance("MIG-3", 2)])
    assert first.reading.memory_mib == 20096
    assert isinstance(second.reading.memory_mib, Missing)
    assert other.reading.memory_mib == 20096


def test_a_process_is_placed_by_both_instance_ids() -> None:
    """GPU instance and compute instance together; without the latter only where there is one."""
    slices = [instance("MIG-1", 1, 0), instance("MIG-2", 1, 1), instance("MIG-3", 2)]
    assert slice_of(slices, 1, 1) == "MIG-2"
    assert slice_of(slices, 2, NO_INSTANCE) == "MIG-3"
    assert slice_of(slices, 1, NO_INSTANCE) == ""
    assert slice_of(slices, 9, 0) == ""


def test_places_without_an_instance_are_passed_over() -> None:
    """The driver answers NotFound for an index that holds none, also between others."""
    driver = SimulatedDriver(lambda: 0)
    driver.add_gpu("GPU-a", product="NVIDIA A100-SXM4-40GB", memory_mib=40536)
    driver.add_instance("GPU-a", "MIG-1", profile="1g.5gb", memory_mib=4864, gpu_instance=7)
    driver.add_instance("GPU-a", "MIG-2", profile="2g.10gb", memory_mib=9984, gpu_instance=5)
    driver.fail("nvmlDeviceGetMigDeviceHandleByIndex", pynvml.NVML_ERROR_NOT_FOUND, times=1)
    slices = read_slices(driver, driver.nvmlDeviceGetHandleByIndex(0), 40536)
    assert [(one.reading.uuid, one.reading.profile, one.reading.memory_mib) for one in slices] == [
        ("MIG-2", "2g.10gb", 9984)
    ]


def test_an_instance_whose_memory_may_not_be_read_is_still_there() -> None:
    """Its memory is Missing, and so is the profile where the name does not hold it."""
    driver = SimulatedDriver(lambda: 0)
    driver.add_gpu("GPU-a")
    driver.add_instance("GPU-a", "MIG-1", profile="1g.10gb", memory_mib=9856, gpu_instance=7)
    driver.fail("nvmlDeviceGetMemoryInfo", pynvml.NVML_ERROR_NO_PERMISSION)
    driver.fail("nvmlDeviceGetName", pynvml.NVML_ERROR_NOT_SUPPORTED)
    (one,) = read_slices(driver, driver.nvmlDeviceGetHandleByIndex(0), 81559)
    assert isinstance(one.reading.memory_mib, Missing)
    assert one.reading.profile == ""


@pytest.mark.parametrize(
    ("gpu_instance", "compute_instance", "told"),
    [
        (3, 1, "GPU instance 3, compute instance 1, which the driver does not list"),
        (3, NO_INSTANCE, "GPU instance 3, which the driver does not list"),
        (NO_INSTANCE, NO_INSTANCE, "no GPU instance that the driver names, although MIG is on"),
    ],
)
def test_a_place_that_is_none_is_told_in_words(gpu_instance: int, compute_instance: int, told: str) -> None:
    """Never by the number that NVML writes where it has none."""
    assert place_of(gpu_instance, compute_instance) == told
