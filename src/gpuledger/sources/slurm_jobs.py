"""Slurm's accounting as history: what each job held, from when to when.

Rows in, transitions out; pure. An allocation is what a job holds, so steps, which run inside it, are never
added. Each start of a job is a workload of its own, ``slurm:CLUSTER/JOB@START``: a requeued job starts again. A
job that has not started is ``slurm:CLUSTER/JOB``, the tasks of an array that have not are ``JOB_[*]``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from fractions import Fraction

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.model.lifecycle import CPU, MOST_DEVICES, SLURM, History, Placement, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US, iso
from gpuledger.model.problem import Problem
from gpuledger.sources import slurm_json, slurm_sacct
from gpuledger.sources.slurm_rows import HINT, TOLD_TWICE, Doubt, Findings, SlurmRow, SlurmRows, is_several
from gpuledger.sources.slurm_runs import (
    BROKE,
    ENDED,
    KNOWN,
    OPEN,
    WAITING,
    each_run_once,
    ends_before,
    find_requeued,
    waits_from,
    was_cancelled_waiting,
    without_foreseen_end,
)
from gpuledger.sources.slurm_steps import find_missing
from gpuledger.sources.slurm_sums import Sum, Sums
from gpuledger.sources.slurm_tres import UNTYPED, Held, class_asked, class_of, held

SOURCE = "slurm"

TWICE = "was shown twice by the local clock"

MOST_GPUS = 1_000_000
"""Of one job; more is a broken cell, and would make as many rows of it. The largest machines have a tenth."""

_JSON = re.compile(r"[\s\ufeff]*(?:\{|\[\s*\{)")

TOLERANCE_S = 2
"""End less start may differ so much from Elapsed: the two are rounded apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmHistory:
    """What an import of Slurm's accounting found.

    Args:
        history: the transitions, and what was imperfect.
        allocations, steps: rows of each kind, identical ones once.
        repeated: rows left out because an identical one came before.
        without_gpu: runs without a GPU, and jobs that wait for none; told only where CPUs are asked for.
        spread: runs with GPUs on several nodes, in device-seconds: of which host each was is not told.
        running: runs that were open when the dump was taken.
        waiting: jobs that had not started.
    """

    history: History
    allocations: int
    steps: int
    repeated: int
    without_gpu: int
    spread: Sum
    running: int
    waiting: int


def parse(
    content: bytes,
    *,
    path: str,
    zone: tzinfo | None,
    columns: Sequence[str] = (),
    cluster: str = "",
    source: str = "",
    include_cpu: bool = False,
    shards_per_gpu: int = 0,
) -> SlurmHistory:
    """The history in a dump of ``sacct -P`` or ``sacct --json``.

    Args:
        content: the file; bytes that are no UTF-8 do no harm.
        path: the file as the user named it, for messages.
        zone: of its local times; None when not given, which JSON does not need.
        columns: their names, for text without header.
        cluster: of rows that name none; may be empty.
        source: who says so; empty: ``slurm:`` and the row's own cluster, so that the same row of another dump has the
            same source, or ``slurm`` where no cluster is told.
        include_cpu: whether jobs without a GPU are told, as class ``cpu`` with a label ``cpus``.
        shards_per_gpu: how many ``gres/shard`` make one GPU; 0 where not given.

    Raises:
        BadInput: ``not-text``, ``not-sacct``, ``no-header``, ``columns-missing``, ``columns-differ``.
        Misconfigured: ``zone-needed``.
    """
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        wide = "it is UTF-16, which PowerShell writes: `iconv -f UTF-16 -t UTF-8` makes it text"
        what = wide if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "a NUL byte: this is a binary file"
        raise BadInput("not-text", what, path=path, line=line, hint=HINT)
    text = content.decode("utf-8", "surrogateescape")
    if _JSON.match(text):
        rows = slurm_json.parse(text, path=path)
    else:
        rows = slurm_sacct.parse(text, path=path, zone=zone, columns=columns)
    return history_of(
        rows, path=path, cluster=cluster, source=source, include_cpu=include_cpu, shards_per_gpu=shards_per_gpu
    )


def history_of(
    rows: SlurmRows, *, path: str, cluster: str = "", source: str = "", include_cpu: bool = False,
    shards_per_gpu: int = 0,
) -> SlurmHistory:  # fmt: skip
    """The history in rows; arguments as for :func:`parse`.

    The rows that are open say until when they were known to be: start + elapsed + suspended. Where they agree,
    as in one dump they do, that is ``as_of_us``. Where they do not, ``as_of_us`` is the earliest, and each that was
    seen later has one more ``running`` then, so that all of what is known is metered, and nothing beyond it.
    """
    builder = _Builder(path, cluster, source, include_cpu=include_cpu, shards_per_gpu=shards_per_gpu)
    return builder.build(rows)


