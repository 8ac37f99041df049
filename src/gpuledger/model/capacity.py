"""The answer to "what is always queued, how often is something else given, how much is held": what ``capacity`` shows.

Between the stages too: an :class:`Admission` and a :class:`HeldSpan` are what measuring makes of transitions, and
what the answer is made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem

EVERY = "all"
"""The name of the line over all classes."""


class Outcome(StrEnum):
    """How a wait ended."""

    STARTED = "started"
    GAVE_UP = "gave-up"
    WAITING = "waiting"
    """It has not ended, as far as is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """One request for devices, and what came of it.

    Args:
        requested: the class asked for; ``A|B`` is met by either; empty where any will do, or it is not told.
        asked_us: since when it waited, microseconds UTC; Missing where nobody told of it before it started.
        until_us: when it started or gave up; of one that waits, until when that is known.
        outcome: which of these.
        placed: class of its first placement; empty where none is known.
    """

    requested: str
    asked_us: int | Missing
    until_us: int
    outcome: Outcome
    placed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSpan:
    """Devices of one class held by one workload.

    Args:
        class_name: what is held; empty where no placement is known.
        amount: devices x share, exact.
        since_us, until_us: the span, half-open, microseconds UTC.
    """

    class_name: str
    amount: Fraction
    since_us: int
    until_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityLine:
    """One class in a window.

    Waits are counted for the class that was asked for, where none was asked for by name for the one that was given;
    what is held, for the class that was given.

    Args:
        class_name: the class; ``A|B`` where either was asked for; :data:`EVERY` for all of them.
        started: requests that started in the window.
        gave_up: requests that ended in it without having started.
        waiting: requests that waited at its end, or when they were last seen.
        unasked: of those that started, the ones nobody told of before, so that their wait is unknown.
        wait_p50_us, wait_p95_us: of the waits that ended in a start in the window, by nearest rank.
        waited_us: time of the window in which anything waited.
        compared: of those that started, the ones whose request and placement are both known.
        fallbacks: of those compared, the ones that were given something else.
        instead: what they were given, with their number, most first.
        peak, peak_at_us: most devices held at once, and when first.
        mean: devices held, on average over the window.
        owned: devices known at the window's end.
    """

    class_name: str
    started: int
    gave_up: int
    waiting: int
    unasked: int
    wait_p50_us: int | Missing
    wait_p95_us: int | Missing
    waited_us: int | Missing
    compared: int
    fallbacks: int | Missing
    instead: tuple[tuple[str, int], ...]
    peak: Fraction | Missing
    peak_at_us: int | Missing
    mean: Fraction | Missing
    owned: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReport:
    """What was asked for, waited for, given and held between two moments.

    Args:
        since_us, until_us: the window, half-open, microseconds UTC.
        lines: by class name.
        overall: over all of ``lines``.
        answered: whether the ledger tells anything of the window.
        problems: what was imperfect.
    """

    since_us: int
    until_us: int
    lines: tuple[CapacityLine, ...]
    overall: CapacityLine
    answered: bool
    problems: tuple[Problem, ...] = ()
