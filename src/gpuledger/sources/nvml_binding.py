"""The seam to NVIDIA's library: the calls used of ``nvidia-ml-py``, and what each of its errors means here.

In: the ``pynvml`` module, or any object with the same function names (the simulated driver, a test's own).
Out: that object, initialised; foreign errors turned into gpuledger's at this edge.
"""

# ruff: noqa: N802, N803 - the calls and their arguments bear NVIDIA's names

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import pynvml

from gpuledger.errors import Unavailable

Handle = Any
"""A device as the binding hands it out: opaque."""


class Binding(Protocol):
    """The functions of ``pynvml`` that gpuledger calls, with their names, units and errors.

    Every one may raise ``pynvml.NVMLError``; the meanings are in :data:`MEANINGS`.
    """

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...
    def nvmlSystemGetDriverVersion(self) -> str: ...
    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int) -> Handle: ...
    def nvmlDeviceGetUUID(self, handle: Handle) -> str: ...
    def nvmlDeviceGetName(self, handle: Handle) -> str: ...
    def nvmlDeviceGetMemoryInfo(self, handle: Handle) -> Any: ...
    def nvmlDeviceGetMinorNumber(self, handle: Handle) -> int: ...
    def nvmlDeviceGetPciInfo(self, handle: Handle) -> Any: ...
    def nvmlDeviceGetAccountingMode(self, handle: Handle) -> int: ...
    def nvmlDeviceSetAccountingMode(self, handle: Handle, mode: int) -> None: ...
    def nvmlDeviceGetAccountingPids(self, handle: Handle) -> list[int]: ...
    def nvmlDeviceGetAccountingStats(self, handle: Handle, pid: int) -> Any: ...
    def nvmlDeviceGetComputeRunningProcesses(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetComputeRunningProcesses_v2(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetGraphicsRunningProcesses_v2(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetMPSComputeRunningProcesses(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetMPSComputeRunningProcesses_v2(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetProcessUtilization(self, handle: Handle, timeStamp: int) -> Sequence[Any]: ...
    def nvmlDeviceGetMigMode(self, device: Handle) -> Sequence[int]: ...
    def nvmlDeviceGetMaxMigDeviceCount(self, device: Handle) -> int: ...
    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Handle, index: int) -> Handle: ...
    def nvmlDeviceGetGpuInstanceId(self, device: Handle) -> int: ...
    def nvmlDeviceGetComputeInstanceId(self, device: Handle) -> int: ...
    def nvmlDeviceGetAttributes(self, device: Handle) -> Any: ...


class Trouble(StrEnum):
    """What an NVML error means for the look that met it."""

    UNREACHABLE = "unreachable"
    """The driver as a whole does not answer: the look fails, the next one starts the library anew."""
    LOST = "lost"
    """This device is gone; the others can be read."""
    ABSENT = "absent"
    """This call does not exist here: another one, or a Missing value, stands in."""
    GONE = "gone"
    """What was asked about has ended meanwhile."""
    FORBIDDEN = "forbidden"
    """This user may not ask that."""
    FAILED = "failed"
    """The call failed: this device could not be read at this look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """One NVML error in our words.

    Args:
        trouble: what follows from it.
        code: kebab-case code of the exception, where it becomes one.
        sentence: what happened, as a clause without a full stop.
        hint: what to type next.
    """

    trouble: Trouble
    code: str
    sentence: str
    hint: str = "gpuledger doctor"


def _lost(sentence: str, hint: str = "nvidia-smi -L") -> Meaning:
    return Meaning(trouble=Trouble.LOST, code="device-lost", sentence=sentence, hint=hint)


def _absent(sentence: str) -> Meaning:
    return Meaning(trouble=Trouble.ABSENT, code="driver-unsupported", sentence=sentence)


def _failed(sentence: str, hint: str = "gpuledger doctor") -> Meaning:
    return Meaning(trouble=Trouble.FAILED, code="driver-unreachable", sentence=sentence, hint=hint)


def _unreachable(sentence: str, hint: str = "gpuledger doctor") -> Meaning:
    return Meaning(trouble=Trouble.UNREACHABLE, code="driver-unreachable", sentence=sentence, hint=hint)


def _forbidden(sentence: str, hint: str) -> Meaning:
    return Meaning(trouble=Trouble.FORBIDDEN, code="driver-forbidden", sentence=sentence, hint=hint)


MEANINGS: dict[int, Meaning] = {
    # NVMLError(0), "success", is what the binding raises when a list that it asked the size of is empty.
    pynvml.NVML_SUCCESS: Meaning(trouble=Trouble.GONE, code="driver-unreachable", sentence="the list is empty"),
    pynvml.NVML_ERROR_UNINITIALIZED: _unreachable("the driver's library is not initialised"),
    pynvml.NVML_ERROR_INVALID_ARGUMENT: _failed("the driver's library did not accept an argument"),
    pynvml.NVML_ERROR_NOT_SUPPORTED: _absent("the driver does not support it on this device"),
    pynvml.NVML_ERROR_NO_PERMISSION: _forbidden(
        "this user may not read the device", "run it as root, or give the user access to /dev/nvidia*"
    ),
    pynvml.NVML_ERROR_ALREADY_INITIALIZED: _failed("the driver's library was initialised twice"),
    pynvml.NVML_ERROR_NOT_FOUND: Meaning(
        trouble=Trouble.GONE, code="driver-unreachable", sentence="the driver no longer has it"
    ),
    pynvml.NVML_ERROR_INSUFFICIENT_SIZE: _failed("a list grew while it was read"),
    pynvml.NVML_ERROR_INSUFFICIENT_POWER: _lost("the device's power cable is not attached"),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: _unreachable("the NVIDIA driver is not loaded", "sudo modprobe nvidia"),
    pynvml.NVML_ERROR_TIMEOUT: _failed("the driver did not answer in time", "sudo dmesg | grep -i nvrm"),
    pynvml.NVML_ERROR_IRQ_ISSUE: _lost("the kernel reports an interrupt problem with the device"),
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: _unreachable(
        "libnvidia-ml.so.1, the driver's library, is not on this machine",
        "install the NVIDIA driver, or in a container pass the device through; then: gpuledger doctor",
    ),
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: _absent("the driver is too old to know the call"),
    pynvml.NVML_ERROR_CORRUPTED_INFOROM: _failed("the device's infoROM is corrupted"),
    pynvml.NVML_ERROR_GPU_IS_LOST: _lost("the device has fallen off the bus", "sudo dmesg | grep -i xid"),
    pynvml.NVML_ERROR_RESET_REQUIRED: _lost("the device must be reset before it can be used", "sudo nvidia-smi -r"),
    pynvml.NVML_ERROR_OPERATING_SYSTEM: _forbidden(
        "the operating system or a control group blocks the device", "give the container or unit access to /dev/nvidia*"
    ),
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: _unreachable(
        "the driver's library and the loaded kernel module are of different versions",
        "reboot, or reload the nvidia modules, then restart the agent",
    ),
    pynvml.NVML_ERROR_IN_USE: _failed("the device is in use by another operation"),
    pynvml.NVML_ERROR_MEMORY: _failed("the driver's library ran out of memory", "free -h"),
    pynvml.NVML_ERROR_NO_DATA: _absent("the driver has no figure for it"),
    pynvml.NVML_ERROR_VGPU_ECC_NOT_SUPPORTED: _absent("vGPU does not work with ECC on"),
    pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES: _failed("the driver ran out of a resource"),
    pynvml.NVML_ERROR_FREQ_NOT_SUPPORTED: _absent("the frequency is not supported"),
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: _absent("the driver does not know this version of the call"),
    pynvml.NVML_ERROR_DEPRECATED: _absent("the driver has dropped the call"),
    pynvml.NVML_ERROR_NOT_READY: _failed("the driver is not ready yet"),
    pynvml.NVML_ERROR_GPU_NOT_FOUND: _lost("the driver finds no such device"),
    pynvml.NVML_ERROR_INVALID_STATE: _failed("the device is in a state that forbids the call"),
    pynvml.NVML_ERROR_RESET_TYPE_NOT_SUPPORTED: _absent("the kind of reset is not supported"),
    pynvml.NVML_ERROR_UNKNOWN: _failed("the driver reports an internal error", "sudo dmesg | grep -i nvrm"),
}
"""Every error of nvml.h (2026-07-01); a test holds it complete against the installed binding."""


def meaning_of(error: Exception) -> Meaning:
    """What a ``pynvml`` error means; one from a newer library is a failed call that names its number."""
    if isinstance(error, pynvml.NVMLLibraryMismatchError):
        # The binding's unversioned calls raise this, which is no NVMLError, on drivers older than the binding.
        return MEANINGS[pynvml.NVML_ERROR_FUNCTION_NOT_FOUND]
    number: int = error.value  # type: ignore[attr-defined]  # pynvml is untyped; every NVMLError has it
    known = MEANINGS.get(number)
    return known or _failed(f"the driver reports error {number}, which this version does not know")


def unavailable(error: Exception, doing: str) -> Unavailable:
    """The exception for an NVML error that stops the whole look.

    Args:
        error: the ``pynvml`` error.
        doing: what was being done, e.g. ``counting the devices``.
    """
    meaning = meaning_of(error)
    return Unavailable(meaning.code, f"the driver could not be read ({doing}): {meaning.sentence}", hint=meaning.hint)


def initialise(binding: Binding) -> None:
    """Start the library.

    Raises:
        Unavailable: ``driver-unreachable`` (no library, driver not loaded, versions differ),
            ``driver-forbidden``, ``driver-unsupported`` (driver older than R300) or ``device-lost``.
    """
    try:
        binding.nvmlInit()
    except pynvml.NVMLError as error:
        raise unavailable(error, "starting its library") from error
