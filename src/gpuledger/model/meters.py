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

METERS: tuple[Meter, ...] = (GPU_CONTEXT, GPU_MEMORY, GPU_BUSY)
"""Every meter this version fills."""
