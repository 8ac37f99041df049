"""Runs of a history that overlap another run of the same workload, which the ledger knows: nobody runs twice at once.

In: a history, before any of it is written. Out: the history without such runs, and what was left out. Two files that
both count their jobs from 1 meet so, and a row whose start was changed: the events of both would mix, and each cut the
other. Runs of Slurm carry their start in their name and never meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from gpuledger.ledger import workloads
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import holdings
from gpuledger.model.durations import count, several
from gpuledger.model.lifecycle import ENDED, History, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US, iso
from gpuledger.model.problem import Problem
from gpuledger.model.workload_rows import WorkloadEvent

_SLURM = "slurm:"


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


def without_overlapping(ledger: Ledger, history: History, *, path: str) -> History:
    """The history without runs that overlap a known run of their workload; its problems say how many and of whom."""
    by_workload: dict[str, list[Transition]] = {}
    for each in history.transitions:
        if not each.workload.startswith(_SLURM):
            by_workload.setdefault(each.workload, []).append(each)
    known_names = workloads.last_sequences(ledger.connection, by_workload) if by_workload else {}
    known = workloads.by_workload(workloads.ask_events(ledger.connection, dict.fromkeys(known_names, -1)))
    out: list[_Run] = []
    for name, events in known.items():
        out += [run for run in _runs(by_workload[name]) if _overlaps(run, events)]
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


def _overlaps(run: _Run, events: Sequence[WorkloadEvent]) -> bool:
    began = run.began
    if began is None or began.event_id in {event.event_id for event in events}:
        return False
    last_us = events[-1].at_us
    return any(
        began.at_us < (last_us if isinstance(stay.until_us, Missing) else stay.until_us) and stay.since_us < run.end_us
        for stay in holdings(events)
    )


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
