"""``make gpu-check`` itself, against the fake driver: it must be right before a GPU is rented for it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def fakes() -> ModuleType:
    """The fake driver's Python side."""
    path = ROOT / "tests" / "fake_driver" / "fake_driver.py"
    specification = importlib.util.spec_from_file_location("gpuledger_fake_driver", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def driver(fakes: ModuleType, tmp_path: Path) -> Any:
    """Two GPUs, accounting on with one of them only."""
    driver = fakes.FakeDriver(tmp_path / "state", fakes.build(tmp_path / "libraries"), root=True)
    driver.add_gpu("GPU-11111111-2222-4333-8444-555555555555")
    driver.add_gpu("GPU-66666666-7777-4888-8999-000000000000", accounting=True)
    return driver


def check(**variables: str) -> subprocess.CompletedProcess[str]:
    """Run it as the Makefile does."""
    return subprocess.run(
        [sys.executable, "-m", "tests.gpu.gpu_check"],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_check_holds_against_the_fake_driver(driver: Any, tmp_path: Path) -> None:
    """Four CUDA jobs through the fake libcuda are named and settled, and each device's mode is as before."""
    out = tmp_path / "out"
    out.mkdir()
    done = check(**driver.environment(), OUT=str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 comparisons failed" in done.stdout
    for job in ("first_job", "second_job", "third_job", "resident_job"):
        assert f"ok   {job} is named" in done.stdout
        assert f"ok   {job} context time" in done.stdout
    assert driver.accounting("GPU-11111111-2222-4333-8444-555555555555") is False
    assert driver.accounting("GPU-66666666-7777-4888-8999-000000000000") is True
    assert (out / "gpu_check.txt").read_text() == done.stdout


def test_a_difference_is_told_and_the_mode_restored(driver: Any) -> None:
    """Where the driver refuses accounting nothing is settled: the check says so and exits with 1."""
    driver.fail("nvmlDeviceSetAccountingMode", 4)
    done = check(**driver.environment())
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL accounting can be enabled" in done.stdout


def test_without_a_driver_it_says_so(tmp_path: Path) -> None:
    """No libnvidia-ml.so.1 is no failed check: there is nothing to check, and the status is its own."""
    done = check(LD_LIBRARY_PATH=str(tmp_path))
    if done.returncode == 0:
        pytest.skip("this machine has a GPU")
    assert done.returncode == 5
    assert "there is no NVIDIA driver to ask here" in done.stderr
    assert "Traceback" not in done.stderr
