"""The lifecycle of a workload: its states, what it may become, where it is placed, and one transition.

Pure. A transition is what a control plane, a batch system or a trace says happened; what it may not
say is refused with a code of its own. Only ``running`` is metered.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from hashlib import sha256

from gpuledger.errors import Misconfigured
from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem

CPU = "cpu"
"""The class of a workload that fell back to no GPU; metered by ``cpu.reserved``."""

MOST_DEVICES = 4096
"""More devices than this in one placement is a mistake: the largest machines of a cluster hold 16."""


class State(StrEnum):
    """Where a workload stands."""

    PENDING = "pending"
    PROVISIONING = "provisioning"
    DOWNLOADING = "downloading"
    BOOTING = "booting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


METERED = frozenset({State.RUNNING})
"""States whose time is usage."""

HOLDING = frozenset({State.PROVISIONING, State.DOWNLOADING, State.BOOTING, State.RUNNING, State.STOPPING})
"""States that hold capacity: devices that nobody else can have."""

ENDED = frozenset({State.STOPPED, State.FAILED})
"""States in which nothing is held; only ``pending`` or ``provisioning`` leads out of them."""

_UP = (State.DOWNLOADING, State.BOOTING, State.RUNNING, State.STOPPING, State.STOPPED, State.FAILED)

FOLLOWS: dict[State | None, frozenset[State]] = {
    None: frozenset({State.PENDING, State.PROVISIONING}),
    State.PENDING: frozenset({State.PENDING, State.PROVISIONING, State.STOPPED, State.FAILED}),
    State.PROVISIONING: frozenset({State.PROVISIONING, *_UP}),
    State.DOWNLOADING: frozenset({State.DOWNLOADING, *_UP}),
    State.BOOTING: frozenset({State.BOOTING, *_UP}),
    State.RUNNING: frozenset({State.PROVISIONING, *_UP}),
    State.STOPPING: frozenset({State.STOPPING, State.STOPPED, State.FAILED}),
    State.STOPPED: frozenset({State.STOPPED, State.PENDING, State.PROVISIONING}),
    State.FAILED: frozenset({State.FAILED, State.PENDING, State.PROVISIONING}),
}
"""What may follow a state; None: no transition of the workload is known. ``running`` after ``running`` is a
re-placement. Importers are not held to it: what they say happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What a workload is placed on: class, region, machine, devices and share.

    Args:
        class_name: accounting class, ``H100-80GB``, ``A100-SXM4-40GB/1g.5gb`` or ``cpu``.
        region, machine, pool: may be empty.
        devices: UUIDs, sorted, each once; empty where only their number is known.
        count: number of devices; 0 for class ``cpu`` alone.
        share: of each device, above 0 and at most 1.

    Raises:
        Misconfigured: ``bad-placement``.
    """

    class_name: str
    region: str = ""
    machine: str = ""
    pool: str = ""
    devices: tuple[str, ...] = ()
    count: int = 1
    share: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if not self.class_name:
            raise _bad("no class: a placement without one would be usage of nothing", "--class H100-80GB")
        if not 0 < self.share <= 1:
            raise _bad(f"a share of {self.share}: above 0 and at most 1 of each device", "--share 1/4")
        if not 0 <= self.count <= MOST_DEVICES or (self.count == 0) != (self.class_name == CPU):
            raise _bad(f"{self.count} devices of class {self.class_name}", f"1 to {MOST_DEVICES}, and 0 for class cpu")
        if self.devices and (len(self.devices) != self.count or list(self.devices) != sorted(set(self.devices))):
            raise _bad("its devices are not as many as it counts, sorted, each once", "--devices UUID,UUID")

    @property
    def key(self) -> str:
        """What makes two placements one: SHA-256 of all of it, 32 hex digits."""
        parts = [self.class_name, self.region, self.machine, self.pool, *self.devices]
        text = json.dumps([*parts, self.count, self.share.numerator, self.share.denominator])
        return sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One lifecycle event, as its source tells it.

    Args:
        workload: the control plane's own id, unique in the ledger.
        event_id: makes the event itself: the same id with the same content is the same event.
        state: where the workload stands from ``at_us`` on.
        at_us: when it happened at the runtime, microseconds UTC.
        source: who says so: a controller's name, ``slurm``, ``trace``, ``runtime``.
        user, team, project: whose it is, as far as the source says; may be empty.
        requested_class: what was asked for, where it may differ from what was placed; may be empty.
        placement: where; None where the event does not say.
        labels: any, sorted by name, each name once.
    """

    workload: str
    event_id: str
    state: State
    at_us: int
    source: str
    user: str = ""
    team: str = ""
    project: str = ""
    requested_class: str = ""
    placement: Placement | None = None
    labels: tuple[tuple[str, str], ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What one import found: transitions of the past, in the order in which they happened.

    Args:
        source: who says so, as in each of its transitions.
        transitions: sorted by time, each event id once.
        as_of_us: until when the source can tell of what is still open: the dump's own time. Missing where
            nothing is open, or the source does not say.
        problems: what was imperfect: lines left out, with file and line number; allocations that are missing.
        rows_read: rows of the file that were understood, for the person.
    """

    source: str
    transitions: tuple[Transition, ...]
    as_of_us: int | Missing
    problems: tuple[Problem, ...] = ()
    rows_read: int = 0


def _bad(sentence: str, hint: str) -> Misconfigured:
    return Misconfigured("bad-placement", sentence, hint=hint)
