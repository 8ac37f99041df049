"""A driver in memory, behind the same seam as NVIDIA's library: for ``demo`` and for scenario tables.

In: what processes do (:meth:`SimulatedDriver.start`, :meth:`~SimulatedDriver.finish`,
:meth:`~SimulatedDriver.reload`). Out: the binding's answers. It keeps the real driver's habits, also the
awkward ones (FACTS A.1.2): a ring of 128 dead rows with one row per pid, the dead found before the living,
contexts opened while accounting is off never listed, stale rows after it is switched off.
"""

# ruff: noqa: N802, N803 - the calls and their arguments bear NVIDIA's names

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pynvml

from gpuledger.sources.simulated_devices import OpenContext, SimulatedGpu, SimulatedInstance

MIB = 1024 * 1024


class SimulatedDriver:
    """NVML in memory. Its ``nvml...`` methods are the binding's; the others are what tests and ``demo`` do to it.

    Safe to use from several threads.

    Args:
        now_us: wall clock in microseconds UTC; stamps what is not given a time.
        driver_version: what the driver calls itself.
        root: whether the caller may change the accounting mode.
    """

    def __init__(self, now_us: Callable[[], int], *, driver_version: str = "610.43.02", root: bool = True) -> None:
        self._now_us = now_us
        self._driver_version = driver_version
        self._root = root
        self._gpus: list[SimulatedGpu] = []
        self._failures: dict[tuple[str, str], tuple[int, int]] = {}
        self._lock = threading.RLock()

    # What happens to the driver.

    def add_gpu(
        self, uuid: str, *, product: str = "NVIDIA H100 80GB HBM3", memory_mib: int = 81559, accounting: bool = False
    ) -> None:
        """Plug in a device, MIG off."""
        with self._lock:
            self._gpus.append(SimulatedGpu(uuid=uuid, product=product, memory_mib=memory_mib, accounting=accounting))

    def remove_gpu(self, uuid: str) -> None:
        """Take a device out of the driver's list."""
        with self._lock:
            self._gpus.remove(self._gpu(uuid))

    def add_instance(
        self, gpu: str, uuid: str, *, profile: str, memory_mib: int, gpu_instance: int, compute_instance: int = 0
    ) -> None:
        """Create a MIG instance; switches MIG on, and with it accounting off, as the driver does."""
        with self._lock:
            device = self._gpu(gpu)
            device.mig = True
            device.disable()
            device.instances.append(
                SimulatedInstance(
                    uuid=uuid,
                    name=f"{device.product} MIG {profile}",
                    memory_mib=memory_mib,
                    gpu_instance=gpu_instance,
                    compute_instance=compute_instance,
                )
            )

    def remove_instance(self, gpu: str, uuid: str) -> None:
        """Destroy a MIG instance."""
        with self._lock:
            device = self._gpu(gpu)
            device.instances = [one for one in device.instances if one.uuid != uuid]

    def start(self, pid: int, device: str, memory_mib: int, at_us: int | None = None, kinds: str = "C") -> None:
        """A process opens a device (GPU or MIG instance UUID). Opening an open one changes nothing but memory.

        Args:
            pid: process id.
            device: UUID.
            memory_mib: memory it holds.
            at_us: when; now if not given.
            kinds: the lists it shows up in, of C, G and M; empty: only the accounting list knows it.
        """
        with self._lock:
            gpu, instance = self._place(device)
            if pid in gpu.living:
                self.hold(pid, device, memory_mib)
                return
            context = OpenContext(
                pid=pid,
                started_at_us=self._now_us() if at_us is None else at_us,
                memory_mib=memory_mib,
                peak_mib=memory_mib,
                kinds=kinds,
                accounted=gpu.accounting,
            )
            if instance:
                context.gpu_instance = instance.gpu_instance
                context.compute_instance = instance.compute_instance
            gpu.living[pid] = context

    def hold(self, pid: int, device: str, memory_mib: int) -> None:
        """A process now holds this much memory."""
        with self._lock:
            context = self._context(pid, device)
            context.memory_mib = memory_mib
            context.peak_mib = max(context.peak_mib, memory_mib)

    def work(self, pid: int, device: str, percent: int) -> None:
        """From now on a process is seen at this SM percent; 0: the driver samples it no more."""
        with self._lock:
            self._context(pid, device).percent = percent

    def finish(self, pid: int, device: str, at_us: int | None = None) -> None:
        """A process closes a device: settled if it was accounted, else gone without a trace."""
        with self._lock:
            self._place(device)[0].close(pid, self._now_us() if at_us is None else at_us)

    def reload(self) -> None:
        """The driver is loaded anew: mode off, rows gone. Living processes go on, unaccounted."""
        with self._lock:
            for gpu in self._gpus:
                gpu.disable()
                gpu.dead.clear()

    def fail(self, call: str, number: int, *, device: str = "", times: int = 0) -> None:
        """From now on a call raises an error.

        Args:
            call: name of the binding's function.
            number: NVML error number; 0 mends the call.
            device: UUID it fails for; empty: for all.
            times: how often; 0: until mended.
        """
        with self._lock:
            if number:
                self._failures[call, device] = (number, times)
            else:
                self._failures.pop((call, device), None)

    # The binding.

    def nvmlInit(self) -> None:
        self._fail_if_told("nvmlInit")

    def nvmlShutdown(self) -> None:
        self._fail_if_told("nvmlShutdown")

    def nvmlDeviceGetMinorNumber(self, handle: SimulatedGpu) -> int:
        self._fail_if_told("nvmlDeviceGetMinorNumber", handle.uuid)
        return self._gpus.index(handle)

    def nvmlSystemGetDriverVersion(self) -> str:
        self._fail_if_told("nvmlSystemGetDriverVersion")
        return self._driver_version

    def nvmlDeviceGetCount(self) -> int:
        self._fail_if_told("nvmlDeviceGetCount")
        return len(self._gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> SimulatedGpu:
        with self._lock:
            if index >= len(self._gpus):
                raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
            self._fail_if_told("nvmlDeviceGetHandleByIndex", self._gpus[index].uuid)
            return self._gpus[index]

    def nvmlDeviceGetUUID(self, handle: SimulatedGpu | SimulatedInstance) -> str:
        self._fail_if_told("nvmlDeviceGetUUID", handle.uuid)
        return handle.uuid

    def nvmlDeviceGetName(self, handle: SimulatedGpu | SimulatedInstance) -> str:
        self._fail_if_told("nvmlDeviceGetName", handle.uuid)
        return handle.product if isinstance(handle, SimulatedGpu) else handle.name

    def nvmlDeviceGetMemoryInfo(self, handle: SimulatedGpu | SimulatedInstance) -> SimpleNamespace:
        self._fail_if_told("nvmlDeviceGetMemoryInfo", handle.uuid)
        return SimpleNamespace(total=handle.memory_mib * MIB)

    def nvmlDeviceGetPciInfo(self, handle: SimulatedGpu) -> SimpleNamespace:
        self._fail_if_told("nvmlDeviceGetPciInfo", handle.uuid)
        return SimpleNamespace(busId=f"00000000:{self._gpus.index(handle) + 1:02X}:00.0")

    def nvmlDeviceGetAccountingMode(self, handle: SimulatedGpu) -> int:
        self._fail_if_told("nvmlDeviceGetAccountingMode", handle.uuid)
        return int(handle.accounting)

    def nvmlDeviceSetAccountingMode(self, handle: SimulatedGpu, mode: int) -> None:
        """Switching on lists only contexts opened from then on; switching off clears only the running rows."""
        with self._lock:
            self._fail_if_told("nvmlDeviceSetAccountingMode", handle.uuid)
            if not self._root:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)
            if handle.mig:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            if mode:
                handle.accounting = True
            else:
                handle.disable()

    def nvmlDeviceGetAccountingPids(self, handle: SimulatedGpu) -> list[int]:
        with self._lock:
            self._fail_if_told("nvmlDeviceGetAccountingPids", handle.uuid)
            return handle.listed()

    def nvmlDeviceGetAccountingStats(self, handle: SimulatedGpu, pid: int) -> SimpleNamespace:
        with self._lock:
            self._fail_if_told("nvmlDeviceGetAccountingStats", handle.uuid)
            dead = handle.dead.get(pid)
            if dead:  # looked up before the living, so that it hides a second stint
                return _stats(0, dead.percent, dead.peak_mib, dead.context_ms, dead.started_at_us)
            context = handle.living.get(pid)
            if context is None or not context.accounted:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
            return _stats(1, context.percent, context.peak_mib, 0, context.started_at_us)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: SimulatedGpu | SimulatedInstance) -> list[SimpleNamespace]:
        return self._listed("nvmlDeviceGetComputeRunningProcesses", handle, "C")

    def nvmlDeviceGetComputeRunningProcesses_v2(
        self, handle: SimulatedGpu | SimulatedInstance
    ) -> list[SimpleNamespace]:
        return self._listed("nvmlDeviceGetComputeRunningProcesses_v2", handle, "C")

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: SimulatedGpu | SimulatedInstance) -> list[SimpleNamespace]:
        return self._listed("nvmlDeviceGetGraphicsRunningProcesses", handle, "G")

    def nvmlDeviceGetGraphicsRunningProcesses_v2(
        self, handle: SimulatedGpu | SimulatedInstance
    ) -> list[SimpleNamespace]:
        return self._listed("nvmlDeviceGetGraphicsRunningProcesses_v2", handle, "G")

    def nvmlDeviceGetMPSComputeRunningProcesses(
        self, handle: SimulatedGpu | SimulatedInstance
    ) -> list[SimpleNamespace]:
        return self._listed("nvmlDeviceGetMPSComputeRunningProcesses", handle, "M")

    def nvmlDeviceGetMPSComputeRunningProcesses_v2(
        self, handle: SimulatedGpu | SimulatedInstance
    ) -> list[SimpleNamespace]:
        return self._listed("nvmlDeviceGetMPSComputeRunningProcesses_v2", handle, "M")

    def nvmlDeviceGetProcessUtilization(self, handle: SimulatedGpu, timeStamp: int) -> list[SimpleNamespace]:
        with self._lock:
            self._fail_if_told("nvmlDeviceGetProcessUtilization", handle.uuid)
            if handle.mig:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            now_us = self._now_us()
            busy = [one for one in handle.living.values() if one.percent and now_us > timeStamp]
            if not busy:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
            return [SimpleNamespace(pid=one.pid, timeStamp=now_us, smUtil=one.percent) for one in busy]

    def nvmlDeviceGetMigMode(self, device: SimulatedGpu) -> Sequence[int]:
        self._fail_if_told("nvmlDeviceGetMigMode", device.uuid)
        return [int(device.mig), int(device.mig)]

    def nvmlDeviceGetMaxMigDeviceCount(self, device: SimulatedGpu) -> int:
        self._fail_if_told("nvmlDeviceGetMaxMigDeviceCount", device.uuid)
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: SimulatedGpu, index: int) -> SimulatedInstance:
        with self._lock:
            self._fail_if_told("nvmlDeviceGetMigDeviceHandleByIndex", device.uuid)
            if index >= len(device.instances):
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
            return device.instances[index]

    def nvmlDeviceGetGpuInstanceId(self, device: SimulatedInstance) -> int:
        return device.gpu_instance

    def nvmlDeviceGetComputeInstanceId(self, device: SimulatedInstance) -> int:
        return device.compute_instance

    def nvmlDeviceGetAttributes(self, device: SimulatedInstance) -> Any:
        self._fail_if_told("nvmlDeviceGetAttributes", device.uuid)
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def _listed(self, call: str, handle: SimulatedGpu | SimulatedInstance, kind: str) -> list[SimpleNamespace]:
        with self._lock:
            self._fail_if_told(call, handle.uuid)
            gpu, instance = self._place(handle.uuid)
            return [
                SimpleNamespace(
                    pid=one.pid,
                    usedGpuMemory=one.memory_mib * MIB,
                    gpuInstanceId=one.gpu_instance,
                    computeInstanceId=one.compute_instance,
                )
                for one in gpu.living.values()
                if kind in one.kinds
                and (
                    instance is None
                    or (one.gpu_instance, one.compute_instance) == (instance.gpu_instance, instance.compute_instance)
                )
            ]

    def _gpu(self, uuid: str) -> SimulatedGpu:
        return next(gpu for gpu in self._gpus if gpu.uuid == uuid)

    def _place(self, uuid: str) -> tuple[SimulatedGpu, SimulatedInstance | None]:
        for gpu in self._gpus:
            if gpu.uuid == uuid:
                return gpu, None
            for instance in gpu.instances:
                if instance.uuid == uuid:
                    return gpu, instance
        raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)

    def _context(self, pid: int, device: str) -> OpenContext:
        return self._place(device)[0].living[pid]

    def _fail_if_told(self, call: str, device: str = "") -> None:
        with self._lock:
            for key in ((call, device), (call, "")):
                if key not in self._failures:
                    continue
                number, times = self._failures[key]
                if times == 1:
                    del self._failures[key]
                elif times:
                    self._failures[key] = (number, times - 1)
                raise pynvml.NVMLError(number)


def _stats(running: int, percent: int, peak_mib: int, context_ms: int, started_at_us: int) -> SimpleNamespace:
    return SimpleNamespace(
        isRunning=running,
        gpuUtilization=percent,
        memoryUtilization=0,
        maxMemoryUsage=peak_mib * MIB,
        time=context_ms,
        startTime=started_at_us,
    )
