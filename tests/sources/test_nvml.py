"""One look at the driver: the order of the calls, what is kept, and what a failure leaves out."""

from __future__ import annotations

from typing import Any

import pynvml
import pytest

from gpuledger.errors import NotFound, Refused, Unavailable
from gpuledger.model.missing import Missing
from gpuledger.sources.nvml import REFRESH_LOOKS, NvmlSource
from gpuledger.sources.nvml_processes import LIST_CAP
from gpuledger.sources.simulated import SimulatedDriver

NOW = 1_790_000_000_000_000
SECOND = 1_000_000


class Watched(SimulatedDriver):
    """The simulated driver, with the calls made of it written down."""

    def __init__(self, **arguments: Any) -> None:
        self.calls: list[tuple[str, str]] = []
        self.now_us = NOW
        super().__init__(lambda: self.now_us, **arguments)

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if not name.startswith("nvml"):
            return value

        def call(*arguments: Any) -> Any:
            self.calls.append((name, getattr(arguments[0], "uuid", "") if arguments else ""))
            return value(*arguments)

        return call


@pytest.fixture
def driver() -> Watched:
    """A driver with two GPUs, accounting on at the first."""
    driver = Watched()
    driver.add_gpu("GPU-a", accounting=True)
    driver.add_gpu("GPU-b")
    return driver


@pytest.fixture
def source(driver: Watched) -> NvmlSource:
    """The source under test."""
    return NvmlSource(driver, method="simulated")


def codes(reading: Any) -> list[str]:
    """Codes of a reading's problems."""
    return [problem.code for problem in reading.problems]


def test_a_look_tells_devices_modes_rows_and_contexts(driver: Watched, source: NvmlSource) -> None:
    """The whole of one look, each part where it belongs."""
    driver.start(10, "GPU-a", 184, at_us=NOW - 5 * SECOND)
    driver.finish(10, "GPU-a", at_us=NOW - 4_321_000)
    driver.start(11, "GPU-a", 300, at_us=NOW - SECOND, kinds="CG")
    driver.work(11, "GPU-a", 40)
    reading = source.read(NOW)
    assert (reading.at_us, reading.method, reading.problems) == (NOW, "simulated", ())
    first, second = reading.devices.values()
    assert (first.uuid, first.accounting, first.mig, first.listed) == ("GPU-a", "enabled", False, 2)
    assert (first.product, first.memory_mib, first.pci_bus_id) == ("NVIDIA H100 80GB HBM3", 81559, "00000000:01:00.0")
    (row,) = first.finished
    assert (row.pid, row.started_at_us, row.context_ms, row.peak_memory_mib) == (10, NOW - 5 * SECOND, 679, 184)
    (context,) = first.living
    assert (context.pid, context.kinds, context.memory_mib, context.busy_percent) == (11, "CG", 300, 40)
    assert (context.accounted, context.started_at_us) == (True, NOW - SECOND)
    assert (second.accounting, second.finished, second.living) == ("disabled", (), ())


def test_the_mode_is_read_before_anything_else_at_every_look(driver: Watched, source: NvmlSource) -> None:
    """A driver unload drops mode and rows: each look asks for the mode first, on each device."""
    source.read(NOW)
    driver.calls.clear()
    source.read(NOW + SECOND)
    for uuid in ("GPU-a", "GPU-b"):
        assert next(name for name, handle in driver.calls if handle == uuid) == "nvmlDeviceGetAccountingMode"


def test_a_driver_reload_shows_as_mode_off_and_no_rows(driver: Watched, source: NvmlSource) -> None:
    """After a reload: disabled, nothing listed, and the living process goes on unaccounted."""
    driver.start(10, "GPU-a", 184)
    driver.start(11, "GPU-a", 184)
    driver.finish(10, "GPU-a")
    assert len(source.read(NOW).devices["GPU-a"].finished) == 1
    driver.reload()
    device = source.read(NOW + SECOND).devices["GPU-a"]
    assert (device.accounting, device.finished, device.listed) == ("disabled", (), 0)
    assert [context.pid for context in device.living] == [11]
    assert isinstance(device.living[0].accounted, Missing)


