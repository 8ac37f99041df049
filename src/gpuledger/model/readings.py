"""What one look at a driver finds, from whichever source: the seam between sources and the agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.model.rows import as_content


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRow:
    """One finished process in the driver's accounting list. Units as in ``DriverRecord``."""

    pid: int
    started_at_us: int | Missing
    context_ms: int
    peak_memory_mib: int | Missing
    gpu_percent: int | Missing
    memory_percent: int | Missing

    @property
    def content(self) -> tuple[str, ...]:
        """The figures as text, the same from every source of the row: as in a ``DriverRecord``."""
        return as_content(self.context_ms, self.peak_memory_mib, self.gpu_percent, self.memory_percent)


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingContext:
    """One process alive on one device, merged over the compute, graphics and MPS lists.

    Args:
        pid: process id.
        device: UUID of the device or MIG instance it is on.
        kinds: letters of the lists it is in: C, G, M; A when only the accounting list shows it running.
        memory_mib: memory held now, MiB; never added over lists. Missing under WDDM or without permission.
        started_at_us: the driver's start of the context; Missing when not accounted or from CSV.
        accounted: True when the accounting list shows it running, False when that list was read and
            does not, Missing when accounting is off or unsupported.
        busy_percent: SM utilisation since the last look, 0 to 100; 0 when the driver samples none.
        process_name: the driver's own process name; empty when not given.
    """

    pid: int
    device: str
    kinds: str
    memory_mib: int | Missing
    started_at_us: int | Missing
    accounted: bool | Missing
    busy_percent: int | Missing
    process_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceReading:
    """One MIG instance. ``profile`` is e.g. ``1g.5gb``; may be empty when not told."""

    uuid: str
    gpu_instance: int
    compute_instance: int
    profile: str
    memory_mib: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReading:
    """One physical GPU at one look.

    Args:
        uuid: GPU UUID.
        product: product name as the driver spells it.
        memory_mib: total memory, MiB.
        pci_bus_id: PCI address; may be empty.
        accounting: ``enabled``, ``disabled``, ``unsupported`` (MIG, or a device without it) or
            ``unknown`` (the source does not tell).
        mig: whether MIG mode is on.
        slices: MIG instances.
        finished: finished rows, in the driver's order.
        living: living contexts.
        listed: number of pids the accounting list held, finished and running; Missing when it was not read.
        minor: number of its device node, ``/dev/nvidiaN``; Missing when not told.
    """

    uuid: str
    product: str
    memory_mib: int | Missing
    pci_bus_id: str = ""
    accounting: str = "unknown"
    mig: bool = False
    slices: tuple[SliceReading, ...] = ()
    finished: tuple[FinishedRow, ...] = ()
    living: tuple[LivingContext, ...] = ()
    listed: int | Missing = 0
    minor: int | Missing = field(default_factory=lambda: Missing("not told"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One look at all devices of a driver.

    Args:
        at_us: wall clock of the look, microseconds UTC; Missing when a dump does not say.
        method: ``nvml``, ``nvidia-smi``, ``import`` or ``simulated``.
        driver_version: may be empty.
        devices: by UUID.
        problems: what was imperfect.
        load: names one load of the driver: the same at two looks only when the driver was not let go in between.
            Empty where the source cannot tell.
    """

    at_us: int | Missing
    method: str
    driver_version: str = ""
    devices: Mapping[str, DeviceReading] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    load: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One living process and what was read of it.

    Args:
        pid, start_ticks: the process; ticks since boot, field 22 of ``/proc/PID/stat``.
        exec_number: 0 for the program first seen, counted up when it becomes another.
        started_at_us: wall-clock start.
        seen_at_us: when it was read, alive.
        text: what was read, redacted.
    """

    pid: int
    start_ticks: int
    exec_number: int
    started_at_us: int
    seen_at_us: int
    text: IdentityText


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """One program of a process that an event told of, and of which nothing else could be read.

    Args:
        pid, start_ticks: the process; its ticks are 0 where they could not be read either.
        exec_number: as in :class:`Named`: what it was before and after may be known.
        started_at_us: wall-clock start of the process.
        seen_at_us: when it was this program: at its exec, and the last one at the process's end.
    """

    pid: int
    started_at_us: int
    seen_at_us: int
    start_ticks: int = 0
    exec_number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """One process that asked for one device node, by a kernel event.

    Args:
        pid, start_ticks: the process.
        minor: of the node, ``/dev/nvidiaN``.
        opened_at_us: wall clock of its first open, or when it was found holding the node.
        exited_at_us: wall clock of its exit, or when it was last seen where no event told its exit, or of the exec
            that let go of the node; Missing while it is neither.
        is_found: it was found holding the node: it opened it earlier.
        number: which of its holdings this is: each of its programs can open the node anew.
        became: it did not exit, but became another program.
    """

    pid: int
    start_ticks: int
    minor: int
    opened_at_us: int
    exited_at_us: int | Missing
    is_found: bool = False
    number: int = 0
    became: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesLook:
    """What a watcher knows at one look of the pids it was asked about.

    Args:
        method: ``poll``, ``connector`` or ``ebpf``.
        current: by pid, the process that is alive now.
        fresh: identities not told before; for event watchers also of processes already dead.
        exits: by (pid, start_ticks), the wall clock of the exit of processes told before, where an event said it.
        unreadable: pids that are alive and could not be read.
        unread: programs of such processes that were not told before and could not be read.
        opened: opens of device nodes not told before, and those told before whose process has ended since.
        sees_opens: opens are among the events, whoever opens: none went by unseen unless ``lost`` says so.
        lost: what was lost since the look before, a sentence; empty when nothing was, or nothing can be known.
    """

    method: str
    current: Mapping[int, Named] = field(default_factory=dict)
    fresh: tuple[Named, ...] = ()
    exits: Mapping[tuple[int, int], int] = field(default_factory=dict)
    unreadable: frozenset[int] = frozenset()
    unread: tuple[Unread, ...] = ()
    opened: tuple[Opened, ...] = ()
    sees_opens: bool = False
    lost: str = ""
