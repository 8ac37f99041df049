"""Why time is UNKNOWN and why an amount is unattributed: the closed vocabulary of blind spots."""

from __future__ import annotations

from enum import StrEnum


class UnknownReason(StrEnum):
    """Why a span of time on a device says nothing about its use. Also the status of a watch."""

    ACCOUNTING_DISABLED = "accounting-disabled"
    ACCOUNTING_UNSUPPORTED = "accounting-unsupported"
    ACCOUNTING_UNREAD = "accounting-unread"
    EMPTY_LEDGER = "empty-ledger"
    RING_OVERFLOW = "ring-overflow"
    ROW_FREED = "row-freed"
    ACCOUNTING_RESET = "accounting-reset"
    DRIVER_UNREACHABLE = "driver-unreachable"
    DEVICE_LOST = "device-lost"
    EVENTS_LOST = "events-lost"
    CLOCK_STEP = "clock-step"
    BEFORE_WATCH = "before-watch"
    NOT_WRITTEN = "not-written"
    WATCH_GAP = "watch-gap"


class Cause(StrEnum):
    """Why a context that did run could not be given a name."""

    BEFORE_WATCH = "before-watch"
    WATCH_GAP = "watch-gap"
    BETWEEN_SAMPLES = "between-samples"
    EVENTS_LOST = "events-lost"
    PID_AMBIGUOUS = "pid-ambiguous"
    IDENTITY_UNREADABLE = "identity-unreadable"
    NO_START_TIME = "no-start-time"


class ReservedReason(StrEnum):
    """What reservations do not tell, or tell twice."""

    UNPLACED = "unplaced"
    LATE_EVIDENCE = "late-evidence"
    CONTROLLER_SILENT = "controller-silent"
    DOUBLE_SOURCE = "double-source"
    CLOCK_SKEW = "clock-skew"
    PASSTHROUGH = "passthrough"


WATCHED = ("ok", "idle")
"""The other words that a watch can have as status: its source saw what there was; ``idle`` also proves it nothing."""

BY_EVENTS = ("ebpf", "connector")
"""The methods of naming that no process falls between two looks of."""

IDLE = "idle"
IDLE_MEANING = (
    "accounting was on and its list empty, the driver was not let go in between, and kernel events tell that nobody "
    "opened the device"
)
"""Why an empty list then reads as 0: a clause."""

UNKNOWN_MEANING: dict[UnknownReason, tuple[str, str]] = {
    UnknownReason.ACCOUNTING_DISABLED: (
        "the driver's accounting was off, so what ran and exited left no row",
        "sudo gpuledger agent --enable-accounting   (or: sudo nvidia-smi -am 1)",
    ),
    UnknownReason.ACCOUNTING_UNSUPPORTED: (
        "the driver keeps no accounting here (MIG mode, or a device without it)",
        "nothing enables it; living processes are still metered as observed",
    ),
    UnknownReason.ACCOUNTING_UNREAD: (
        "the driver's accounting list was not read, so what ran and exited is not known",
        "nvidia-smi --query-accounted-apps=timestamp,gpu_uuid,pid,gpu_util,mem_util,max_memory_usage,time --format=csv",
    ),
    UnknownReason.EMPTY_LEDGER: (
        "accounting was on and its list empty, and nothing proves that nobody used the device meanwhile",
        "gpuledger blind   (by kernel events: who had it open); or run any short GPU job: a row proves the list",
    ),
    UnknownReason.RING_OVERFLOW: (
        "128 or more processes exited between two readings, the driver's ring lost the oldest",
        "gpuledger agent --interval with a shorter time",
    ),
    UnknownReason.ROW_FREED: (
        "a process let go of the device and held it anew: the driver keeps one row a pid, an earlier one may be lost",
        "gpuledger blind   (each with its pid); gpuledger agent --interval with a shorter time",
    ),
    UnknownReason.ACCOUNTING_RESET: (
        "every known row vanished or the mode fell off: the driver was reloaded",
        "sudo nvidia-smi -pm 1   (persistence keeps the driver loaded)",
    ),
    UnknownReason.DRIVER_UNREACHABLE: (
        "the driver's library did not answer",
        "gpuledger doctor",
    ),
    UnknownReason.DEVICE_LOST: (
        "the device left the driver's list",
        "nvidia-smi -L",
    ),
    UnknownReason.EVENTS_LOST: (
        "the kernel dropped process events",
        "gpuledger doctor",
    ),
    UnknownReason.CLOCK_STEP: (
        "the wall clock was set; times across the step are not comparable",
        "keep the clock with chrony or systemd-timesyncd",
    ),
    UnknownReason.BEFORE_WATCH: (
        "nothing had looked at this device yet",
        "leave gpuledger agent running",
    ),
    UnknownReason.NOT_WRITTEN: (
        "an agent looks and cannot write what it sees: it keeps that, and writes it as soon as it can",
        "df -h   (a full disk is the usual cause; the agent says which it is)",
    ),
    UnknownReason.WATCH_GAP: (
        "no agent was looking",
        "leave gpuledger agent running",
    ),
}
"""Each reason's sentence and the command that helps."""

