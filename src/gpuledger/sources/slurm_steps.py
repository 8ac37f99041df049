"""Steps whose allocation is missing: what they held is told, and not counted.

A dump that was cut, filtered or has broken lines may tell of a step and not of the allocation in which it ran.
Steps overlap each other and are parts of the allocation, so no sum of them is what the job held.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.sources.slurm_rows import Findings, SlurmRow
from gpuledger.sources.slurm_tres import held


def find_missing(allocations: Sequence[SlurmRow], steps: Sequence[SlurmRow], findings: Findings) -> None:
    """Note each job with steps and no allocation as ``allocation-missing``, with the size of its largest step."""
    known: dict[str, list[SlurmRow]] = {}
    for row in allocations:
        known.setdefault(row.job, []).append(row)
        # a step of a heterogeneous job may be named by the whole job
        whole, plus, _ = row.job.partition("+")
        if plus:
            known.setdefault(whole, []).append(row)
    orphans: dict[tuple[str, str], list[SlurmRow]] = {}
    for step in steps:
        if not any(_is_of(step, row) for row in known.get(step.job, ())):
            orphans.setdefault((step.cluster, step.job), []).append(step)
    for (_, job), found in orphans.items():
        try:
            counts = [held(step.allocated).count for step in found]
        except ValueError as problem:
            findings.add(
                Problem(code="broken-line", message=f"a step of job {job}: {problem}; it is left out"), found[0].line
            )
            counts = [0]
        _note(job, found, counts, findings)


def _is_of(step: SlurmRow, row: SlurmRow) -> bool:
    """Whether a step ran in an allocation of its job: of its cluster, or, where names differ, at its time."""
    if step.cluster == row.cluster:
        return True
    if isinstance(step.start_us, Missing) or isinstance(row.start_us, Missing):
        return False
    until_us = row.known_until_us
    return row.start_us <= step.start_us and (isinstance(until_us, Missing) or step.start_us <= until_us)


def _note(job: str, found: Sequence[SlurmRow], counts: Sequence[int], findings: Findings) -> None:
    # the extern step spans all of the allocation (slurm.conf, PrologFlags=Contain)
    count, step = max(
        zip(counts, found, strict=False),
        key=lambda one: (one[1].step == "extern" and one[0] > 0, one[0] * one[1].lasted_s),
    )
    size = count * step.lasted_s
    many = f"{len(found)} steps" if len(found) > 1 else "a step"
    message = f"job {job} has {many} and no allocation, so it is not counted"
    if size:
        message += f": its step {step.step} held {count} GPUs, {size:,} device-seconds"
    findings.add(Problem(code="allocation-missing", message=message), found[0].line, device_seconds=size)
