"""The receipt of one command: what ``run`` prints, before any rendering, and the words that it is made of.

The command is the process that was started and all its descendants. Its contexts are told from those of
its neighbours by process identity, by the cgroup it was put into, or by pid and time; what none of these
can tell is said, and never added.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpuledger.model.missing import Missing


class Watcher(StrEnum):
    """Who looked at the devices while the command ran."""

    RUN = "run"
    AGENT = "agent"
    NOBODY = "nobody"


class State(StrEnum):
    """How a context of the command stands at the time of the receipt."""

    SETTLED = "settled"
    """The driver has settled it: its time is final."""
    RUNNING = "running"
    """Its process goes on: its time is that up to the last look."""
    AWAITED = "awaited"
    """Its process ended, and the driver has not settled it yet."""
    OBSERVED = "observed"
    """It ended, and the driver keeps no row of it: its time is what looks and events saw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One process of the command.

    Args:
        pid, start_ticks: the process, of this boot.
        born_us: wall-clock start.
        seen_us: last moment that it was seen alive, or found just ended.
        is_alive: it had not ended at the last scan.
    """

    pid: int
    start_ticks: int
    born_us: int
    seen_us: int
    is_alive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Which processes are the command's, and how sure that is.

    Args:
        boot_id: the kernel's boot id.
        members: every process that was seen in its tree.
        cgroup: name of the cgroup that it was put into and that identities carry; Missing says why there is none.
        blind_us: a descendant that lived shorter than this can have been missed by the scans.
        are_the_drivers_pids: pids here are those that the driver speaks of (the host's pid namespace).
    """

    boot_id: str
    members: tuple[Member, ...]
    cgroup: str | Missing
    blind_us: int
    are_the_drivers_pids: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command did, as its starter saw it.

    Args:
        command: its words, redacted.
        pid: its process.
        began_us, ended_us: wall clock, microseconds UTC.
        wall_ms: between the two by the boot-time clock, which nobody sets.
        status: exit status as a shell has it: 128 + N for death by signal N.
        signal: name of the signal that ended it; empty where it exited.
    """

    command: str
    pid: int
    began_us: int
    ended_us: int
    wall_ms: int
    status: int
    signal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptContext:
    """One context of the command: one of its processes on one device.

    Args:
        device, pid: where and who by number.
        service: by policy; ``unattributed:CAUSE`` where the ledger has no name, and the scans of ``run`` say whose.
        since_us: its start, or the first look at it.
        context_ms: its time; of a running one up to the last look. Missing where nothing gives a length.
        state: how it stands.
        peak_memory_mib: highest known; Missing where it was never readable, or reads 0.
        refs: rows behind it, the driver's own first; each can be explained.
    """

    device: str
    pid: int
    service: str
    since_us: int
    context_ms: int | Missing
    state: State
    peak_memory_mib: int | Missing
    refs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptDevice:
    """What the command held of one device.

    Args:
        host, device, class_name: where.
        contexts: how many; ``unsized`` of them have no known length.
        context_ms: their sum; 0 only where that is proven, see ``why``; Missing where it is not known.
        settled_ms, observed_ms: its parts.
        peak_memory_mib: of the one that held most; Missing with the reason.
        busy_ms: SM activity, as the driver samples it; Missing where it sampled none.
        why: why a 0 is one; else empty.
    """

    host: str
    device: str
    class_name: str
    contexts: int
    unsized: int
    context_ms: int | Missing
    settled_ms: int
    observed_ms: int
    peak_memory_mib: int | Missing
    busy_ms: int | Missing
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Others on a device that the command held, while it ran: one service, or one cause of having no name.

    Args:
        device: where.
        service: by policy; ``unattributed:CAUSE`` for the unnamed of one cause.
        meaning: sentence of the cause; empty where it has a name.
        contexts: how many.
        context_ms: their time between the command's start and end; Missing where none has a known length.
        peak_memory_mib: of the one that held most then; Missing where no sample lies in that time.
    """

    device: str
    service: str
    meaning: str
    contexts: int
    context_ms: int | Missing
    peak_memory_mib: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTime:
    """Time of the run that says nothing about use, of one reason.

    Args:
        reason: an ``UnknownReason``.
        ms: device-time.
        devices: on how many.
        meaning, command: its sentence and what helps.
    """

    reason: str
    ms: int
    devices: int
    meaning: str
    command: str


class Doubt(StrEnum):
    """What else a receipt cannot tell."""

    NOT_WATCHED = "not-watched"
    """Nobody looked at the devices, or not all the time."""
    COULD_BE_OURS = "could-be-ours"
    """Contexts without a name that the command can have made."""
    SHORT_LIVED = "short-lived"
    """Processes of the command that no scan can have met."""
    EVENTS_LOST = "events-lost"
    """Kernel events of processes were lost."""
    NOT_SETTLED = "not-settled"
    """Contexts whose time is not final."""
    OTHER_PIDS = "other-pids"
    """Pids here are not those that the driver speaks of."""
    NOT_STORED = "not-stored"
    """The ledger could not be written: what the receipt says is kept nowhere else."""
    NOT_SEEN_AFTER = "not-seen-after"
    """Nobody looked after the end, so what ended last can be missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubtful:
    """One doubt, said: what, a sentence, and the rows that it is about."""

    doubt: Doubt
    sentence: str
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What one command held of the GPUs, who else was there, and what is unknown.

    Args:
        host: name of this machine in the ledger.
        ran: the command.
        watched_by: who looked.
        naming: how processes were named: ``ebpf``, ``connector``, ``poll``; empty where nobody looked.
        processes: how many were seen in its tree; ``alive`` of them go on.
        devices: every device, those that it held first.
        contexts: by time.
        neighbours: named ones, most first; unnamed: by cause, most first.
        unknown: time by reason, largest first.
        doubts: what else is not known.
        explain: the command line that explains the whole window.
    """

    host: str
    ran: Ran
    watched_by: Watcher
    naming: str
    processes: int
    alive: int
    devices: tuple[ReceiptDevice, ...]
    contexts: tuple[ReceiptContext, ...]
    neighbours: tuple[Neighbour, ...]
    unnamed: tuple[Neighbour, ...]
    unknown: tuple[UnknownTime, ...]
    doubts: tuple[Doubtful, ...]
    explain: str

    @property
    def context_ms(self) -> int | Missing:
        """The time of all its contexts; 0 only where every device proves it; Missing where nothing is known."""
        sized = [one.context_ms for one in self.contexts if not isinstance(one.context_ms, Missing)]
        if sized:
            return sum(sized)
        if self.contexts:
            return Missing("no context has a known length")
        if not self.devices:
            return Missing("no device is known")
        reasons = [one.context_ms.reason for one in self.devices if isinstance(one.context_ms, Missing)]
        return Missing("; ".join(dict.fromkeys(reasons))) if reasons else 0

    @property
    def is_at_least(self) -> bool:
        """Whether the command can have held more than ``context_ms``."""
        whole = (Doubt.EVENTS_LOST, Doubt.NOT_SETTLED, Doubt.NOT_STORED)  # these leave no time of the command out
        return (
            bool(self.unknown)
            or any(one.doubt not in whole for one in self.doubts)
            or any(isinstance(one.context_ms, Missing) for one in self.contexts)
            or any(one.state in (State.RUNNING, State.AWAITED) for one in self.contexts)
        )

    @property
    def is_awaiting(self) -> bool:
        """Whether one more look can settle something."""
        return any(one.state is State.AWAITED for one in self.contexts)
