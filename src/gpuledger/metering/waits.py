"""Requests for devices, as the events of one workload tell them: since when it waited, and what came of it.

In: all events of one workload, in any order. Out: its admissions, one for each time that it asked. A wait runs from the
first ``pending`` to the first state that holds capacity (``provisioning``, or ``running`` where an importer tells no
other), or to ``stopped`` or ``failed``, which gives it up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuledger.metering.lifecycles import standing
from gpuledger.model.capacity import Admission, Outcome
from gpuledger.model.lifecycle import ENDED, HOLDING, State
from gpuledger.model.missing import Missing
from gpuledger.model.workload_rows import WorkloadEvent

STARTED_AS_RUN = "#started@"
"""In the id of a stop, behind the workload's name: what waited has started as a workload of another name, which tells
since when it waited itself. Such an end is neither a start nor somebody who gave up."""

UNTOLD = Missing("nobody told of it before it started")
"""The time of asking of a workload that is first told of when it starts."""


def admissions(events: Iterable[WorkloadEvent], *, known_until_us: int, classes: Mapping[str, str]) -> list[Admission]:
    """What a workload asked for, in order.

    Args:
        events: all of one workload.
        known_until_us: until when it is known to have gone on as its last event says, microseconds UTC.
        classes: placement key to class.
    """
    found: list[Admission] = []
    asked_us: int | Missing = UNTOLD
    requested = ""
    waits = holds = False
    for event in standing(events):
        state = State(event.state)
        if state in HOLDING:
            if not holds:
                found.append(_made(event.requested_class or requested, asked_us, event.at_us, Outcome.STARTED))
            if not found[-1].placed and event.placement:
                found[-1] = _placed(found[-1], classes.get(event.placement, ""), event.requested_class)
            asked_us, requested, waits, holds = UNTOLD, "", False, True
            continue
        if state in ENDED:
            if waits and not is_start_as_run(event):
                found.append(_made(event.requested_class or requested, asked_us, event.at_us, Outcome.GAVE_UP))
            asked_us, requested, waits, holds = UNTOLD, "", False, False
            continue
        asked_us = asked_us if waits else event.at_us
        requested, waits, holds = event.requested_class or requested, True, False
    if waits and not isinstance(asked_us, Missing):
        found.append(_made(requested, asked_us, max(known_until_us, asked_us), Outcome.WAITING))
    return found


def is_start_as_run(event: WorkloadEvent) -> bool:
    """Whether a stop says that what waited has started as a workload of another name."""
    return event.event_id.startswith(f"{event.workload}{STARTED_AS_RUN}")


def _made(requested: str, asked_us: int | Missing, until_us: int, outcome: Outcome) -> Admission:
    return Admission(requested=requested, asked_us=asked_us, until_us=until_us, outcome=outcome, placed="")


def _placed(admission: Admission, class_name: str, requested: str) -> Admission:
    return Admission(
        requested=admission.requested or requested,
        asked_us=admission.asked_us,
        until_us=admission.until_us,
        outcome=admission.outcome,
        placed=class_name,
    )
