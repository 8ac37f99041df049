"""The answer to "who held the GPUs at that moment": what ``smi`` computes and every rendering shows."""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.model.meters import Grade
from gpuledger.model.missing import Missing
from gpuledger.model.quantities import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHeld:
    """Memory held around a moment, by samples.

    Args:
        mib: the mean of the samples of the span, whole MiB.
        since_us, until_us: the span of looking that holds the moment; equal for a single look. It ends before the
            moment where an agent looks and has not written since: then it is that of the last sample written.
    """

    mib: int
    since_us: int
    until_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A context at one moment, before it has a name.

    Args:
        context: the whole of it.
        since_us: when it began, as far as is known: a process that let go of the device and came back began again.
        until_us: its end, or the last look at it where it ended unsettled; Missing while it is not known to have ended.
        memory: held then; Missing where no sample covers the moment.
        doubt: why it may not have held the device then; empty where evidence holds the moment.
        ref: the row that says so, for ``explain``.
    """

    context: Context
    since_us: int
    until_us: int | Missing
    memory: MemoryHeld | Missing
    doubt: str
    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotProcess:
    """One process on one device at the moment.

    Args:
        pid: process id.
        device: GPU or MIG instance UUID.
        profile: of the instance; empty for a GPU.
        program: last part of what runs; ``-`` where it has no name.
        service, team, user, subject: who answers for it, by policy; the first and last may be ``unattributed:CAUSE``.
        cause: sentence of that cause; empty where it has a name.
        since_us: start of the context, microseconds UTC.
        since_by: what gives it: ``driver``, ``looks`` (the first look) or ``latest`` (no start is known).
        until_us: its end, or the last look at it where it ended unsettled; Missing while it is not known to have ended.
        last_seen_us: last look that saw it alive; for a settled one its end.
        memory: held then; Missing where no sample covers the moment.
        peak_memory_mib: highest known over its whole life; Missing where it was never readable, or reads 0.
        grade: ``settled`` or ``observed``.
        doubt: why it may not have held the device then; empty where evidence holds the moment.
        ref: the row that says so, for ``explain``.
    """

    pid: int
    device: str
    profile: str
    program: str
    service: str
    team: str
    user: str
    subject: str
    cause: str
    since_us: int
    since_by: str
    until_us: int | Missing
    last_seen_us: int
    memory: MemoryHeld | Missing
    peak_memory_mib: int | Missing
    grade: Grade
    doubt: str
    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSlice:
    """A MIG instance that a device had at the moment; ``memory_mib`` is Missing where it was not told."""

    device: str
    profile: str
    memory_mib: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDevice:
    """One GPU at the moment.

    Args:
        host, device: where, by UUID.
        product: the driver's own product name.
        class_name: what it is for accounting.
        driver_version: may be empty.
        memory_mib: its whole memory; Missing where it was not readable.
        slices: its MIG instances.
        reason: why the moment may hold more than what is listed: an ``UnknownReason``; empty where it was watched.
        meaning, command: its sentence and what helps; empty where it was watched.
        looked_us: the last look at it by then; Missing before the first.
        processes: those that held it, and those that may have: by instance, then pid.
    """

    host: str
    device: str
    product: str
    class_name: str
    driver_version: str
    memory_mib: int | Missing
    slices: tuple[SnapshotSlice, ...]
    reason: str
    meaning: str
    command: str
    looked_us: int | Missing
    processes: tuple[SnapshotProcess, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All devices of the ledger at one moment.

    Args:
        at_us: the moment, microseconds UTC.
        devices: by host and UUID.
    """

    at_us: int
    devices: tuple[SnapshotDevice, ...]

    @property
    def answered(self) -> bool:
        """Whether anything is known at all: a process that held a device, or a device that was watched."""
        return any(
            not device.reason or any(not process.doubt for process in device.processes) for device in self.devices
        )

    @property
    def has_unknown_parts(self) -> bool:
        """Whether a device may have held more, or a process has no name."""
        return not self.devices or any(
            device.reason or any(process.cause or process.doubt for process in device.processes)
            for device in self.devices
        )