def test_stale_rows_under_mode_disabled_are_read(driver: Watched, source: NvmlSource) -> None:
    """Switching off clears only the running rows; the dead ones are evidence still."""
    driver.start(10, "GPU-a", 184)
    driver.finish(10, "GPU-a")
    driver.nvmlDeviceSetAccountingMode(driver.nvmlDeviceGetHandleByIndex(0), 0)
    device = source.read(NOW).devices["GPU-a"]
    assert (device.accounting, len(device.finished)) == ("disabled", 1)


def test_a_process_older_than_accounting_is_not_accounted(driver: Watched, source: NvmlSource) -> None:
    """It opened the device before the mode was on, and never appears until it opens it again."""
    driver.start(10, "GPU-b", 184)
    source.enable_accounting("GPU-b")
    device = source.read(NOW).devices["GPU-b"]
    assert device.accounting == "enabled"
    assert [(context.pid, context.accounted) for context in device.living] == [(10, False)]


def test_a_device_without_accounting_is_unsupported(driver: Watched, source: NvmlSource) -> None:
    """NotSupported for the mode: no list is asked for, living processes are read all the same."""
    driver.fail("nvmlDeviceGetAccountingMode", pynvml.NVML_ERROR_NOT_SUPPORTED, device="GPU-a")
    driver.start(10, "GPU-a", 184)
    device = source.read(NOW).devices["GPU-a"]
    assert (device.accounting, len(device.living)) == ("unsupported", 1)


def test_a_list_that_contradicts_its_mode_is_unknown(driver: Watched, source: NvmlSource) -> None:
    """Mode on and list not supported: neither empty nor off, and said so."""
    driver.fail("nvmlDeviceGetAccountingPids", pynvml.NVML_ERROR_NOT_SUPPORTED, device="GPU-a")
    reading = source.read(NOW)
    assert reading.devices["GPU-a"].accounting == "unknown"
    assert codes(reading) == ["accounting-unreadable"]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (pynvml.NVML_ERROR_GPU_IS_LOST, "device-lost"),
        (pynvml.NVML_ERROR_RESET_REQUIRED, "device-lost"),
        (pynvml.NVML_ERROR_UNKNOWN, "device-unreadable"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "device-unreadable"),
    ],
)
@pytest.mark.parametrize("call", ["nvmlDeviceGetAccountingMode", "nvmlDeviceGetComputeRunningProcesses"])
def test_a_device_that_fails_is_left_out_and_the_others_are_read(
    driver: Watched, source: NvmlSource, call: str, number: int, code: str
) -> None:
    """Left out with a problem; never read as empty, and the neighbour does not suffer."""
    source.read(NOW)
    driver.fail(call, number, device="GPU-a")
    reading = source.read(NOW + SECOND)
    assert list(reading.devices) == ["GPU-b"]
    assert codes(reading) == [code]
    driver.fail(call, 0, device="GPU-a")
    assert list(source.read(NOW + 2 * SECOND).devices) == ["GPU-a", "GPU-b"]


def test_a_lost_device_cannot_be_listed_and_comes_back(driver: Watched, source: NvmlSource) -> None:
    """Off the bus it has no handle; once it was reset, the library is started anew to find it."""
    source.read(NOW)
    driver.fail("nvmlDeviceGetAccountingMode", pynvml.NVML_ERROR_GPU_IS_LOST, device="GPU-b")
    driver.fail("nvmlDeviceGetHandleByIndex", pynvml.NVML_ERROR_GPU_IS_LOST, device="GPU-b")
    assert codes(source.read(NOW)) == ["device-lost"]
    assert codes(source.read(NOW)) == ["device-lost"]
    driver.fail("nvmlDeviceGetAccountingMode", 0, device="GPU-b")
    driver.fail("nvmlDeviceGetHandleByIndex", 0, device="GPU-b")
    for _ in range(REFRESH_LOOKS):
        reading = source.read(NOW)
    assert list(reading.devices) == ["GPU-a", "GPU-b"]
    assert ("nvmlShutdown", "") in driver.calls


