"""Who holds a device now: what one look shows, and how it is arranged for eyes. Values, before any rendering.

These are figures of one moment. None of them is stored, metered or billed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem


class Grouping(StrEnum):
    """What a row of ``top`` stands for, in the order in which the key steps through them."""

    SERVICE = "service"
    USER = "user"
    TEAM = "team"
    PROCESS = "process"
    DEVICE = "device"


class Order(StrEnum):
    """What rows are sorted by: most first, names from A."""

    MEMORY = "memory"
    HELD = "held"
    BUSY = "busy"
    NAME = "name"


class Unnamed(StrEnum):
    """Why a process that holds a device has no name in ``top``."""

    UNREADABLE = "identity-unreadable"
    """As the cause of that name in a ledger: alive, and its ``/proc`` entry could not be read."""
    NOT_IN_PROC = "not-in-proc"


UNNAMED_MEANING: dict[Unnamed, tuple[str, str]] = {
    Unnamed.UNREADABLE: (
        "alive, but its /proc entry may not be read, and no readable ledger names it",
        "sudo gpuledger top",
    ),
    Unnamed.NOT_IN_PROC: (
        "the driver lists a pid that /proc does not have: it has just ended, or lives in another pid namespace",
        "gpuledger doctor   (says whether these are the host's pids)",
    ),
}
"""Each reason's sentence and the command that helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """How rows are made and sorted."""

    by: Grouping = Grouping.SERVICE
    order: Order = Order.MEMORY
    is_reversed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One process on one device, now.

    Args:
        device: UUID of the GPU or MIG instance.
        pid: process id, as the driver gives it.
        service, user, team: by policy and kernel facts, as ``usage`` has them; ``-`` where nothing names one.
        program: what runs, short; may be empty.
        cause: an :class:`Unnamed`; empty for a process with a name.
        held_us: how long it has held the device; Missing at the first look where no start is known.
        is_at_least: ``held_us`` counts from when it was first seen, and not from the driver's own start.
        memory_mib: memory held now, MiB, the driver's own figure.
        busy_percent: SM activity since the last look, as the driver samples it; 0 where it sampled none.
    """

    device: str
    pid: int
    service: str
    user: str
    team: str
    program: str = ""
    cause: str = ""
    held_us: int | Missing
    is_at_least: bool = False
    memory_mib: int | Missing
    busy_percent: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldDevice:
    """A device of this look, held or not.

    Args:
        uuid: of the GPU or MIG instance; ``GPU 1`` where the driver did not even give that.
        class_name: what it is for accounting; empty where it did not answer.
        memory_mib: its memory, MiB.
        silence: why nothing is known of who holds it; empty where the driver listed that.
    """

    uuid: str
    class_name: str
    memory_mib: int | Missing
    silence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldersLook:
    """One look at who holds what.

    Args:
        at_us: wall clock of the look, microseconds UTC.
        host: name of this machine.
        method: ``nvml``, ``nvidia-smi`` or ``simulated``.
        driver_version: may be empty.
        devices: every device, also those that nobody holds and those that did not answer.
        holdings: every process on every device.
        ledger: path of the ledger that helped to name them; Missing says why none did.
        problems: what was imperfect.
    """

    at_us: int
    host: str
    method: str
    driver_version: str
    devices: tuple[HeldDevice, ...]
    holdings: tuple[Holding, ...]
    ledger: str | Missing
    problems: tuple[Problem, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether the driver told of at least one device who holds it, or has no device at all."""
        return bool(self.holdings) or not self.devices or any(not device.silence for device in self.devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A sum over the processes of a row.

    Args:
        value: the sum of what is known; Missing where nothing is.
        left_out: processes on a device whose figure is not known, so that the sum is the least it can be.
        why: the reasons, each once; empty where none is left out.
    """

    value: int | Missing
    left_out: int = 0
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldersRow:
    """The processes of one group.

    Args:
        label: the group: a service, user, team, device, or the service of one process.
        detail: the program of one process, or the class of a device; else empty.
        user: whose process it is, where the row is one; else empty.
        cause: an :class:`Unnamed` where the row holds the unnamed of that reason; else empty.
        pids: its processes, sorted, each once.
        devices: where they are, sorted, each once.
        contexts: processes on devices; Missing where the device does not tell.
        unnamed: those of them without a name.
        held_us: of the longest; ``is_at_least`` where that can be longer.
        memory: MiB.
        busy: percent of one device, added up: two devices at 100 % are 200.
        capacity_mib: memory of its devices.
    """

    label: str
    detail: str = ""
    user: str = ""
    cause: str = ""
    pids: tuple[int, ...]
    devices: tuple[str, ...]
    contexts: int | Missing
    unnamed: int = 0
    held_us: int | Missing
    is_at_least: bool = False
    memory: Figure
    busy: Figure
    capacity_mib: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldersReport:
    """One look, arranged.

    Args:
        look: what was seen.
        arrangement: how.
        rows: the named, sorted as asked; by device all of them.
        unnamed: the unnamed, one row a reason (by process: one a process), sorted alike; none by device,
            where each row says how many of its contexts have no name.
        contexts, unnamed_contexts: processes on devices, and those of them without a name.
        memory, unnamed_memory: what all of them hold, and the unnamed among them, MiB.
    """

    look: HoldersLook
    arrangement: Arrangement
    rows: tuple[HoldersRow, ...]
    unnamed: tuple[HoldersRow, ...]
    contexts: int
    unnamed_contexts: int
    memory: Figure
    unnamed_memory: Figure