class _Builder:
    """One dump as it becomes a history."""

    def __init__(self, path: str, cluster: str, source: str, *, include_cpu: bool, shards_per_gpu: int) -> None:
        self._cluster = cluster
        self._source = source
        self._include_cpu = include_cpu
        self._shards_per_gpu = shards_per_gpu
        self._findings = Findings(path)
        self._transitions: list[Transition] = []
        self._placements: dict[tuple[str, int, str, Fraction], Placement] = {}
        self._known_labels: dict[tuple[str, str, str], tuple[tuple[str, str], ...]] = {}
        self._open: list[tuple[int, Transition]] = []
        self._open_without_end = 0
        self._without_gpu = self._running = self._waiting = self._ran = 0
        self._ended_before: dict[tuple[str, str, int], int] = {}
        self._sums = Sums.of_none()

    def build(self, rows: SlurmRows) -> SlurmHistory:
        allocations = [without_foreseen_end(row) for row in rows.rows if not row.step]
        steps = [row for row in rows.rows if row.step]
        counted = each_run_once(allocations, self._findings)
        self._ended_before = ends_before(counted)
        for row in counted:
            done = len(self._transitions)
            try:
                self._add(row, held(row.allocated), held(row.requested))
            except (ValueError, Misconfigured) as problem:
                del self._transitions[done:]
                message = f"job {row.job}: {problem}; it is left out"
                self._findings.add(Problem(code="broken-line", message=message), row.line)
        find_missing(allocations, steps, self._findings)
        counting = [row for row in allocations if self._include_cpu or "gres/" in row.allocated + row.requested]
        find_requeued(counting, self._findings)
        as_of_us = self._close()
        names_gpus = any("gres/" in row.allocated + row.requested for row in rows.rows)
        for told in self._sums.problems(ran=self._ran, names_gpus=names_gpus):
            self._findings.add(told, 0)
        self._transitions.sort(key=lambda one: one.at_us)
        sources = {each.source for each in self._transitions}
        history = History(
            source=self._source or (sources.pop() if len(sources) == 1 else SOURCE),
            transitions=tuple(self._transitions),
            as_of_us=as_of_us,
            problems=(*rows.problems, *self._findings.all()),
            rows_read=len(rows.rows) + rows.repeated,
        )
        return SlurmHistory(
            history=history,
            allocations=len(allocations),
            steps=len(steps),
            repeated=rows.repeated,
            without_gpu=self._without_gpu,
            spread=self._sums.spread,
            running=self._running,
            waiting=self._waiting,
        )

    def _add(self, row: SlurmRow, given: Held, asked: Held) -> None:
        size = given.count * row.lasted_s
        if row.state not in KNOWN:
            message = f"job {row.job} is {row.state[:40]!r}, a state not known; {size:,} device-seconds are not counted"
            self._findings.add(Problem(code="unknown-state", message=message), row.line, device_seconds=size)
            return
        if isinstance(row.start_us, Missing) and size:
            message = (
                f"job {row.job} held {given.count} GPUs for {row.lasted_s:,} s, and since when is not told; "
                f"{size:,} device-seconds are not counted"
            )
            self._findings.add(Problem(code="start-missing", message=message), row.line, device_seconds=size)
            return
        # a job held after it ran has an end; a start without one is only foreseen
        is_foreseen = row.state in WAITING and isinstance(row.end_us, Missing)
        if isinstance(row.start_us, Missing) or is_foreseen or was_cancelled_waiting(row):
            self._add_waiting(row, asked if asked.count or asked.shards or asked.mps else given)
            return
        self._ran += 1
        if given.conflict:
            self._findings.add(Problem(code="tres-conflict", message=f"job {row.job}: {given.conflict}"), row.line)
        end_us = row.known_until_us
        if not isinstance(end_us, Missing) and end_us < row.start_us:
            message = f"job {row.job} ends {iso(end_us)}, before it starts {iso(row.start_us)}; it is left out"
            self._findings.add(Problem(code="end-before-start", message=message), row.line)
            return
        if isinstance(end_us, Missing) and row.state not in OPEN:
            message = f"job {row.job} is {row.state}, and neither End nor Elapsed says since when; it is left out"
            self._findings.add(Problem(code="end-missing", message=message), row.line)
            return
        parts = self._parts(row, given, asked)
        if not parts or self._is_too_doubtful(row):
            return
        self._check_elapsed(row, row.start_us)
        self._sums.note(row, parts, nodes=given.nodes)
        # who asked for any GPU was not refused one: only a type can differ from what was placed
        wanted = "" if (type_name := class_asked(asked)) == UNTYPED else type_name
        for place, part in enumerate(parts):
            self._add_run(row, row.start_us, end_us, part, given, wanted, place if len(parts) > 1 else -1)

    def _is_too_doubtful(self, row: SlurmRow) -> bool:
        """Whether local times leave open how long a run was; where only its place is open, that is told."""
        if not row.doubt:
            return False
        if row.state in OPEN:
            what = "its end will tell which is meant; it is left out until then"
        elif row.doubt is Doubt.LENGTH:
            what = "nothing tells which is meant, so not how long it ran; it is left out"
        else:
            what = "it may lie in either; how long it ran is sure, so it is counted, in the first"
        message = f"job {row.job}: an hour {TWICE}, and {what}"
        self._findings.add(Problem(code="ambiguous-local-time", message=message), row.line)
        return row.doubt is Doubt.LENGTH

    def _waits_from(self, row: SlurmRow, *, tell: bool = True) -> int | Missing:
        """Since when a job could have started; told where two readings leave that open."""
        waits_us = waits_from(row)
        if waits_us == TOLD_TWICE and tell:
            message = f"job {row.job}: an hour {TWICE}, so since when it waited is unknown"
            self._findings.add(Problem(code="ambiguous-local-time", message=message), row.line)
        return waits_us

    def _parts(self, row: SlurmRow, given: Held, asked: Held) -> list[tuple[str, int, Fraction]]:
        """What a run held: class, number and share of devices; more than one where it held several classes."""
        if given.count > MOST_GPUS:
            raise ValueError(f"{given.count:,} GPUs are more than any cluster has")
        if given.devices:
            return [
                (class_of(class_name), min(MOST_DEVICES, number - done), Fraction(1))
                for class_name, number in given.devices
                for done in range(0, number, MOST_DEVICES)
            ]
        if given.shards and self._shards_per_gpu:
            if given.shards > MOST_DEVICES:
                raise ValueError(f"{given.shards} shards are more than {MOST_DEVICES}")
            return [(class_of(given.parts_of), given.shards, Fraction(1, self._shards_per_gpu))]
        if given.shards or given.mps:
            self._sums.unsized.add(row.lasted_s, (given.shards or given.mps) * row.lasted_s)
            return []
        if not row.allocated and asked.count and row.lasted_s:
            size = asked.count * row.lasted_s
            message = (
                f"job {row.job} asked for {asked.count} GPUs, and what it was given is not told; "
                f"{size:,} device-seconds are not counted"
            )
            self._findings.add(Problem(code="allocation-unknown", message=message), row.line, device_seconds=size)
            return []
        # who asked for CPUs alone was given no GPU; who asked for parts of one may have been
        if row.is_untold and row.lasted_s and (not row.requested or asked.shards or asked.mps):
            self._sums.untold.add(row.lasted_s)
            return []
        self._without_gpu += 1
        return [(CPU, 0, Fraction(1))] if self._include_cpu else []

    def _add_run(
        self, row: SlurmRow, start_us: int, end_us: int | Missing, part: tuple[str, int, Fraction],
        given: Held, asked: str, number: int,
    ) -> None:  # fmt: skip
        """The transitions of one run on devices of one class."""
        class_name, count, share = part
        workload = f"{self._job(row)}@{iso(start_us)}" + (f"/{number}" if number >= 0 else "")
        machine = "" if is_several(row.nodes) else row.nodes
        key = (class_name, count, machine, share)
        placement = self._placements.get(key)
        if placement is None:
            placement = Placement(class_name=class_name, machine=machine, count=count, share=share)
            self._placements[key] = placement
        labels = plain = self._labels(row)
        waits_us = self._waits_from(row, tell=number < 1)
        if not isinstance(waits_us, Missing):
            # while the run before went on, nobody waited
            waits_us = max(waits_us, self._ended_before.get((row.cluster, row.job, start_us), waits_us))
            self._say(row, workload, State.PENDING, min(waits_us, start_us), asked, labels)
        if given.nodes > 1:
            labels = (*labels, ("nodes", str(given.nodes)))
        if class_name == CPU and given.cpus:
            labels = (*labels, ("cpus", str(given.cpus)))
        run = self._say(row, workload, State.RUNNING, start_us, asked, tuple(sorted(labels)), placement)
        if row.state in OPEN:
            self._running += 1
            if isinstance(end_us, Missing):
                self._open_without_end += 1
            else:
                self._open.append((end_us, run))
        elif not isinstance(end_us, Missing):
            how = State.FAILED if row.state in BROKE else State.STOPPED
            ends = (*plain, ("state", row.state.lower()))
            self._say(row, workload, how, end_us, asked, ends)

    def _add_waiting(self, row: SlurmRow, asked: Held) -> None:
        """A job that has not started, or was cancelled before it did."""
        if not (asked.count or asked.shards or asked.mps or self._include_cpu):
            self._without_gpu += 1
            return
        if row.state in ENDED and row.doubt:
            message = f"job {row.job}: an hour {TWICE}, so until when it waited is unknown; it is left out"
            self._findings.add(Problem(code="ambiguous-local-time", message=message), row.line)
            return
        self._waiting += 1
        waits_us, workload, labels = self._waits_from(row), self._job(row), self._labels(row)
        if isinstance(waits_us, Missing):
            return
        wanted = class_asked(asked) or CPU
        pending = self._say(row, workload, State.PENDING, waits_us, wanted, labels, number=iso(waits_us))
        if row.state in ENDED and not isinstance(row.end_us, Missing):
            ends = (*labels, ("state", row.state.lower()))
            self._say(row, workload, State.STOPPED, max(row.end_us, pending.at_us), wanted, ends)

    def _say(
        self, row: SlurmRow, workload: str, state: State, at_us: int, asked: str,
        labels: tuple[tuple[str, str], ...], placement: Placement | None = None, *, number: str = "",
    ) -> Transition:  # fmt: skip
        word = "end" if state in (State.STOPPED, State.FAILED) else state.value
        transition = Transition(
            workload=workload,
            event_id=f"{workload}#{word}{number and '@'}{number}",
            state=state,
            at_us=at_us,
            source=self._told_by(row),
            user=row.user,
            project=row.account,
            requested_class=asked,
            placement=placement,
            labels=labels,
        )
        self._transitions.append(transition)
        return transition

    def _job(self, row: SlurmRow) -> str:
        cluster = row.cluster or self._cluster
        # the tasks of an array that wait are one row, and fewer in each later dump
        array, bracket, _ = row.job.partition("_[")
        job = f"{array}_[*]" if bracket else row.job
        return f"{SLURM}{cluster}/{job}" if cluster else f"{SLURM}{job}"

    def _told_by(self, row: SlurmRow) -> str:
        cluster = row.cluster or self._cluster
        return self._source or (f"{SOURCE}:{cluster}" if cluster else SOURCE)

    def _labels(self, row: SlurmRow) -> tuple[tuple[str, str], ...]:
        key = (row.cluster or self._cluster, row.partition, row.qos)
        labels = self._known_labels.get(key)
        if labels is None:
            named = zip(("cluster", "partition", "qos"), key, strict=True)
            labels = self._known_labels[key] = tuple((name, value) for name, value in named if value)
        return labels

    def _close(self) -> int | Missing:
        """Until when what is open is known; see :func:`history_of`."""
        if not self._open:
            return Missing("sacct: no Elapsed of what runs" if self._open_without_end else "sacct: nothing runs in it")
        as_of_us = min(at_us for at_us, _ in self._open)
        for at_us, run in self._open:
            if at_us > as_of_us:
                event_id = f"{run.event_id}@{iso(at_us)}"
                self._transitions.append(replace(run, event_id=event_id, at_us=at_us))
        return as_of_us

    def _check_elapsed(self, row: SlurmRow, start_us: int) -> None:
        if isinstance(row.end_us, Missing) or isinstance(row.elapsed_s, Missing):
            return
        suspended_s = 0 if isinstance(row.suspended_s, Missing) else row.suspended_s
        lasted_s = (row.end_us - start_us) // SECOND_US - suspended_s
        if abs(lasted_s - row.elapsed_s) > TOLERANCE_S:
            message = (
                f"job {row.job}: from Start to End it is {lasted_s:,} s, and Elapsed says {row.elapsed_s:,} s; "
                "Start and End count; is the zone right?"
            )
            self._findings.add(Problem(code="elapsed-differs", message=message), row.line)
