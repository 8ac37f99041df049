"""The lifecycle of a workload: its states, what it may become, where it is placed, and one transition.

Pure. A transition is what a control plane, a batch system or a trace says happened; what it may not
say is refused with a code of its own. Only ``running`` is metered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from hashlib import sha256
from numbers import Rational

from gpuledger.errors import Misconfigured
from gpuledger.model.addresses import lacks_host
from gpuledger.model.missing import Missing
from gpuledger.model.moments import LATEST_US
from gpuledger.model.problem import Problem

CPU = "cpu"
"""The class of a workload that fell back to no GPU; metered by ``cpu.reserved``."""

MOST_DEVICES = 4096
"""More devices than this in one placement is a mistake: the largest machines of a cluster hold 16."""

FINEST_SHARE = 2**63 - 1
"""The largest denominator of a share: every store keeps it as a whole number of 64 bits."""

SLURM = "slurm:"
"""How a workload's name begins that is a job of Slurm, before its cluster and number."""

LONGEST_NAME = 512
"""Characters of the longest name that is kept: of a workload, a source, a class, a device."""

_SHARE = re.compile(
    r"[-+]?(?:[0-9]{1,40}/[0-9]{1,40}|(?=[.]?[0-9])[0-9]{0,40}(?:[.][0-9]{0,40})?(?:[eE][-+]?[0-9]{1,2})?)"
)
"""Numbers of bounded size: the power of ten in ``1e999999999`` would be worked out digit by digit, for hours."""


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
        if not isinstance(self.share, Rational):
            raise _bad(f"a share of {self.share!r} is not exact: give a Fraction", "Fraction(1, 4)")
        if not 0 < self.share <= 1:
            raise _bad(f"a share of {str(self.share)[:40]}: above 0 and at most 1 of each device", "--share 1/4")
        if self.share.denominator > FINEST_SHARE:
            raise _bad(f"a share of {self.share} is finer than any that can be kept", "--share 1/3")
        if not 0 <= self.count <= MOST_DEVICES or (self.count == 0) != (self.class_name == CPU):
            sentence = (
                f"{self.count} devices of class {self.class_name}: a placement has 1 to {MOST_DEVICES}, and 0 of cpu"
            )
            raise _bad(sentence, f"--devices N, from 1 to {MOST_DEVICES}; --class cpu takes none")
        if self.devices and (len(self.devices) != self.count or list(self.devices) != sorted(set(self.devices))):
            raise _bad("its devices are not as many as it counts, sorted, each once", "--devices UUID,UUID")
        for device in self.devices:
            if lacks_host(device):
                raise _bad(f"{device} is an address, and on which machine is not said", f"--devices HOST/{device}")

    def refuse_odd_names(self) -> None:
        """Raise where a name is none that a ledger should hold: whoever tells of a placement asks this first.

        Raises:
            Misconfigured: ``bad-placement``.
        """
        for text in (self.class_name, self.region, self.machine, self.pool, *self.devices):
            if type(text) is not str or len(text) > LONGEST_NAME or not text.isprintable():
                raise _bad(f"a name of the placement is {_needed(text, 0)}", "--class H100-80GB --machine n1")

    @property
    def key(self) -> str:
        """What makes two placements one: SHA-256 of all of it, 32 hex digits."""
        parts = [self.class_name, self.region, self.machine, self.pool, *self.devices]
        text = json.dumps([*parts, self.count, self.share.numerator, self.share.denominator])
        return sha256(text.encode()).hexdigest()[:32]

    @property
    def words(self) -> str:
        """For people: ``2 x H100-80GB``, ``1/4 of 1 x L4``, ``cpu``."""
        if not self.count:
            return self.class_name
        whole = f"{self.count} x {self.class_name}"
        return whole if self.share == 1 else f"{self.share} of {whole}"


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

    Raises:
        Misconfigured: ``unknown-state``, or ``bad-transition`` for a name that is empty, too long or not printable,
            a time that is none, or labels that are not sorted.
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

    def __post_init__(self) -> None:
        if type(self.state) is not State:
            object.__setattr__(self, "state", parse_state(self.state))
        if type(self.at_us) is not int or not 0 <= self.at_us < LATEST_US:
            raise _odd(f"{self.at_us!r} is no time: microseconds UTC from 1970 to 2999")
        for name in _NEEDED:
            _check(name, getattr(self, name), least=1)
        for name in _NAMED:
            if value := getattr(self, name):
                _check(name, value, least=0)
        if self.labels:
            for label, value in self.labels:
                _check("the name of a label", label, least=1)
                _check(f"label {label}", value, least=0)
            names = [label for label, _ in self.labels]
            if names != sorted(set(names)):
                raise _odd("its labels are not sorted, each name once")

    @property
    def labels_json(self) -> str:
        """The labels as one canonical JSON object; empty without any."""
        return json.dumps(dict(self.labels), sort_keys=True) if self.labels else ""


def parse_state(text: str) -> State:
    """The state of a word.

    Raises:
        Misconfigured: ``unknown-state``.
    """
    try:
        return State(text)
    except ValueError:
        raise Misconfigured("unknown-state", f"{text!r} is not a state", hint=f"one of {', '.join(State)}") from None


def parse_share(text: str) -> Fraction:
    """A share as people type it: ``1/4``, ``0.25``, ``1``; its bounds are the placement's to check.

    Raises:
        Misconfigured: ``bad-placement`` when it is no number.
    """
    share = text.strip()
    try:
        if _SHARE.fullmatch(share):
            return Fraction(share)
    except ZeroDivisionError:
        pass
    raise _bad(f"{text[:40]!r} is not a share", "--share 1/4")


def parse_labels(pairs: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Labels of ``name=value``, sorted.

    Raises:
        Misconfigured: ``bad-transition`` when one has no ``=``, or stands twice.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name or name in found:
            raise _odd(f"{pair!r} is not one label, name=value, each name once")
        found[name] = value
    return tuple(sorted(found.items()))


def event_id_of(*parts: object) -> str:
    """An id for an event whose source gives none: of its content, so that the same is told once."""
    return sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()[:24]


_NEEDED = ("workload", "event_id", "source")
_NAMED = ("user", "team", "project", "requested_class")


def _check(name: str, text: object, *, least: int) -> None:
    if type(text) is not str or not least <= len(text) <= LONGEST_NAME or not text.isprintable():
        raise _odd(f"{name} is {_needed(text, least)}")


def _needed(text: object, least: int) -> str:
    shown = f"{text!r}"[:60]
    return f"{shown}: text of {least} to {LONGEST_NAME} printable characters is needed"


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


def _odd(sentence: str) -> Misconfigured:
    return Misconfigured("bad-transition", sentence, hint="gpuledger transition --help")