CAUSE_MEANING: dict[Cause, str] = {
    Cause.BEFORE_WATCH: "dead before the agent first looked",
    Cause.WATCH_GAP: "lived and died while no agent was looking",
    Cause.BETWEEN_SAMPLES: "lived and died between two polls",
    Cause.EVENTS_LOST: "lived while the kernel dropped events",
    Cause.PID_AMBIGUOUS: "two processes with this pid fit the time",
    Cause.IDENTITY_UNREADABLE: "seen, but gone or closed to us before it could be read",
    Cause.NO_START_TIME: "the source gives no start time, so the pid cannot be joined safely",
}
"""Each cause's sentence."""

NAMING_MEANING: dict[UnknownReason, tuple[str, str]] = {
    UnknownReason.EVENTS_LOST: (
        "the kernel dropped process events: who ran then can be without a name, or its exec was not seen",
        "gpuledger journal   (each loss with its size)",
    ),
    UnknownReason.CLOCK_STEP: UNKNOWN_MEANING[UnknownReason.CLOCK_STEP],
    UnknownReason.BEFORE_WATCH: ("nobody took names yet", "leave gpuledger agent running"),
    UnknownReason.WATCH_GAP: ("nobody took names", "leave gpuledger agent running"),
}
"""Why names can be missing of a time: its sentence and the command that helps."""

UNATTRIBUTED = "unattributed:"
"""Prefix of the subject of an unnamed amount: ``unattributed:between-samples``."""

RESERVED_MEANING: dict[ReservedReason, tuple[str, str]] = {
    ReservedReason.UNPLACED: (
        "a workload ran, and no event says on what: it is not counted until one does",
        "gpuledger transition WORKLOAD provisioning --at TIME --class CLASS   (at or before its start)",
    ),
    ReservedReason.LATE_EVIDENCE: (
        "an event came for hours that are final, so their records stand until somebody corrects them",
        "gpuledger correct --reason TEXT --by NAME",
    ),
    ReservedReason.CONTROLLER_SILENT: (
        "nobody tells of open workloads any more: a controller is silent, or a history ends; counted to the last told",
        "start it again, or import what came since: what was missed is counted then",
    ),
    ReservedReason.DOUBLE_SOURCE: (
        "two sources reserve the same device at the same time: both are counted",
        "gpuledger usage --meter gpu.reserved --by device,workload   (let one source reserve a device)",
    ),
    ReservedReason.CLOCK_SKEW: (
        "a clock is more than 2 s off, or was set while workloads ran: the times told by it are off by as much",
        "keep its clock with chrony or systemd-timesyncd",
    ),
    ReservedReason.PASSTHROUGH: (
        "a device is handed through to a guest: its reservation counts, its use no driver of the host sees",
        "gpuledger agent, inside the guest",
    ),
}
"""Each reason of reserved time: its sentence and the command that helps."""
