"""The MIG instances of one GPU, and on which of them a process is.

In: a GPU's handle. Out: :class:`Slice` values. :func:`read_slices` touches the driver; the rest is pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pynvml

from gpuledger.model.missing import Missing
from gpuledger.model.readings import SliceReading
from gpuledger.sources.nvml_accounting import MIB
from gpuledger.sources.nvml_binding import Binding, Handle, Trouble, meaning_of

NO_INSTANCE = 4294967295
"""Instance id of a process that is on no MIG instance, or whose instance this user may not know."""

_PROFILE = re.compile(r"\bMIG\s+(\S+)\s*$")
_GIB_IN_MIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A MIG instance with the handle to ask it by."""

    reading: SliceReading
    handle: Handle


def read_slices(binding: Binding, handle: Handle, gpu_memory_mib: int | Missing) -> tuple[Slice, ...]:
    """All MIG instances of a GPU, by index.

    Raises:
        pynvml.NVMLError: any but "not found", which an index without an instance gives.
    """
    slices: list[Slice] = []
    for index in range(binding.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            slice_handle = binding.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            reading = _read_slice(binding, slice_handle, gpu_memory_mib)
        except pynvml.NVMLError as error:
            if meaning_of(error).trouble is Trouble.GONE:
                continue
            raise
        slices.append(Slice(reading=reading, handle=slice_handle))
    return count_memory_once(slices)


def _read_slice(binding: Binding, handle: Handle, gpu_memory_mib: int | Missing) -> SliceReading:
    memory_mib: int | Missing
    try:
        memory_mib = binding.nvmlDeviceGetMemoryInfo(handle).total // MIB
    except pynvml.NVMLError as error:
        meaning = meaning_of(error)
        if meaning.trouble not in (Trouble.ABSENT, Trouble.FORBIDDEN):
            raise
        memory_mib = Missing(f"driver: {meaning.sentence}")
    return SliceReading(
        uuid=binding.nvmlDeviceGetUUID(handle),
        gpu_instance=binding.nvmlDeviceGetGpuInstanceId(handle),
        compute_instance=binding.nvmlDeviceGetComputeInstanceId(handle),
        profile=_read_profile(binding, handle, gpu_memory_mib),
        memory_mib=memory_mib,
    )


def _read_profile(binding: Binding, handle: Handle, gpu_memory_mib: int | Missing) -> str:
    """From the instance's name (R470 and later), else from its attributes; empty when neither tells."""
    try:
        if profile := profile_in_name(binding.nvmlDeviceGetName(handle)):
            return profile
        attributes = binding.nvmlDeviceGetAttributes(handle)
    except pynvml.NVMLError as error:
        if meaning_of(error).trouble not in (Trouble.ABSENT, Trouble.FORBIDDEN):
            raise
        return ""
    return profile_of(
        gpu_slices=attributes.gpuInstanceSliceCount,
        compute_slices=attributes.computeInstanceSliceCount,
        memory_mib=attributes.memorySizeMB,
        gpu_memory_mib=gpu_memory_mib,
    )


def profile_in_name(name: str) -> str:
    """``1g.5gb`` of ``NVIDIA A100-SXM4-40GB MIG 1g.5gb``; empty when the name holds no profile."""
    match = _PROFILE.search(name)
    return match[1] if match else ""


def profile_of(*, gpu_slices: int, compute_slices: int, memory_mib: int, gpu_memory_mib: int | Missing) -> str:
    """The profile's name from its size, as NVIDIA's own tools build it.

    Memory is rounded to eighths of the GPU and those to whole GB of it, rounded up (go-nvlib, mig profile);
    so 4,864 MiB of 40,960 is ``5gb``. Empty when the GPU's memory is not known.
    """
    if isinstance(gpu_memory_mib, Missing) or gpu_memory_mib <= 0:
        return ""
    gpu_gib = -(-gpu_memory_mib // _GIB_IN_MIB)
    eighths = (memory_mib * 8 * 2 + gpu_memory_mib) // (2 * gpu_memory_mib)
    gib = (eighths * gpu_gib * 2 + 8) // 16
    size = f"{gpu_slices}g.{gib}gb"
    return size if compute_slices == gpu_slices else f"{compute_slices}c.{size}"


def count_memory_once(slices: Iterable[Slice]) -> tuple[Slice, ...]:
    """Several compute instances of one GPU instance each report all its memory: only the first keeps it."""
    counted: dict[int, int] = {}
    result: list[Slice] = []
    for one in slices:
        reading = one.reading
        owner = counted.setdefault(reading.gpu_instance, reading.compute_instance)
        if owner != reading.compute_instance:
            told = f"memory of GPU instance {reading.gpu_instance} is counted with its compute instance {owner}"
            shared = SliceReading(
                uuid=reading.uuid,
                gpu_instance=reading.gpu_instance,
                compute_instance=reading.compute_instance,
                profile=reading.profile,
                memory_mib=Missing(told),
            )
            one = Slice(reading=shared, handle=one.handle)  # noqa: PLW2901 - the same slice, its memory unsaid
        result.append(one)
    return tuple(result)


def slice_of(slices: Iterable[Slice], gpu_instance: int, compute_instance: int) -> str:
    """UUID of the instance with these ids; empty when there is none.

    A process without a compute instance id is placed where its GPU instance has only one.
    """
    candidates = [one.reading for one in slices if one.reading.gpu_instance == gpu_instance]
    exact = [one.uuid for one in candidates if one.compute_instance == compute_instance]
    if exact:
        return exact[0]
    return candidates[0].uuid if compute_instance == NO_INSTANCE and len(candidates) == 1 else ""


def place_of(gpu_instance: int, compute_instance: int) -> str:
    """Where the driver says that a process is which is on no instance that it lists: a clause."""
    if gpu_instance == NO_INSTANCE:
        return "no GPU instance that the driver names, although MIG is on"
    part = "" if compute_instance == NO_INSTANCE else f", compute instance {compute_instance}"
    return f"GPU instance {gpu_instance}{part}, which the driver does not list"
