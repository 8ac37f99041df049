"""The words of Slurm's accounting: a row as text and JSON both give it, and the problems met on the way.

Between the parsers (``slurm_sacct``, ``slurm_json``) and ``slurm_jobs``, which makes transitions of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US
from gpuledger.model.problem import Problem

MOST_PROBLEMS = 20
"""Problems of one code that are named one by one; the rest are counted."""

NOT_TOLD = Missing("sacct: not told")

TOLD_TWICE = Missing("sacct: an hour that the local clock showed twice, and nothing tells which is meant")
"""A moment of asking that two readings leave open."""

HINT = (
    "what is understood: sacct -a -D -P --format=JobID,Cluster,User,Account,Partition,QOS,State,Submit,Eligible,"
    "Start,End,ElapsedRaw,Suspended,ReqTRES,AllocTRES,NodeList; or sacct -a --json"
)


class Doubt(StrEnum):
    """What local times leave open of a run, where the clock showed an hour twice and the row does not tell which."""

    NONE = ""
    PLACE = "place"
    """How long it was is sure, and not when: by the width of the step that the clock was set back."""
    LENGTH = "length"
    """How long it was is not told either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmRow:
    """One row of accounting: an allocation of a job, or a step in it.

    Args:
        line: where it begins in the file, 1-based.
        job: ``123``, ``123_4`` of an array, ``123+0`` of a heterogeneous job, ``123_[5-9]`` of tasks yet to start.
        step: ``0``, ``batch``, ``extern``; empty for the allocation itself.
        cluster, user, account, partition, qos: as told; may be empty.
        state: Slurm's word alone, ``CANCELLED`` without who did it.
        submit_us, eligible_us, start_us, end_us: microseconds UTC; Missing where Slurm knows none.
        doubt: of start and end, which then are the earliest that they can be.
        elapsed_s: seconds from start to end, or to the dump, less ``suspended_s``.
        suspended_s: seconds it was suspended.
        restarts: how often it was requeued before this run; 0 where that is not told.
        allocated, requested: TRES strings; empty where there are none.
        is_untold: whether no column tells what was allocated, so that empty does not mean nothing.
        nodes: Slurm's node list; empty where none is assigned.
    """

    line: int
    job: str
    step: str = ""
    cluster: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    state: str = ""
    submit_us: int | Missing = NOT_TOLD
    eligible_us: int | Missing = NOT_TOLD
    start_us: int | Missing = NOT_TOLD
    end_us: int | Missing = NOT_TOLD
    doubt: Doubt = Doubt.NONE
    elapsed_s: int | Missing = NOT_TOLD
    suspended_s: int | Missing = NOT_TOLD
    restarts: int = 0
    allocated: str = ""
    requested: str = ""
    is_untold: bool = False
    nodes: str = ""

    @property
    def lasted_s(self) -> int:
        """Seconds that it is told to have held what it held, suspended or not; 0 where that is not told."""
        if not isinstance(self.start_us, Missing) and not isinstance(self.end_us, Missing):
            return max(0, (self.end_us - self.start_us) // SECOND_US)
        if isinstance(self.elapsed_s, Missing):
            return 0
        return self.elapsed_s + (0 if isinstance(self.suspended_s, Missing) else self.suspended_s)

    @property
    def known_until_us(self) -> int | Missing:
        """The end, or until when it is known to have gone on: start + elapsed + suspended, as slurmdbd counts."""
        if not isinstance(self.end_us, Missing):
            return self.end_us
        if isinstance(self.start_us, Missing) or isinstance(self.elapsed_s, Missing):
            return NOT_TOLD
        return self.start_us + self.lasted_s * SECOND_US


def is_several(nodes: str) -> bool:
    """Whether a node list names more than one: ``n[1-4]``, ``n1,n2``."""
    return "[" in nodes or "," in nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmRows:
    """What a file of accounting holds.

    Args:
        rows: in the order of the file; of rows that are identical in every field the first.
        repeated: how many were left out because an identical one came before.
        problems: what could not be understood, with line numbers.
    """

    rows: tuple[SlurmRow, ...]
    repeated: int = 0
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class Findings:
    """Collects problems: of each code the first few by line, and the rest by number and size."""

    path: str
    named: list[Problem] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    surplus: dict[str, int] = field(default_factory=dict)

    def add(self, problem: Problem, line: int, *, device_seconds: int = 0) -> None:
        """Note one.

        Args:
            problem: without its place.
            line: in the file, or 0 where all of it is meant.
            device_seconds: what it is about, for the sum of those that are only counted.
        """
        code = problem.code
        count = self.counts[code] = self.counts.get(code, 0) + 1
        if count <= MOST_PROBLEMS:
            self.named.append(replace(problem, where=f"{self.path}:{line}" if line else self.path))
        else:
            self.surplus[code] = self.surplus.get(code, 0) + device_seconds

    def all(self) -> tuple[Problem, ...]:
        """The named ones in order, then one line for each code that had more."""
        rest = []
        for code, device_seconds in self.surplus.items():
            size = f", {device_seconds:,} device-seconds in all" if device_seconds else ""
            message = f"{self.counts[code] - MOST_PROBLEMS:,} more like these{size}"
            rest.append(Problem(code=code, message=message, where=self.path))
        return (*self.named, *rest)
