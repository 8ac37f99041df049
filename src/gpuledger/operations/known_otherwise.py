"""Runs that the ledger knows under another cluster's name, or at another time: a file that is told differently.

In: a history, before any of it is written. Out: nothing, or a refusal that says what to type. What a run is called is
made of its cluster, its job and its start, so the same file with another ``--cluster``, ``--zone`` or ``--origin``
would add all of it once more, and nobody could take it back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpuledger.errors import Misconfigured
from gpuledger.ledger import workloads
from gpuledger.ledger.store import Ledger
from gpuledger.model.durations import count, duration_us
from gpuledger.model.lifecycle import ENDED, SLURM, History, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import MINUTE_US, iso
from gpuledger.model.workload_rows import WorkloadEvent

_MOST = 2_000
"""Runs that are looked up, evenly spread: of a file that was imported before nearly all are known."""

_MOST_CLUSTERS = 100
_OPEN = Missing("it has no end yet")
_AFTER_NUMBERS = f"{SLURM}:"  # the character after 9: jobs of no cluster begin with a digit
_QUARTER_US = 15 * MINUTE_US
"""What the offsets of all zones are multiples of."""

_LENGTHS = 10
"""So many runs of different lengths, nearly all of a file, do not come again by chance after one and the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A run that a history tells: when it began, and its end where it has one."""

    began: Transition
    end_us: int | Missing

    @property
    def job(self) -> str:
        """What runs once at a time: the workload; of Slurm, which names each run, the job of its cluster."""
        name = self.began.workload
        return name.partition("@")[0] if name.startswith(SLURM) else name


def refuse_known_otherwise(ledger: Ledger, history: History, *, path: str) -> None:
    """Let a history pass whose runs are new, or known as what they are.

    Raises:
        Misconfigured: ``cluster-differs``, ``times-differ``: each of these runs would count twice.
    """
    runs = _runs(history.transitions)
    spread = runs[:: max(1, len(runs) // _MOST)]
    known = workloads.known_events(ledger.connection, [(run.began.workload, run.began.event_id) for run in spread])
    fresh = [run for run in spread if (run.began.workload, run.began.event_id) not in known]
    if fresh:
        _refuse_other_clusters(ledger, [run for run in fresh if run.began.workload.startswith(SLURM)], path)
        _refuse_other_times(ledger, fresh, len(known), path)


def _refuse_other_clusters(ledger: Ledger, runs: Sequence[_Run], path: str) -> None:
    for cluster in _clusters(ledger) if runs else ():
        asked = {_of_cluster(run.began.workload, cluster): run for run in runs}
        asked = {name: run for name, run in asked.items() if name != run.began.workload}
        names = [(name, f"{name}#{word}") for name in asked for word in (State.RUNNING, "end")]
        events = workloads.known_events(ledger.connection, names)
        same = [(name, run) for name, run in asked.items() if _is_same(run, name, events)]
        if same:
            name, run = same[0]
            here = _cluster(run.began.workload)
            raise Misconfigured(
                "cluster-differs",
                f"{path}: {count(len(same))} of {count(len(runs))} runs looked up are known already as of "
                f"{_said(cluster)}, {name} the first; as of {_said(here)} they would count twice",
                hint=_hint(here, cluster),
            )


def _is_same(run: _Run, name: str, events: Mapping[tuple[str, str], WorkloadEvent]) -> bool:
    """Whether the run of that name holds the same devices, until the same end where both have one."""
    began, ended = events.get((name, f"{name}#{State.RUNNING}")), events.get((name, f"{name}#end"))
    if began is None or run.began.placement is None or began.placement != run.began.placement.key:
        return False
    return ended is None or isinstance(run.end_us, Missing) or ended.at_us == run.end_us


def _refuse_other_times(ledger: Ledger, runs: Sequence[_Run], known_as_they_are: int, path: str) -> None:
    """Refuse what ran as long to the microsecond, by another clock: at once with itself, or nearly all of a file.

    A file of which more is known as it is has the same clock, and a few rows that somebody moved.
    """
    ended = [(run, run.end_us - run.began.at_us) for run in runs if not isinstance(run.end_us, Missing)]
    known = _known_starts(ledger, {run.job for run, _ in ended})
    shifts = {
        shift_us: [
            (run, length_us)
            for run, length_us in ended
            if _has(known.get((run.job, length_us), ()), run.began.at_us - shift_us)
        ]
        for shift_us in _possible_shifts(ended, known)
    }
    for shift_us, found in sorted(shifts.items(), key=lambda item: -len(item[1])):
        at_once = [run for run, length_us in found if abs(shift_us) < length_us and not shift_us % _QUARTER_US]
        nearly_all = 10 * len(found) >= 9 * len(ended) and len({length_us for _, length_us in found}) >= _LENGTHS
        if (at_once or nearly_all) and len(found) > known_as_they_are:
            first = at_once[0] if at_once else found[0][0]
            raise Misconfigured(
                "times-differ",
                f"{path}: {count(len(found))} of {count(len(ended))} runs looked up are known already, as long and "
                f"{duration_us(abs(shift_us))} {'earlier' if shift_us > 0 else 'later'}: {first.job} starts "
                f"{iso(first.began.at_us)} here; they would count twice",
                hint="--zone and --origin as at the first import; where that was wrong, another ledger: --ledger FILE"
                + ("" if first.job.startswith(SLURM) else "; where these are other jobs, `prefix` in the map"),
            )


def _possible_shifts(ended: Sequence[tuple[_Run, int]], known: Mapping[tuple[str, int], Sequence[int]]) -> list[int]:
    """The clocks, in microseconds, by which a run can have been at once with itself, or nearly all be told again.

    A job with very many runs of one length is not compared run by run: at once with itself are those around it, and
    of the runs that the fewest are alike a clock that fits to nearly all fits to more than half.
    """
    alike = [(run.began.at_us, length_us, known.get((run.job, length_us), ())) for run, length_us in ended]
    found: dict[int, None] = {}
    for at_us, length_us, starts in alike:
        near = starts[bisect_right(starts, at_us - length_us) : bisect_left(starts, at_us + length_us)]
        found |= dict.fromkeys(at_us - since_us for since_us in near if not (at_us - since_us) % _QUARTER_US)
    if len({length_us for _, length_us in ended}) >= _LENGTHS:
        missed = len(ended) // 10
        rarest = sorted(alike, key=lambda one: len(one[2]))[: 2 * missed + 1]
        counts = Counter(at_us - since_us for at_us, _, starts in rarest for since_us in starts)
        found |= dict.fromkeys(shift_us for shift_us, times in counts.items() if times > missed)
    found.pop(0, None)
    return list(found)


def _has(starts: Sequence[int], at_us: int) -> bool:
    place = bisect_left(starts, at_us)
    return place < len(starts) and starts[place] == at_us


def _known_starts(ledger: Ledger, jobs: Iterable[str]) -> dict[tuple[str, int], list[int]]:
    """When each of these jobs began to run, in order, by the job and how long the run was, where its end is known."""
    named = dict.fromkeys(jobs, -1)
    slurm = [job for job in named if job.startswith(SLURM)]
    events = workloads.events_named(ledger.connection, [(f"{job}@", f"{job}A") for job in slurm])
    others = workloads.ask_events(ledger.connection, {job: -1 for job in named if not job.startswith(SLURM)})
    found: dict[tuple[str, int], set[int]] = defaultdict(set)
    began: dict[str, int] = {}
    for event in (*events, *others):
        if event.state == State.RUNNING:
            began.setdefault(event.workload, event.at_us)
        elif event.state in ENDED and event.workload in began:
            job = event.workload.partition("@")[0] if event.workload.startswith(SLURM) else event.workload
            since_us = began.pop(event.workload)
            found[job, event.at_us - since_us].add(since_us)
    return {key: sorted(starts) for key, starts in found.items()}


def _runs(transitions: Sequence[Transition]) -> list[_Run]:
    """The runs that a history tells, each with its end where it has one."""
    began: dict[str, Transition] = {}
    found: list[_Run] = []
    for each in transitions:
        if each.state is State.RUNNING:
            began.setdefault(each.workload, each)
        elif each.state in ENDED and each.workload in began:
            found.append(_Run(began=began.pop(each.workload), end_us=each.at_us))
    return found + [_Run(began=each, end_us=_OPEN) for each in began.values()]


def _clusters(ledger: Ledger) -> Iterator[str]:
    """The clusters of which the ledger knows jobs, from name to next name by the index; empty for none."""
    after = SLURM
    for _ in range(_MOST_CLUSTERS):
        name = workloads.name_after(ledger.connection, after)
        if isinstance(name, Missing) or not name.startswith(SLURM):
            return
        cluster = _cluster(name)
        yield cluster
        after = f"{SLURM}{cluster}/~" if cluster else _AFTER_NUMBERS


def _cluster(workload: str) -> str:
    """The cluster of a run of Slurm; empty for none."""
    return workload.removeprefix(SLURM).partition("@")[0].rpartition("/")[0]


def _of_cluster(workload: str, cluster: str) -> str:
    """What the same run is called as of another cluster."""
    job, at, start = workload.removeprefix(SLURM).partition("@")
    number = job.rpartition("/")[2]
    return f"{SLURM}{cluster}/{number}{at}{start}" if cluster else f"{SLURM}{number}{at}{start}"


def _said(cluster: str) -> str:
    return f"the cluster {cluster}" if cluster else "no cluster"


def _hint(here: str, there: str) -> str:
    if not there:
        return "leave --cluster out as at the first import, and Cluster out of sacct's --format"
    if not here:
        return f"--cluster {there}, as at the first import"
    return f"--cluster {there} as at the first import; rows that name {here} themselves need a dump without Cluster"
