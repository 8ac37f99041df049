"""The real binding, its costly calls made directly: the same functions of the same library, without the bugs.

Out: ``nvidia-ml-py`` (``pynvml``), started, as an object with its function names. The accounting and process
lists are read many times a second, and ``pynvml`` spends most of that time on turning structures into objects
field by field. Here they fill buffers that are kept, in the layouts ``pynvml`` declares, and are unpacked
whole. Every other name is ``pynvml``'s own.
"""

# ruff: noqa: N802, N815 - calls and fields bear NVIDIA's names

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import pynvml

from gpuledger.sources.nvml_accounting import RawStats
from gpuledger.sources.nvml_binding import Binding, Handle, initialise

PROCESS_LAYOUT = struct.Struct("=I4xQII")
"""nvmlProcessInfo_v2_t and _v3_t (nvml.h): pid, bytes, GPU instance, compute instance."""
STATS_LAYOUT = struct.Struct("=IIQQQI")
"""nvmlAccountingStats_t up to ``isRunning`` (nvml.h, unchanged since R319)."""

PROCESS_ROOM = 1024
"""Entries asked for at once; the driver gives 950 at most (FACTS A.1.2), and more room is made if it has more."""
PID_ROOM = 4000
"""The driver's own figure for its accounting list; more room is made if it has more."""


class ProcessInfo(NamedTuple):
    """One entry of a process list, by the binding's names; memory may be the sentinel 2^64 - 1."""

    pid: int
    usedGpuMemory: int
    gpuInstanceId: int
    computeInstanceId: int


class LeanBinding:
    """``pynvml`` with its accounting and process lists read directly. For one thread.

    Must be made after ``nvmlInit``: it opens the library that ``pynvml`` has found.
    """

    def __init__(self) -> None:
        # An own CDLL of the same library: its function objects are not the ones that pynvml calls.
        self._library = ctypes.CDLL("libnvidia-ml.so.1")
        self._functions: dict[str, Callable[..., int]] = {}
        self._count = ctypes.c_uint()
        self._count_reference = ctypes.byref(self._count)
        self._stats = pynvml.c_nvmlAccountingStats_t()
        self._stats_reference = ctypes.byref(self._stats)
        self._pids = (ctypes.c_uint * PID_ROOM)()
        self._processes = ctypes.create_string_buffer(PROCESS_ROOM * PROCESS_LAYOUT.size)

    def __getattr__(self, name: str) -> Any:
        value = getattr(pynvml, name)
        setattr(self, name, value)  # found on the object itself from now on
        return value

    def nvmlDeviceGetAccountingStats(self, handle: Handle, pid: int) -> RawStats:
        """As the binding's, but a row without peak memory is a row: the binding raises TypeError there.

        It assigns None to the u64 field of its structure where the driver writes the sentinel (WDDM).
        """
        number = self._function("nvmlDeviceGetAccountingStats")(handle, pid, self._stats_reference)
        if number:
            raise pynvml.NVMLError(number)
        return RawStats._make(STATS_LAYOUT.unpack_from(self._stats))

    def nvmlDeviceGetAccountingPids(self, handle: Handle) -> list[int]:
        """As the binding's, without its question for the buffer's size before each list."""
        function = self._function("nvmlDeviceGetAccountingPids")
        while True:
            self._count.value = len(self._pids)
            number = function(handle, self._count_reference, self._pids)
            count = self._count.value
            if not number:
                pids: list[int] = self._pids[:count]
                return pids
            if number != pynvml.NVML_ERROR_INSUFFICIENT_SIZE or count <= len(self._pids):
                raise pynvml.NVMLError(number)
            self._pids = (ctypes.c_uint * (2 * count))()

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Handle) -> list[ProcessInfo]:
        return self._listed("nvmlDeviceGetComputeRunningProcesses_v3", handle)

    def nvmlDeviceGetComputeRunningProcesses_v2(self, handle: Handle) -> list[ProcessInfo]:
        return self._listed("nvmlDeviceGetComputeRunningProcesses_v2", handle)

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: Handle) -> list[ProcessInfo]:
        return self._listed("nvmlDeviceGetGraphicsRunningProcesses_v3", handle)

    def nvmlDeviceGetGraphicsRunningProcesses_v2(self, handle: Handle) -> list[ProcessInfo]:
        return self._listed("nvmlDeviceGetGraphicsRunningProcesses_v2", handle)

    def nvmlDeviceGetMPSComputeRunningProcesses(self, handle: Handle) -> list[ProcessInfo]:
        return self._listed("nvmlDeviceGetMPSComputeRunningProcesses_v3", handle)

    def nvmlDeviceGetMPSComputeRunningProcesses_v2(self, handle: Handle) -> list[ProcessInfo]:
        return self._listed("nvmlDeviceGetMPSComputeRunningProcesses_v2", handle)

    def _listed(self, name: str, handle: Handle) -> list[ProcessInfo]:
        function = self._function(name)
        while True:
            room = len(self._processes) // PROCESS_LAYOUT.size
            self._count.value = room
            number = function(handle, self._count_reference, self._processes)
            count = self._count.value
            if not number:
                if not count:
                    return []
                whole = memoryview(self._processes)[: count * PROCESS_LAYOUT.size]
                return [ProcessInfo._make(fields) for fields in PROCESS_LAYOUT.iter_unpack(whole)]
            if number != pynvml.NVML_ERROR_INSUFFICIENT_SIZE or count <= room:
                raise pynvml.NVMLError(number)
            self._processes = ctypes.create_string_buffer(2 * count * PROCESS_LAYOUT.size)

    def _function(self, name: str) -> Callable[..., int]:
        function = self._functions.get(name)
        if function is None:
            try:
                function = self._functions[name] = getattr(self._library, name)
            except AttributeError:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND) from None
        return function


def load_binding() -> Binding:
    """The real binding, its library found and started.

    Raises:
        Unavailable: as :func:`~gpuledger.sources.nvml_binding.initialise`; without a driver
            ``driver-unreachable``.
    """
    initialise(cast("Binding", pynvml))
    return cast("Binding", LeanBinding())