def test_a_device_that_is_unplugged_or_plugged_in_is_noticed(driver: Watched, source: NvmlSource) -> None:
    """The count is asked at each look."""
    source.read(NOW)
    driver.remove_gpu("GPU-a")
    assert list(source.read(NOW).devices) == ["GPU-b"]
    driver.add_gpu("GPU-c")
    assert list(source.read(NOW).devices) == ["GPU-b", "GPU-c"]


def test_two_devices_with_one_uuid_are_not_merged(driver: Watched, source: NvmlSource) -> None:
    """What cannot be told apart is left out rather than added up."""
    driver.add_gpu("GPU-a")
    reading = source.read(NOW)
    assert len(reading.devices) == 2
    assert codes(reading) == ["duplicate-uuid"]


@pytest.mark.parametrize("call", ["nvmlDeviceGetCount", "nvmlDeviceGetAccountingMode", "nvmlSystemGetDriverVersion"])
def test_a_driver_that_is_gone_fails_the_look_and_is_started_again(
    driver: Watched, source: NvmlSource, call: str
) -> None:
    """No reading is made up; the next look starts the library anew and finds everything again."""
    driver.fail(call, pynvml.NVML_ERROR_UNINITIALIZED)
    with pytest.raises(Unavailable) as caught:
        source.read(NOW)
    assert caught.value.code == "driver-unreachable"
    driver.fail("nvmlInit", pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    with pytest.raises(Unavailable, match="not loaded"):
        source.read(NOW)
    driver.fail("nvmlInit", 0)
    driver.fail(call, 0)
    assert list(source.read(NOW).devices) == ["GPU-a", "GPU-b"]


def test_memory_shared_with_the_processor_has_no_total(driver: Watched, source: NvmlSource) -> None:
    """Devices with unified memory answer NotSupported: Missing, not 0."""
    driver.fail("nvmlDeviceGetMemoryInfo", pynvml.NVML_ERROR_NOT_SUPPORTED, device="GPU-a")
    driver.fail("nvmlDeviceGetPciInfo", pynvml.NVML_ERROR_NOT_SUPPORTED, device="GPU-a")
    device = source.read(NOW).devices["GPU-a"]
    assert isinstance(device.memory_mib, Missing)
    assert device.pci_bus_id == ""


def test_devices_without_mig_are_asked_once_in_a_while(driver: Watched, source: NvmlSource) -> None:
    """A device that does not know MIG is not asked for it at each look."""
    driver.fail("nvmlDeviceGetMigMode", pynvml.NVML_ERROR_NOT_SUPPORTED)
    for _ in range(REFRESH_LOOKS):
        assert source.read(NOW).devices["GPU-a"].mig is False
    assert driver.calls.count(("nvmlDeviceGetMigMode", "GPU-a")) == 1


def test_what_hardly_changes_is_not_asked_at_each_look(driver: Watched, source: NvmlSource) -> None:
    """A quiet look makes seven calls a device and one for the count."""
    source.read(NOW)
    driver.calls.clear()
    source.read(NOW + SECOND)
    assert len(driver.calls) == 1 + 2 * 7


def test_no_list_of_living_processes_is_told(driver: Watched, source: NvmlSource) -> None:
    """Then only the accounting list shows who is alive, and the reading says so."""
    for kind in ("Compute", "Graphics", "MPSCompute"):
        for version in ("", "_v2"):
            driver.fail(f"nvmlDeviceGet{kind}RunningProcesses{version}", pynvml.NVML_ERROR_NOT_SUPPORTED)
    driver.start(10, "GPU-a", 184)
    reading = source.read(NOW)
    assert [context.kinds for context in reading.devices["GPU-a"].living] == ["A"]
    assert codes(reading) == ["process-list-unsupported"] * 2
    assert codes(source.read(NOW)) == ["process-list-unsupported"] * 2


def test_a_list_as_long_as_the_driver_gives_is_told(driver: Watched, source: NvmlSource) -> None:
    """The list is cut at 950 pids: there may be more, and the reading says so."""
    for pid in range(1, LIST_CAP + 1):
        driver.start(pid, "GPU-b", 1)
    assert codes(source.read(NOW)) == ["process-list-capped"]


def test_drivers_that_scramble_process_lists_are_told() -> None:
    """535.43 to 535.86: read by the older call, with a problem in the reading."""
    driver = Watched(driver_version="535.54.03")
    driver.add_gpu("GPU-a")
    driver.start(10, "GPU-a", 184)
    reading = NvmlSource(driver).read(NOW)
    assert [context.pid for context in reading.devices["GPU-a"].living] == [10]
    assert codes(reading) == ["process-list-scrambled"]
    assert ("nvmlDeviceGetComputeRunningProcesses", "GPU-a") not in driver.calls


@pytest.fixture
def mig(driver: Watched) -> Watched:
    """The driver with two instances on GPU-b."""
    driver.add_instance("GPU-b", "MIG-1", profile="3g.40gb", memory_mib=40448, gpu_instance=1)
    driver.add_instance("GPU-b", "MIG-2", profile="1g.10gb", memory_mib=9856, gpu_instance=7)
    return driver


def test_mig_switches_accounting_off_for_good(mig: Watched, source: NvmlSource) -> None:
    """Mode disabled under MIG is unsupported: nothing enables it, and asking is refused with that reason."""
    device = source.read(NOW).devices["GPU-b"]
    assert (device.accounting, device.mig) == ("unsupported", True)
    with pytest.raises(Refused) as caught:
        source.enable_accounting("GPU-b")
    assert caught.value.code == "accounting-unsupported"


def test_frozen_rows_under_mig_are_read() -> None:
    """An H200 in MIG mode shows accounting disabled and the rows from before: they are kept."""
    driver = Watched()
    driver.add_gpu("GPU-a", accounting=True)
    driver.start(10, "GPU-a", 184)
    driver.finish(10, "GPU-a")
    driver.add_instance("GPU-a", "MIG-1", profile="1g.18gb", memory_mib=16384, gpu_instance=1)
    assert len(NvmlSource(driver).read(NOW).devices["GPU-a"].finished) == 1


def test_a_process_under_mig_is_on_its_instance(mig: Watched, source: NvmlSource) -> None:
    """Placed by its instance ids, its memory once, without utilisation; no sample is asked for."""
    mig.start(10, "MIG-1", 300)
    mig.start(11, "MIG-2", 20)
    device = source.read(NOW).devices["GPU-b"]
    assert [(one.pid, one.device, one.memory_mib) for one in device.living] == [(10, "MIG-1", 300), (11, "MIG-2", 20)]
    assert isinstance(device.living[0].busy_percent, Missing)
    assert isinstance(device.living[0].accounted, Missing)
    assert [(one.uuid, one.profile, one.memory_mib) for one in device.slices] == [
        ("MIG-1", "3g.40gb", 40448),
        ("MIG-2", "1g.10gb", 9856),
    ]
    assert ("nvmlDeviceGetProcessUtilization", "GPU-b") not in mig.calls


def test_instances_are_read_again_when_a_context_is_new(mig: Watched, source: NvmlSource) -> None:
    """A place given to another instance is found out by the first process that comes to it."""
    mig.start(10, "MIG-1", 300)
    source.read(NOW)
    mig.finish(10, "MIG-1")
    mig.remove_instance("GPU-b", "MIG-1")
    mig.add_instance("GPU-b", "MIG-3", profile="3g.40gb", memory_mib=40448, gpu_instance=1)
    mig.start(12, "MIG-3", 5)
    assert [one.device for one in source.read(NOW).devices["GPU-b"].living] == ["MIG-3"]


def test_instances_are_not_read_again_without_need(mig: Watched, source: NvmlSource) -> None:
    """The same contexts as before are on the same instances."""
    mig.start(10, "MIG-1", 300)
    source.read(NOW)
    mig.calls.clear()
    source.read(NOW)
    assert ("nvmlDeviceGetMaxMigDeviceCount", "GPU-b") not in mig.calls


def test_without_root_each_instance_is_asked(mig: Watched, source: NvmlSource) -> None:
    """Only root is told of all instances by the GPU; the instances' own lists say the same."""
    for kind in ("Compute", "Graphics", "MPSCompute"):
        mig.fail(f"nvmlDeviceGet{kind}RunningProcesses", pynvml.NVML_ERROR_NO_PERMISSION, device="GPU-b")
    mig.start(10, "MIG-1", 300)
    mig.start(11, "MIG-2", 20)
    living = source.read(NOW).devices["GPU-b"].living
    assert [(one.pid, one.device) for one in living] == [(10, "MIG-1"), (11, "MIG-2")]


def test_a_process_on_no_listed_instance_is_booked_on_the_gpu(mig: Watched, source: NvmlSource) -> None:
    """It is not lost and not guessed: the whole GPU, with a problem."""
    mig.start(10, "MIG-1", 300)
    mig.remove_instance("GPU-b", "MIG-1")
    reading = source.read(NOW)
    assert [one.device for one in reading.devices["GPU-b"].living] == ["GPU-b"]
    assert codes(reading) == ["unresolved-slice"]


def test_mig_switched_off_again_is_read_as_a_whole_gpu(mig: Watched, source: NvmlSource) -> None:
    """Modes are read at each look: instances go, contexts are on the GPU."""
    source.read(NOW)
    mig.remove_instance("GPU-b", "MIG-1")
    mig.remove_instance("GPU-b", "MIG-2")
    mig.nvmlDeviceGetHandleByIndex(1).mig = False
    mig.start(10, "GPU-b", 300)
    device = source.read(NOW).devices["GPU-b"]
    assert (device.mig, device.slices, device.accounting) == (False, (), "disabled")
    assert [one.device for one in device.living] == ["GPU-b"]


def test_accounting_is_enabled_by_root_only() -> None:
    """Anyone else is refused, with the command that works."""
    driver = Watched(root=False)
    driver.add_gpu("GPU-a")
    with pytest.raises(Refused) as caught:
        NvmlSource(driver).enable_accounting("GPU-a")
    assert caught.value.code == "needs-root"
    assert caught.value.hint == "sudo gpuledger agent --enable-accounting"


def test_enabling_an_unknown_device_is_not_found(source: NvmlSource) -> None:
    """By UUID, never by index."""
    with pytest.raises(NotFound) as caught:
        source.enable_accounting("0")
    assert caught.value.code == "no-device"


def test_enabling_while_the_driver_is_gone_is_unavailable(driver: Watched, source: NvmlSource) -> None:
    """Any other failure is the driver's, and says so."""
    driver.fail("nvmlDeviceSetAccountingMode", pynvml.NVML_ERROR_UNKNOWN)
    with pytest.raises(Unavailable, match="enabling accounting on GPU-a"):
        source.enable_accounting("GPU-a")


def test_a_closed_source_starts_again_when_it_is_read(driver: Watched, source: NvmlSource) -> None:
    """Closing twice, or after the driver is gone, is no error."""
    source.read(NOW)
    source.close()
    driver.fail("nvmlShutdown", pynvml.NVML_ERROR_UNINITIALIZED)
    source.close()
    assert list(source.read(NOW).devices) == ["GPU-a", "GPU-b"]
    assert driver.calls.count(("nvmlInit", "")) == 1
