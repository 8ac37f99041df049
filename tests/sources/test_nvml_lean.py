"""The real binding against a real library: nvidia-ml-py and our own calls on the fake driver's shared object.

The library is found at the start of a process, so each driver is read by a child that looks when told to.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pynvml
import pytest

from gpuledger.errors import Unavailable
from gpuledger.sources.nvml_accounting import MIB, RawStats
from gpuledger.sources.nvml_lean import PROCESS_LAYOUT, STATS_LAYOUT, ProcessInfo, load_binding
from gpuledger.sources.nvml_processes import SAMPLE_LAYOUT

CHILD = """
import dataclasses, json, sys, time
import pynvml
from gpuledger.errors import GpuledgerError
from gpuledger.sources.nvml import NvmlSource, load_binding
source = None
for line in sys.stdin:
    verb, _, rest = line.strip().partition(" ")
    try:
        if source is None:
            source = NvmlSource(load_binding())
        if verb == "enable":
            answer = source.enable_accounting(rest)
        elif verb == "binding":
            answer = eval(rest, {"pynvml": pynvml, "lean": source._binding})
        else:
            answer = dataclasses.asdict(source.read(time.time_ns() // 1000))
    except (GpuledgerError, TypeError) as error:
        answer = {"error": type(error).__name__, "code": getattr(error, "code", ""), "message": str(error)}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture(scope="session")
def fakes() -> ModuleType:
    """The fake driver's Python side, from its own folder."""
    path = Path(__file__).parents[1] / "fake_driver" / "fake_driver.py"
    specification = importlib.util.spec_from_file_location("gpuledger_fake_driver", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def libraries(fakes: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both shared libraries, compiled once."""
    built: Path = fakes.build(tmp_path_factory.mktemp("libraries"))
    return built


class Reader:
    """A child process with the real binding; each question is one line, each answer one of JSON."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.child = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", CHILD],
            env={**os.environ, **driver.environment()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, question: str) -> Any:
        """The child's answer."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(question + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def look(self) -> Any:
        """One reading."""
        return self.ask("look")


@pytest.fixture
def driver(fakes: ModuleType, libraries: Path, tmp_path: Path) -> Any:
    """A driver without devices, its callers root."""
    return fakes.FakeDriver(tmp_path / "state", libraries, root=True)


@pytest.fixture
def reader(driver: Any) -> Iterator[Reader]:
    """The child under test."""
    reader = Reader(driver)
    yield reader
    with contextlib.suppress(BrokenPipeError):
        reader.child.communicate()
    assert reader.child.returncode == 0


def test_layouts_are_those_of_the_installed_binding() -> None:
    """What is unpacked whole gives the fields that the binding's structures give one by one."""
    stats = pynvml.c_nvmlAccountingStats_t(12, 3, 184 * MIB, 679, 1_790_000_000_000_000, 1)
    read = RawStats._make(STATS_LAYOUT.unpack_from(stats))
    assert read == tuple(getattr(stats, name) for name in RawStats._fields)
    assert [name for name, *_ in pynvml.c_nvmlAccountingStats_t._fields_][:6] == list(RawStats._fields)
    entry = pynvml.c_nvmlProcessInfo_v3_t(7, 300 * MIB, 1, 2)
    assert ctypes.sizeof(pynvml.c_nvmlProcessInfo_v3_t) == ctypes.sizeof(pynvml.c_nvmlProcessInfo_v2_t)
    assert ctypes.sizeof(entry) == PROCESS_LAYOUT.size
    assert ProcessInfo._make(PROCESS_LAYOUT.unpack_from(entry)) == (7, 300 * MIB, 1, 2)
    sample = pynvml.c_nvmlProcessUtilizationSample_t(7, 1_790_000_000_000_000, 40, 1, 2, 3)
    assert SAMPLE_LAYOUT.unpack_from(sample) == (7, 1_790_000_000_000_000, 40)


def test_one_look_at_a_real_library(driver: Any, reader: Reader) -> None:
    """Every part of a reading, through C and back."""
    started = driver_now() - 60_000_000
    driver.add_gpu("GPU-a", accounting=True)
    driver.add_gpu("GPU-b", product="NVIDIA L4", memory_mib=23034, accounting=None, mig=None)
    driver.start(10, "GPU-a", 184, at_us=started)
    driver.finish(10, "GPU-a", at_us=started + 679_000)
    driver.start(11, "GPU-a", 300, at_us=started, kinds="CGM")
    driver.work(11, "GPU-a", 40)
    driver.start(12, "GPU-b", None)
    reading = reader.look()
    assert (reading["method"], reading["driver_version"], reading["problems"]) == ("nvml", "595.45.04", [])
    first, second = reading["devices"]["GPU-a"], reading["devices"]["GPU-b"]
    assert (first["product"], first["memory_mib"]) == ("NVIDIA H100 80GB HBM3", 81559)
    assert (first["pci_bus_id"], first["accounting"], first["listed"]) == ("00000000:01:00.0", "enabled", 2)
    assert first["finished"] == [
        {
            "pid": 10,
            "started_at_us": started,
            "context_ms": 679,
            "peak_memory_mib": 184,
            "gpu_percent": 0,
            "memory_percent": 0,
        }
    ]
    (context,) = first["living"]
    assert (context["kinds"], context["memory_mib"], context["busy_percent"]) == ("CGM", 300, 40)
    assert (context["started_at_us"], context["accounted"]) == (started, True)
    assert second["accounting"] == "unsupported"
    assert second["living"][0]["memory_mib"] == {"reason": "driver: not available"}


def driver_now() -> int:
    """The wall clock, microseconds."""
    return time.time_ns() // 1000


def test_a_row_without_peak_memory_raises_in_the_binding_and_is_read_here(driver: Any, reader: Reader) -> None:
    """The binding assigns None to a u64 field: TypeError. The row is read all the same, its memory Missing."""
    driver.add_gpu("GPU-a", accounting=True)
    driver.add_finished(7, "GPU-a", started_at_us=driver_now() - 5_000_000, context_ms=4000, memory_mib=None)
    (row,) = reader.look()["devices"]["GPU-a"]["finished"]
    assert (row["context_ms"], row["peak_memory_mib"]) == (4000, {"reason": "driver: not available"})
    raised = reader.ask("binding pynvml.nvmlDeviceGetAccountingStats(pynvml.nvmlDeviceGetHandleByIndex(0), 7)")
    assert raised["error"] == "TypeError"


def test_sentinels_of_utilisation_come_through_c_as_missing(driver: Any, reader: Reader) -> None:
    """4294967295 in the structure, Missing in the row."""
    driver.add_gpu("GPU-a", accounting=True)
    driver.add_finished(
        7, "GPU-a", started_at_us=driver_now() - 5_000_000, context_ms=9, percent=None, memory_percent=None
    )
    (row,) = reader.look()["devices"]["GPU-a"]["finished"]
    assert row["gpu_percent"] == row["memory_percent"] == {"reason": "driver: not available"}


def test_a_full_ring_keeps_128_rows_whatever_the_buffer_size_says(driver: Any, reader: Reader) -> None:
    """130 jobs: the two oldest are gone, though the API calls its buffer 4000."""
    driver.add_gpu("GPU-a", accounting=True)
    started = driver_now() - 500_000_000
    for pid in range(1, 131):
        driver.add_finished(pid, "GPU-a", started_at_us=started + pid * 1_000_000, context_ms=500)
    device = reader.look()["devices"]["GPU-a"]
    assert [row["pid"] for row in device["finished"]] == list(range(3, 131))
    driver.add_finished(131, "GPU-a", started_at_us=started + 131_000_000, context_ms=500)
    assert [row["pid"] for row in reader.look()["devices"]["GPU-a"]["finished"]] == list(range(4, 132))


def test_lists_longer_than_their_buffer_are_asked_for_again(driver: Any, reader: Reader) -> None:
    """More entries than there is room for: more room is made."""
    driver.add_gpu("GPU-a", accounting=True)
    with driver._changed() as lines:
        lines.extend(["process", "GPU-a", str(pid), "C", "0", "-", "-", "0"] for pid in range(1, 1101))
        lines.extend(["live", "GPU-a", str(pid), "1790000000000000", "0", "0", "0"] for pid in range(1, 4102))
    device = reader.look()["devices"]["GPU-a"]
    assert device["listed"] == 4101
    assert len([one for one in device["living"] if one["kinds"] == "C"]) == 1100


def test_a_reused_pid_shows_its_old_row_and_a_context_of_unknown_start(driver: Any, reader: Reader) -> None:
    """Listed twice, answered once: the old row, and a living context that claims neither."""
    driver.add_gpu("GPU-a", accounting=True)
    driver.add_finished(7, "GPU-a", started_at_us=driver_now() - 9_000_000, context_ms=1000)
    driver.start(7, "GPU-a", 300)
    device = reader.look()["devices"]["GPU-a"]
    assert (device["listed"], len(device["finished"])) == (2, 1)
    (context,) = device["living"]
    assert "reason" in context["started_at_us"]
    assert "reason" in context["accounted"]
    driver.finish(7, "GPU-a")
    (row,) = reader.look()["devices"]["GPU-a"]["finished"]
    assert row["context_ms"] < 1000


def test_a_listed_pid_whose_row_is_gone_is_no_error(driver: Any, reader: Reader) -> None:
    """NotFound between list and call."""
    driver.add_gpu("GPU-a", accounting=True)
    driver.list_without_row(99, "GPU-a")
    reading = reader.look()
    assert reading["problems"] == []
    assert (reading["devices"]["GPU-a"]["listed"], reading["devices"]["GPU-a"]["finished"]) == (1, [])


def test_an_empty_utilisation_buffer_raises_success_in_the_binding(driver: Any, reader: Reader) -> None:
    """NVMLError(0): nobody was busy."""
    driver.add_gpu("GPU-a")
    driver.start(7, "GPU-a")
    driver.fail("nvmlDeviceGetProcessUtilization", 0)
    assert reader.look()["devices"]["GPU-a"]["living"][0]["busy_percent"] == 0


def test_garbage_utilisation_is_told(driver: Any, reader: Reader) -> None:
    """A sample of 37100 % for pid 0 is left out with a problem."""
    driver.add_gpu("GPU-a")
    driver.start(7, "GPU-a")
    driver.add_sample(0, "GPU-a", percent=37100, stamp_us=driver_now() + 1_000_000)
    reading = reader.look()
    assert [problem["code"] for problem in reading["problems"]] == ["bad-utilisation"]
    assert reading["devices"]["GPU-a"]["living"][0]["busy_percent"] == 0


def test_old_drivers_are_read_by_version_2_of_the_lists(driver: Any, reader: Reader) -> None:
    """Without version 3 the binding raises NVMLLibraryMismatchError; version 2 has the same record."""
    driver.add_gpu("GPU-a")
    driver.start(7, "GPU-a", 300)
    for kind in ("Compute", "Graphics", "MPSCompute"):
        driver.fail(f"nvmlDeviceGet{kind}RunningProcesses_v3", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    reading = reader.look()
    assert reading["problems"] == []
    assert reading["devices"]["GPU-a"]["living"][0]["memory_mib"] == 300


def test_scrambled_lists_are_read_right(fakes: ModuleType, libraries: Path, tmp_path: Path) -> None:
    """535.43 to 535.86 write longer records in version 3; all processes are read, with a problem told."""
    driver = fakes.FakeDriver(tmp_path / "state", libraries, driver_version="535.54.03", root=True)
    driver.add_gpu("GPU-a")
    for pid in range(11, 17):
        driver.start(pid, "GPU-a", pid)
    reader = Reader(driver)
    reading = reader.look()
    held = [(one["pid"], one["memory_mib"]) for one in reading["devices"]["GPU-a"]["living"]]
    assert held == [(pid, pid) for pid in range(11, 17)]
    assert [problem["code"] for problem in reading["problems"]] == ["process-list-scrambled"]
    scrambled = reader.ask(
        "binding [one.pid for one in pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0))]"
    )
    assert scrambled != list(range(11, 17))
    reader.child.communicate()


def test_mig_instances_come_through_c(driver: Any, reader: Reader) -> None:
    """Instances with profile and memory, processes on them, frozen rows under a mode that is off."""
    driver.add_gpu("GPU-a", product="NVIDIA A100-SXM4-40GB", memory_mib=40536, accounting=True)
    driver.add_finished(5, "GPU-a", started_at_us=driver_now() - 9_000_000, context_ms=8110)
    driver.set_mig("GPU-a", True)
    driver.add_slice("GPU-a", "MIG-1", profile="3g.20gb", memory_mib=20096, gpu_instance=1, compute_instance=0)
    driver.add_slice("GPU-a", "MIG-2", profile="1g.5gb", memory_mib=4864, gpu_instance=7, compute_instance=0)
    driver.start(11, "GPU-a", 300, instance=(1, 0))
    driver.start(12, "GPU-a", 20, instance=(7, 0))
    device = reader.look()["devices"]["GPU-a"]
    assert (device["accounting"], device["mig"], len(device["finished"])) == ("unsupported", True, 1)
    assert [(one["uuid"], one["profile"], one["memory_mib"]) for one in device["slices"]] == [
        ("MIG-1", "3g.20gb", 20096),
        ("MIG-2", "1g.5gb", 4864),
    ]
    assert [(one["pid"], one["device"]) for one in device["living"]] == [(11, "MIG-1"), (12, "MIG-2")]
    assert reader.ask("enable GPU-a")["code"] == "accounting-unsupported"


def test_mig_without_root_is_read_instance_by_instance(fakes: ModuleType, libraries: Path, tmp_path: Path) -> None:
    """The GPU's own list is for root; who is not root asks each instance. Profiles come from sizes as well."""
    driver = fakes.FakeDriver(tmp_path / "state", libraries, root=False)
    driver.add_gpu("GPU-a", product="NVIDIA A100-SXM4-40GB", memory_mib=40536, mig=True)
    driver.add_slice("GPU-a", "MIG-1", profile="1c.3g.20gb", memory_mib=20096, gpu_instance=1, compute_instance=0)
    driver.add_slice("GPU-a", "MIG-2", profile="1c.3g.20gb", memory_mib=20096, gpu_instance=1, compute_instance=1)
    driver.start(11, "GPU-a", 300, instance=(1, 1))
    driver.fail("nvmlDeviceGetName", pynvml.NVML_ERROR_NOT_SUPPORTED, gpu="MIG-1")
    reader = Reader(driver)
    device = reader.look()["devices"]["GPU-a"]
    assert [(one["pid"], one["device"]) for one in device["living"]] == [(11, "MIG-2")]
    assert [one["profile"] for one in device["slices"]] == ["", "1c.3g.20gb"]
    driver.fail("nvmlDeviceGetName", None, gpu="MIG-1")
    assert reader.ask("enable GPU-a")["code"] == "needs-root"
    reader.child.communicate()


def test_enabling_and_a_reload_are_seen_at_the_next_look(driver: Any, reader: Reader) -> None:
    """Enabled through the library, then lost with the driver's reload, then enabled again."""
    driver.add_gpu("GPU-a")
    driver.start(7, "GPU-a")
    assert reader.look()["devices"]["GPU-a"]["accounting"] == "disabled"
    assert reader.ask("enable GPU-a") is None
    assert driver.accounting("GPU-a") is True
    device = reader.look()["devices"]["GPU-a"]
    assert (device["accounting"], device["living"][0]["accounted"]) == ("enabled", False)
    driver.reload()
    assert reader.look()["devices"]["GPU-a"]["accounting"] == "disabled"
    assert reader.ask("enable GPU-a") is None
    assert reader.look()["devices"]["GPU-a"]["accounting"] == "enabled"


def test_a_driver_that_is_unloaded_is_unavailable_until_it_is_back(driver: Any, reader: Reader) -> None:
    """No state file, no driver: a sentence and a hint, and the same child reads on once it is there again."""
    driver.add_gpu("GPU-a")
    assert list(reader.look()["devices"]) == ["GPU-a"]
    driver.unload()
    for _ in range(2):
        assert reader.look()["code"] == "driver-unreachable"
    driver.add_gpu("GPU-b")
    assert list(reader.look()["devices"]) == ["GPU-b"]


def test_a_device_off_the_bus_is_left_out(driver: Any, reader: Reader) -> None:
    """GPU_IS_LOST on one of two."""
    driver.add_gpu("GPU-a")
    driver.add_gpu("GPU-b")
    reader.look()
    driver.fail("nvmlDeviceGetComputeRunningProcesses_v3", pynvml.NVML_ERROR_GPU_IS_LOST, gpu="GPU-a")
    reading = reader.look()
    assert list(reading["devices"]) == ["GPU-b"]
    assert reading["problems"][0]["code"] == "device-lost"


def test_no_library_on_the_machine_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libnvidia-ml.so.1: unreachable, exit status 5, and a hint."""

    def not_found(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", not_found)
    with pytest.raises(Unavailable, match="not on this machine") as caught:
        load_binding()
    assert (caught.value.code, caught.value.exit_status) == ("driver-unreachable", 5)
    assert "install the NVIDIA driver" in caught.value.hint


def test_a_driver_that_is_not_loaded_says_what_to_do(driver: Any, reader: Reader) -> None:
    """The library without its kernel module: unreachable, in other words."""
    driver.unload()
    answer = reader.look()
    assert answer["code"] == "driver-unreachable"
    assert "not loaded" in answer["message"]
