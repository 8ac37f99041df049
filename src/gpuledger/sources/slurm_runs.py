"""The states of a job, and of several rows that tell of one run the one that counts.

A dump of today and one of last week, appended to each other, tell of a run while it goes on and when it has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.sources.slurm_rows import TOLD_TWICE, Findings, SlurmRow

WAITING = frozenset({"PENDING", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
"""Not started."""

OPEN = frozenset({
    "RUNNING", "SUSPENDED", "STOPPED", "COMPLETING", "CONFIGURING", "SIGNALING", "STAGE_OUT",
    "POWER_UP_NODE", "EXPEDITING",
})  # fmt: skip
"""Holding its allocation."""

BROKE = frozenset({"FAILED", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL", "OUT_OF_MEMORY"})
"""Ended by a fault."""

OVER = frozenset({"COMPLETED", "CANCELLED", "TIMEOUT", "PREEMPTED", "DEADLINE", "REQUEUED", "RESIZING", "REVOKED"})
"""Ended, by itself or by somebody's will, a time limit among them. RESIZING goes on as another start."""

ENDED = BROKE | OVER
KNOWN = WAITING | OPEN | ENDED
_UNFINISHED = WAITING | OPEN


def whole_state(word: str) -> str:
    """A state as it was cut for a narrow column, ``OUT_OF_ME+``: the one that begins so, else what stands there."""
    cut = word.removesuffix("+")
    if cut == word or cut in KNOWN:
        return cut
    begun = [state for state in KNOWN if state.startswith(cut)]
    return begun[0] if len(begun) == 1 else cut


def each_run_once(rows: Sequence[SlurmRow], findings: Findings) -> list[SlurmRow]:
    """Of the allocations in a file those that count, in its order: of each job and start one.

    A run that ended in two ways is noted as a ``conflict``.
    """
    kept: dict[tuple[str, str, object], SlurmRow] = {}
    last_start_us: dict[tuple[str, str], int] = {}
    for row in rows:
        run = (row.cluster, row.job, None if isinstance(row.start_us, Missing) else row.start_us)
        before = kept.get(run)
        if before is None or _rank(row) > _rank(before):
            kept[run] = row
        if before and _told(before) != _told(row) and not {before.state, row.state} & _UNFINISHED:
            message = f"job {row.job} with this start stands in line {before.line} too, with other fields"
            message += "; the one that ends later counts"
            findings.add(Problem(code="conflict", message=message), row.line)
        if not isinstance(row.start_us, Missing):
            last_start_us[run[:2]] = max(row.start_us, last_start_us.get(run[:2], 0))
    # a row of waiting is overtaken by a later start of its job
    return [row for row in kept.values() if not _has_started(row, last_start_us.get((row.cluster, row.job), 0))]


def find_requeued(rows: Sequence[SlurmRow], findings: Findings) -> None:
    """Note the jobs that were requeued and of which runs are missing.

    Without -D ``sacct -P`` prints the last run alone; ``sacct --json`` prints all (both seen with Slurm 22.05). How
    often a job was requeued is told by the column ``Restarts`` and by ``restart_cnt`` in JSON, of later versions.
    """
    starts: dict[tuple[str, str], set[int]] = {}
    last: dict[tuple[str, str], SlurmRow] = {}
    for row in rows:
        job = (row.cluster, row.job)
        if not isinstance(row.start_us, Missing):
            starts.setdefault(job, set()).add(row.start_us)
        if row.restarts and row.restarts >= (last[job].restarts if job in last else 0):
            last[job] = row
    for job, row in last.items():
        runs = row.restarts + (not isinstance(row.start_us, Missing))
        here = len(starts.get(job, ()))
        if here < runs:
            message = f"job {row.job} was requeued {row.restarts} times, and {here} of its {runs} runs are in the dump"
            message += ": the others are not counted; sacct prints them with -D, where they do not lie before its -S"
            findings.add(Problem(code="runs-missing", message=message), row.line)


def waits_from(row: SlurmRow) -> int | Missing:
    """Since when a job could have started: a dependency or a begin time holds it without waiting for capacity."""
    is_told = not isinstance(row.eligible_us, Missing) or row.eligible_us == TOLD_TWICE
    return row.eligible_us if is_told else row.submit_us


def _has_started(row: SlurmRow, last_start_us: int) -> bool:
    """Whether a row of waiting is overtaken by a later start of its job."""
    if not isinstance(row.start_us, Missing):
        return False
    since_us = waits_from(row)
    return not isinstance(since_us, Missing) and since_us <= last_start_us


def _told(row: SlurmRow) -> tuple[object, ...]:
    """What makes two rows of one run say the same."""
    return row.end_us, row.allocated, row.user, row.account


def _rank(row: SlurmRow) -> tuple[bool, int]:
    """Which of two rows of one run knows more: one that has ended, then the later."""
    end_us = row.known_until_us
    return row.state not in _UNFINISHED, -1 if isinstance(end_us, Missing) else end_us
