"""The states of a job, and of several rows that tell of one run the one that counts.

A dump of today and one of last week, appended to each other, tell of a run while it goes on and when it has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.model.problem import Problem
from gpuledger.sources.slurm_rows import NOT_TOLD, TOLD_TWICE, Findings, SlurmRow

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
            message = (
                f"job {row.job} with this start stands in line {before.line} too, with other fields; "
                "the one that ends later counts"
            )
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
            message = (
                f"job {row.job} was requeued {row.restarts} times, and {here} of its {runs} runs are in the dump: "
                "the others are not counted; sacct prints them with -D, where they do not lie before its -S"
            )
            findings.add(Problem(code="runs-missing", message=message), row.line)


def without_foreseen_end(row: SlurmRow) -> SlurmRow:
    """The row, without an End that lies beyond what Elapsed has seen of a run that goes on: its time limit, no end."""
    if row.state not in OPEN or isinstance(row.end_us, Missing) or isinstance(row.elapsed_s, Missing):
        return row
    seen = replace(row, end_us=NOT_TOLD)
    until_us = seen.known_until_us
    return row if isinstance(until_us, Missing) or row.end_us <= until_us + CLOCK_TOLERANCE_US else seen


def was_cancelled_waiting(row: SlurmRow) -> bool:
    """Whether a job was cancelled before it ran, although it has a start: until 2017 at least that was its end.

    Such a row has no nodes, and its AllocTRES is what it asked for.
    """
    return row.state == "CANCELLED" and row.start_us == row.end_us and not row.nodes


def ends_before(rows: Sequence[SlurmRow]) -> dict[tuple[str, str, int], int]:
    """Of each run that follows another of its job, cluster, job and start: when the one before ended.

    A job that is requeued may keep the Submit and Eligible of its first run, and did not wait while it ran.
    """
    runs: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for row in rows:
        if not isinstance(row.start_us, Missing):
            end_us = row.known_until_us
            until_us = row.start_us if isinstance(end_us, Missing) else max(end_us, row.start_us)
            runs.setdefault((row.cluster, row.job), []).append((row.start_us, until_us))
    found: dict[tuple[str, str, int], int] = {}
    for job, spans in runs.items():
        spans.sort()
        for (_, until_us), (start_us, _) in pairwise(spans):
            found[*job, start_us] = min(until_us, start_us)
    return found


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
