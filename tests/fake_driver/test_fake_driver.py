"""The fake driver's two libraries agree: what a CUDA job does by ctypes is what the accounting list shows."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

JOB = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
count, device, context, memory = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
def call(name, *arguments):
    number = getattr(cuda, name)(*arguments)
    assert number == 0, (name, number)
call("cuInit", 0)
call("cuDeviceGetCount", ctypes.byref(count))
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(100 * 1024 * 1024))
call("cuMemsetD8_v2", memory, ctypes.c_ubyte(7), ctypes.c_size_t(1024))
call("cuCtxSynchronize")
print(count.value, flush=True)
sys.stdin.readline()
if sys.argv[1] == "tidy":
    call("cuMemFree_v2", memory)
    call("cuCtxDestroy_v2", context)
"""

LIST = """
import pynvml
pynvml.nvmlInit()
gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
print(pynvml.nvmlDeviceGetAccountingPids(gpu))
"""


@pytest.fixture(scope="module")
def fakes() -> ModuleType:
    """The module beside this file."""
    specification = importlib.util.spec_from_file_location(
        "gpuledger_fake_driver", Path(__file__).with_name("fake_driver.py")
    )
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def libraries(fakes: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both shared libraries, compiled once."""
    built: Path = fakes.build(tmp_path_factory.mktemp("libraries"))
    return built


@pytest.fixture
def driver(fakes: ModuleType, libraries: Path, tmp_path: Path) -> Any:
    """One accounted GPU."""
    driver = fakes.FakeDriver(tmp_path / "state", libraries, root=True)
    driver.add_gpu("GPU-a", accounting=True)
    return driver


def run(driver: Any, code: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """A Python process that finds the fake libraries."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **driver.environment(), **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def kinds(driver: Any, kind: str) -> list[list[str]]:
    """Lines of the state of one kind."""
    return [line for line in driver.lines() if line[0] == kind]


@pytest.mark.parametrize("leaving", ["tidy", "untidy"])
def test_a_cuda_job_is_living_and_then_settled(driver: Any, leaving: str) -> None:
    """A context opens the device, memory shows while it is held, and the end settles a row, destroyed or not."""
    job = run(driver, JOB, leaving)
    assert job.stdout is not None
    assert job.stdout.readline() == "1\n"
    (process,) = kinds(driver, "process")
    assert process[2:5] == [str(job.pid), "C", str(284 * 1024 * 1024)]
    assert len(kinds(driver, "live")) == 1
    job.communicate("go\n")
    assert job.returncode == 0
    assert kinds(driver, "process") == kinds(driver, "live") == []
    (row,) = kinds(driver, "dead")
    assert (row[2], row[5]) == (str(job.pid), str(284 * 1024 * 1024))


def test_a_killed_job_is_settled_by_who_looks_next(driver: Any) -> None:
    """No destructor runs under SIGKILL; the kernel closes the device all the same."""
    job = run(driver, JOB, "untidy")
    assert job.stdout is not None
    job.stdout.readline()
    job.send_signal(signal.SIGKILL)
    job.communicate()
    listing, _ = run(driver, LIST).communicate()
    assert listing.strip() == f"[{job.pid}]"
    assert kinds(driver, "process") == []
    assert len(kinds(driver, "dead")) == 1


def test_visible_devices_choose_the_gpu(driver: Any) -> None:
    """By index or UUID, as CUDA does."""
    driver.add_gpu("GPU-b")
    job = run(driver, JOB, "tidy", CUDA_VISIBLE_DEVICES="GPU-b")
    assert job.stdout is not None
    assert job.stdout.readline() == "1\n"
    assert kinds(driver, "process")[0][1] == "GPU-b"
    job.communicate("go\n")
    assert kinds(driver, "dead") == []


def test_changes_from_both_sides_do_not_lose_each_other(driver: Any) -> None:
    """Twelve jobs at once and this process all change the one file."""
    jobs = [run(driver, JOB, "tidy") for _ in range(12)]
    for pid in range(1, 41):
        driver.start(pid, "GPU-a")
        driver.finish(pid, "GPU-a")
    for job in jobs:
        job.communicate("go\n")
    ended = {int(line[2]) for line in kinds(driver, "dead")}
    assert ended == {*range(1, 41), *(job.pid for job in jobs)}
    assert kinds(driver, "process") == kinds(driver, "live") == []


def test_a_broken_state_file_is_a_bug_of_the_test(driver: Any) -> None:
    """A line that nobody understands stops the process, loudly."""
    with driver.state.open("a") as state:
        state.write("gpu\tGPU-b\n")
    looking = subprocess.run(
        [sys.executable, "-c", LIST],
        env={**os.environ, **driver.environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert looking.returncode == -signal.SIGABRT
    assert "cannot understand line" in looking.stderr


def test_libraries_are_built_once(fakes: ModuleType, libraries: Path) -> None:
    """A second build of the same sources leaves the files alone."""
    built = fakes.build(libraries)
    before = [(path.name, path.stat().st_mtime_ns) for path in sorted(built.iterdir())]
    fakes.build(libraries)
    assert before == [(path.name, path.stat().st_mtime_ns) for path in sorted(built.iterdir())]
    assert [name for name, _ in before] == ["libcuda.so.1", "libnvidia-ml.so.1"]
