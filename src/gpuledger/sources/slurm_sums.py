"""What is told of all jobs of a dump together: a sentence for each fact, with the jobs and the time that it is about.

Such facts are of many jobs and of no line: that they were suspended, or that nothing tells what they held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gpuledger.model.durations import several
from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.sources.slurm_rows import SlurmRow, is_several


@dataclass(slots=True)
class Sum:
    """Jobs, how long they ran in seconds, and how much of what they held that is."""

    jobs: int = 0
    seconds: int = 0
    amount: Fraction = Fraction(0)

    def add(self, seconds: int, amount: Fraction | int = 0) -> None:
        """One job more."""
        self.jobs += 1
        self.seconds += seconds
        self.amount += amount


@dataclass(frozen=True, slots=True)
class Sums:
    """The facts of one dump.

    Args:
        suspended: jobs that were, for how long, and what they held meanwhile in device-seconds.
        unsized: jobs with parts of GPUs of which nothing tells how many make one; in part-seconds.
        untold: jobs that ran, and nothing tells what they were given or asked for.
        spread: jobs with GPUs on several nodes; in device-seconds.
    """

    suspended: Sum
    unsized: Sum
    untold: Sum
    spread: Sum

    @classmethod
    def of_none(cls) -> Sums:
        """Before the first job."""
        return cls(Sum(), Sum(), Sum(), Sum())

    def note(self, row: SlurmRow, parts: Sequence[tuple[str, int, Fraction]], *, nodes: int) -> None:
        """One run.

        Args:
            row: of the run.
            parts: what it held: class, number and share of devices.
            nodes: how many nodes its TRES tell; 0 where they do not.
        """
        was_suspended = not isinstance(row.suspended_s, Missing) and row.suspended_s > 0
        is_spread = nodes > 1 or is_several(row.nodes)
        if not (was_suspended or is_spread):
            return
        devices = sum((count * share for _, count, share in parts), Fraction(0))
        if not isinstance(row.suspended_s, Missing) and was_suspended:
            self.suspended.add(row.suspended_s, devices * row.suspended_s)
        if is_spread and devices:
            self.spread.add(row.lasted_s, devices * row.lasted_s)

    def problems(self, *, ran: int, names_gpus: bool) -> Iterator[Problem]:
        """A problem for each fact that is one.

        Args:
            ran: allocations that ran.
            names_gpus: whether any row names a GPU or a part of one.
        """
        jobs = self.suspended.jobs
        if jobs:
            message = (
                f"{several(jobs, 'job')} {_was(jobs)} suspended for {self.suspended.seconds:,} s; Slurm keeps the GPUs "
                f"of a suspended job for it, so {int(self.suspended.amount):,} device-seconds of that are counted"
            )
            yield Problem(code="suspended", message=message)
        if self.unsized.jobs:
            message = (
                f"{several(self.unsized.jobs, 'job')} held parts of GPUs (gres/shard, gres/mps) for "
                f"{int(self.unsized.amount):,} part-seconds, and how many parts make a GPU the accounting does not "
                "tell; they are not counted"
            )
            yield Problem(code="shares-unsized", message=message)
        if self.untold.jobs:
            message = (
                f"{several(self.untold.jobs, 'job')} ran for {self.untold.seconds:,} s, and what was held nothing "
                "tells: UNKNOWN, and not counted"
            )
            yield Problem(code="allocation-untold", message=message)
        if ran and not names_gpus:
            message = (
                f"{several(ran, 'job')} ran, and no row names a GPU: Slurm tells of them where slurm.conf has "
                "AccountingStorageTRES=gres/gpu, so where GPUs were held, that is UNKNOWN and not 0"
            )
            yield Problem(code="gpus-untracked", message=message)


def _was(jobs: int) -> str:
    return "was" if jobs == 1 else "were"
