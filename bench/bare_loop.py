"""The measure of the agent: a bare nvidia-ml-py loop that makes the very calls that one look of the agent makes.

``python bare_loop.py RATE SECONDS``. It forgets what it reads. :func:`look` follows ``sources/nvml.py`` and
``sources/nvml_accounting.py``: which calls, and how far back the accounting list is read.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

import pynvml

FULL_LOOKS = 60
"""Every so many looks the agent reads names, sizes and all rows anew; so does this."""


def look(binding: Any, handles: list[Any], number: int) -> list[Any]:
    """One look: look ``number`` at the devices of ``handles``; read anew at look 0. Returns the handles."""
    full = number % FULL_LOOKS == 0
    count = binding.nvmlDeviceGetCount()
    if full:
        binding.nvmlSystemGetDriverVersion()
        handles = [binding.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        for handle in handles:
            binding.nvmlDeviceGetUUID(handle)
            binding.nvmlDeviceGetMemoryInfo(handle)
            binding.nvmlDeviceGetName(handle)
            binding.nvmlDeviceGetPciInfo(handle)
    for handle in handles:
        binding.nvmlDeviceGetAccountingMode(handle)
        binding.nvmlDeviceGetMigMode(handle)
        for pid in reversed(binding.nvmlDeviceGetAccountingPids(handle)):
            stats = binding.nvmlDeviceGetAccountingStats(handle, pid)
            if not stats.isRunning and not full:
                break
        binding.nvmlDeviceGetComputeRunningProcesses(handle)
        binding.nvmlDeviceGetGraphicsRunningProcesses(handle)
        binding.nvmlDeviceGetMPSComputeRunningProcesses(handle)
        with contextlib.suppress(pynvml.NVMLError):  # no sample is an error there
            binding.nvmlDeviceGetProcessUtilization(handle, time.time_ns() // 1000 - 1_000_000)
    return handles


def main(rate: float, seconds: float) -> None:
    """Look so many times a second, so long."""
    pynvml.nvmlInit()
    handles: list[Any] = []
    due = time.monotonic()
    for number in range(int(rate * seconds)):
        handles = look(pynvml, handles, number)
        due += 1 / rate
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]))
