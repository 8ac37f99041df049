"""The simulated driver answers as the binding does, down to its errors."""

from __future__ import annotations

import inspect
import threading

import pynvml
import pytest

from gpuledger.sources.nvml import NvmlSource
from gpuledger.sources.nvml_binding import Binding
from gpuledger.sources.simulated import MIB, SimulatedDriver

NOW = 1_790_000_000_000_000


@pytest.fixture
def driver() -> SimulatedDriver:
    """One accounted GPU and one with two MIG instances, at a clock that stands."""
    driver = SimulatedDriver(lambda: NOW)
    driver.add_gpu("GPU-a", accounting=True)
    driver.add_gpu("GPU-b")
    driver.add_instance("GPU-b", "MIG-1", profile="1g.10gb", memory_mib=9856, gpu_instance=7)
    driver.add_instance("GPU-b", "MIG-2", profile="1g.10gb", memory_mib=9856, gpu_instance=8)
    return driver


def test_every_call_of_the_seam_is_there_and_is_the_bindings() -> None:
    """The seam names only calls that pynvml has, with its arguments, and the simulated driver has all of them."""
    calls = [name for name in vars(Binding) if name.startswith("nvml")]
    assert len(calls) > 20
    for name in calls:
        ours = list(inspect.signature(getattr(SimulatedDriver, name)).parameters)[1:]
        theirs = inspect.signature(getattr(pynvml, name)).parameters.values()
        assert ours == [parameter.name for parameter in theirs if parameter.default is inspect.Parameter.empty]


def test_a_process_runs_and_is_settled(driver: SimulatedDriver) -> None:
    """Running: 0 ms and isRunning. Finished: its time and peak."""
    gpu = driver.nvmlDeviceGetHandleByIndex(0)
    driver.start(7, "GPU-a", 100, at_us=NOW - 5_000_000)
    driver.start(7, "GPU-a", 300)
    driver.hold(7, "GPU-a", 200)
    running = driver.nvmlDeviceGetAccountingStats(gpu, 7)
    assert (running.isRunning, running.time, running.startTime) == (1, 0, NOW - 5_000_000)
    assert driver.nvmlDeviceGetComputeRunningProcesses(gpu)[0].usedGpuMemory == 200 * MIB
    driver.finish(7, "GPU-a", at_us=NOW - 1_000_000)
    settled = driver.nvmlDeviceGetAccountingStats(gpu, 7)
    assert (settled.isRunning, settled.time, settled.maxMemoryUsage) == (0, 4000, 300 * MIB)
    assert driver.nvmlDeviceGetComputeRunningProcesses(gpu) == []


def test_the_dead_hide_the_living(driver: SimulatedDriver) -> None:
    """A pid in its second stint answers with its first."""
    gpu = driver.nvmlDeviceGetHandleByIndex(0)
    driver.start(7, "GPU-a", 100, at_us=NOW - 5_000_000)
    driver.finish(7, "GPU-a", at_us=NOW - 4_000_000)
    driver.start(7, "GPU-a", 100)
    assert driver.nvmlDeviceGetAccountingPids(gpu) == [7, 7]
    assert driver.nvmlDeviceGetAccountingStats(gpu, 7).isRunning == 0


def test_an_unknown_pid_is_not_found(driver: SimulatedDriver) -> None:
    """Neither dead nor running, or running unaccounted."""
    with pytest.raises(pynvml.NVMLError_NotFound):
        driver.nvmlDeviceGetAccountingStats(driver.nvmlDeviceGetHandleByIndex(0), 7)


def test_utilisation_is_sampled_while_it_is_set(driver: SimulatedDriver) -> None:
    """No sample is NotFound, as from the driver; none under MIG is NotSupported."""
    gpu, mig = (driver.nvmlDeviceGetHandleByIndex(index) for index in (0, 1))
    driver.start(7, "GPU-a", 100)
    with pytest.raises(pynvml.NVMLError_NotFound):
        driver.nvmlDeviceGetProcessUtilization(gpu, 0)
    driver.work(7, "GPU-a", 40)
    (sample,) = driver.nvmlDeviceGetProcessUtilization(gpu, NOW - 1)
    assert (sample.pid, sample.smUtil, sample.timeStamp) == (7, 40, NOW)
    with pytest.raises(pynvml.NVMLError_NotFound):
        driver.nvmlDeviceGetProcessUtilization(gpu, NOW)
    with pytest.raises(pynvml.NVMLError_NotSupported):
        driver.nvmlDeviceGetProcessUtilization(mig, 0)


def test_mig_lists_by_gpu_and_by_instance(driver: SimulatedDriver) -> None:
    """The GPU lists all with their ids, an instance its own."""
    gpu = driver.nvmlDeviceGetHandleByIndex(1)
    driver.start(7, "MIG-1", 100)
    driver.start(8, "MIG-2", 100)
    assert [one.gpuInstanceId for one in driver.nvmlDeviceGetComputeRunningProcesses(gpu)] == [7, 8]
    instance = driver.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 1)
    assert [one.pid for one in driver.nvmlDeviceGetComputeRunningProcesses(instance)] == [8]
    driver.remove_instance("GPU-b", "MIG-2")
    with pytest.raises(pynvml.NVMLError_NotFound):
        driver.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 1)


def test_modes_are_for_root_and_not_for_mig(driver: SimulatedDriver) -> None:
    """NoPermission without root, NotSupported under MIG."""
    with pytest.raises(pynvml.NVMLError_NotSupported):
        driver.nvmlDeviceSetAccountingMode(driver.nvmlDeviceGetHandleByIndex(1), 1)
    other = SimulatedDriver(lambda: NOW, root=False)
    other.add_gpu("GPU-a")
    with pytest.raises(pynvml.NVMLError_NoPermission):
        other.nvmlDeviceSetAccountingMode(other.nvmlDeviceGetHandleByIndex(0), 1)


def test_calls_fail_when_told_to(driver: SimulatedDriver) -> None:
    """For one device or all, so often or until mended."""
    driver.fail("nvmlDeviceGetName", pynvml.NVML_ERROR_UNKNOWN, device="GPU-a", times=2)
    gpu, other = (driver.nvmlDeviceGetHandleByIndex(index) for index in (0, 1))
    for _ in range(2):
        with pytest.raises(pynvml.NVMLError_Unknown):
            driver.nvmlDeviceGetName(gpu)
    assert driver.nvmlDeviceGetName(gpu) == driver.nvmlDeviceGetName(other)
    driver.fail("nvmlDeviceGetCount", pynvml.NVML_ERROR_UNINITIALIZED)
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        driver.nvmlDeviceGetCount()
    driver.fail("nvmlDeviceGetCount", 0)
    assert driver.nvmlDeviceGetCount() == 2


def test_processes_come_and_go_while_another_thread_looks(driver: SimulatedDriver) -> None:
    """The demo's processes and its agent are different threads."""
    failures: list[Exception] = []
    done = threading.Event()

    def look() -> None:
        source = NvmlSource(driver, method="simulated")
        try:
            while not done.is_set():
                source.read(NOW)
        except Exception as error:  # noqa: BLE001 - whatever it is, the main thread shows it
            failures.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    for round_number in range(300):
        driver.start(round_number % 50 + 1, "GPU-a", 100)
        driver.finish(round_number % 50 + 1, "GPU-a")
        if round_number % 100 == 0:
            driver.reload()
    done.set()
    thread.join()
    assert failures == []
