"""Waiting that is over: what one dump of Slurm tells as waiting, and another, under the name of its run, as started.

In: a history, and what the ledger knows of the same jobs. Out: transitions that end such a wait where the run began. A
job that waits is ``slurm:CLUSTER/JOB``, and each of its runs ``slurm:CLUSTER/JOB@START``: without these ends, what the
first of two dumps tells as waiting would wait for ever. A job that an older dump tells as waiting, imported later, has
started too; of the tasks of an array that is not known, for a dump tells them as one and not how many they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuledger.ledger import workloads
from gpuledger.ledger.store import Ledger
from gpuledger.metering.waits import STARTED_AS_RUN, is_start_as_run
from gpuledger.model.lifecycle import SLURM, State, Transition
from gpuledger.model.moments import iso

_TASKS = "_[*]"
"""What ends the name of the tasks of an array that wait."""


def waits_over(ledger: Ledger, transitions: Sequence[Transition], waiting: Sequence[Transition]) -> list[Transition]:
    """The ends of waits whose runs have begun: of waits that the ledger knows, and of those that the history tells.

    Args:
        ledger: open to append, before or after the history is written.
        transitions: the history's.
        waiting: the last transition of each workload that it leaves waiting, at the time until which that is known.
    """
    began = _starts(transitions)
    still = {each.workload for each in waiting}
    asked = dict.fromkeys(sorted(began.keys() | still), -1)
    known = workloads.events_since_begin(ledger.connection, asked) if asked else {}
    ends: list[Transition] = []
    for name, events in known.items():
        last = events[-1]
        starts = [each for each in began.get(name, ()) if each.at_us >= last.at_us]
        if name not in still and last.state == State.PENDING and starts:
            # of an array nothing waits any more once the dump has tasks of it and none that waits
            first, final = min(starts, key=_at), max(starts, key=_at)
            ends.append(_end(name, final if name.endswith(_TASKS) else first))
    over = {name for name, events in known.items() if any(is_start_as_run(event) for event in events)}
    open_ = [each for each in waiting if each.workload not in over]
    return ends + [_end(each.workload, run) for each in open_ if (run := _known_run(ledger, each))]


def _at(transition: Transition) -> int:
    return transition.at_us


def _starts(transitions: Sequence[Transition]) -> dict[str, list[Transition]]:
    """The starts of runs by what their job, and its array, are called while they wait."""
    found: dict[str, list[Transition]] = defaultdict(list)
    for each in transitions:
        if each.state is State.RUNNING and each.workload.startswith(SLURM) and "@" in each.workload:
            for name in _names(each.workload.partition("@")[0]):
                found[name].append(each)
    return found


def _names(job: str) -> Iterator[str]:
    yield job
    cluster, slash, task = job.rpartition("/")
    array, underscore, _ = task.rpartition("_")
    if underscore:
        yield f"{cluster}{slash}{array}{_TASKS}"


def _known_run(ledger: Ledger, waits: Transition) -> Transition | None:
    """The first run of a job that the ledger knows to have begun since the job was last seen to wait."""
    if not waits.workload.startswith(SLURM) or waits.workload.endswith(_TASKS):
        return None
    events = workloads.events_named(ledger.connection, [(f"{waits.workload}@", f"{waits.workload}A")])
    starts = [each.at_us for each in events if each.state == State.RUNNING and each.at_us >= waits.at_us]
    return replace(waits, at_us=min(starts)) if starts else None


def _end(name: str, run: Transition) -> Transition:
    return replace(
        run, workload=name, event_id=f"{name}{STARTED_AS_RUN}{iso(run.at_us)}", state=State.STOPPED, placement=None
    )
