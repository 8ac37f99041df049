"""Runs of a history that overlap another run of the same workload, which the ledger knows: nobody runs twice at once.

In: a history, before any of it is written. Out: the history without such runs, and what was left out. Two files that
both count their jobs from 1 meet so, and a row whose start was changed: the events of both would mix, and each cut the
other. Runs of Slurm carry their start in their name and never meet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from gpuledger.ledger import workloads
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import holdings
from gpuledger.model.durations import count, several
from gpuledger.model.lifecycle import ENDED, SLURM, History, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US, iso
from gpuledger.model.problem import Problem
from gpuledger.model.workload_rows import WorkloadEvent


@dataclass(frozen=True, slots=True)
class _Run:
    """What one workload does from its asking to its end."""

    told: tuple[Transition, ...]

    @property
    def began(self) -> Transition | None:
        return next((each for each in self.told if each.state is State.RUNNING), None)

    @property
    def end_us(self) -> int:
        """Its end, or the last that is told of it."""
        return self.told[-1].at_us


@dataclass(frozen=True, slots=True)
class _Held:
    """When a known workload held capacity: its stays one after the other, by their starts and by their ends."""

    since_us: tuple[int, ...]
    until_us: tuple[int, ...]

    @classmethod
    def of(cls, events: Sequence[WorkloadEvent]) -> _Held:
        """Of its events in their order; what is open lasted to the last of them at least."""
        stays = holdings(events)
        ends = (events[-1].at_us if isinstance(stay.until_us, Missing) else stay.until_us for stay in stays)
        return cls(tuple(stay.since_us for stay in stays), tuple(ends))

    def overlaps(self, run: _Run) -> bool:
        """Whether it held anything while a run went on; stays never overlap, so the first that ends later decides.

        A stay that begins in the moment in which the run ends counts too: the stop is told later, so it would end it.
        """
        began = run.began
        first = bisect_right(self.until_us, began.at_us) if began else len(self.until_us)
        return first < len(self.since_us) and self.since_us[first] <= run.end_us


def without_overlapping(ledger: Ledger, history: History, *, path: str) -> History:
    """The history without runs that overlap a known run of their workload; its problems say how many and of whom."""
    by_workload: dict[str, list[Transition]] = {}
    for each in history.transitions:
        if not each.workload.startswith(SLURM):
            by_workload.setdefault(each.workload, []).append(each)
    known_names = workloads.last_sequences(ledger.connection, by_workload) if by_workload else {}
    new = _begun_unknown(ledger, {name: _runs(by_workload[name]) for name in known_names})
    known = workloads.by_workload(workloads.ask_events(ledger.connection, dict.fromkeys(new, -1)))
    out: list[_Run] = []
    for name, events in known.items():
        held = _Held.of(events)
        out += [run for run in new[name] if held.overlaps(run)]
    if not out:
        return history
    dropped = {(each.workload, each.event_id) for run in out for each in run.told}
    return replace(
        history,
        transitions=tuple(each for each in history.transitions if (each.workload, each.event_id) not in dropped),
        problems=(*history.problems, _problem(out, known, path)),
    )


def _runs(transitions: Sequence[Transition]) -> list[_Run]:
    found: list[_Run] = []
    told: list[Transition] = []
    for each in transitions:
        told.append(each)
        if each.state in ENDED:
            found.append(_Run(tuple(told)))
            told = []
    return [*found, _Run(tuple(told))] if told else found


def _begun_unknown(ledger: Ledger, runs: dict[str, list[_Run]]) -> dict[str, list[_Run]]:
    """Of each workload the runs whose beginning the ledger does not know; none of a workload that has no such run."""
    keys = {(began.workload, began.event_id) for of_one in runs.values() for run in of_one if (began := run.began)}
    known = workloads.known_events(ledger.connection, sorted(keys)) if keys else {}
    new: dict[str, list[_Run]] = {}
    for name, of_one in runs.items():
        for run in of_one:
            if (began := run.began) and (name, began.event_id) not in known:
                new.setdefault(name, []).append(run)
    return new


def _problem(out: Sequence[_Run], known: dict[str, list[WorkloadEvent]], path: str) -> Problem:
    first = out[0].told[0]
    size = sum((_device_seconds(run) for run in out), Fraction(0))
    message = (
        f"{several(len(out), 'run')} of a workload that ran already then, {first.workload!r} at "
        f"{iso(first.at_us)} the first, which is known from {known[first.workload][0].source}; left out, "
        f"{count(int(size))} device-seconds in all: give the map a `prefix`, or `id` more columns"
    )
    return Problem(code="overlapping-known", message=message, where=path)


def _device_seconds(run: _Run) -> Fraction:
    began = run.began
    if began is None or began.placement is None:
        return Fraction(0)
    return began.placement.count * began.placement.share * Fraction(run.end_us - began.at_us, SECOND_US)
