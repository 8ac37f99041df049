"""The meters: one measured quantity each, with one unit. The explicit list, in reading order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """How a quantity is known."""

    RESERVED = "reserved"
    SETTLED = "settled"
    OBSERVED = "observed"
    SAMPLED = "sampled"
    DECLARED = "declared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """One measured quantity.

    Args:
        name: dotted, e.g. ``gpu.context``.
        unit: the unit of every stored quantity of this meter.
        grades: how its quantities can be known.
        invoiced: whether money may follow from it; showback otherwise.
        sentence: what it says, and what it does not.
    """

    name: str
    unit: str
    grades: tuple[Grade, ...]
    invoiced: bool
    sentence: str


GPU_CONTEXT = Meter(
    name="gpu.context",
    unit="ms",
    grades=(Grade.SETTLED, Grade.OBSERVED),
    invoiced=False,
    sentence="time a process held a device; contexts overlap, so a sum can exceed the wall clock",
)
GPU_MEMORY = Meter(
    name="gpu.memory",
    unit="MiB-seconds",
    grades=(Grade.SAMPLED,),
    invoiced=False,
    sentence="device memory held, as sampled; a sample counts for two polls at most",
)
GPU_BUSY = Meter(
    name="gpu.busy",
    unit="ms",
    grades=(Grade.SAMPLED,),
    invoiced=False,
    sentence="SM activity as the driver samples it; short work can read as none",
)

GPU_RESERVED = Meter(
    name="gpu.reserved",
    unit="s",
    grades=(Grade.RESERVED,),
    invoiced=True,
    sentence="time for which devices were reserved, busy or not; in views times devices and share of each",
)
CPU_RESERVED = Meter(
    name="cpu.reserved",
    unit="s",
    grades=(Grade.RESERVED,),
    invoiced=True,
    sentence="time of workloads that asked for a device and were placed on class cpu",
)
MIG_MEMORY = Meter(
    name="mig.memory",
    unit="s",
    grades=(Grade.RESERVED,),
    invoiced=True,
    sentence="time for which MIG slices were reserved; in views times the memory of their profile and share",
)

RESERVED_METERS: tuple[Meter, ...] = (GPU_RESERVED, CPU_RESERVED, MIG_MEMORY)
"""The meters of reserved time: from lifecycle events, whatever a device was seen to do."""

METERS: tuple[Meter, ...] = (*RESERVED_METERS, GPU_CONTEXT, GPU_MEMORY, GPU_BUSY)
"""Every meter this version fills."""
