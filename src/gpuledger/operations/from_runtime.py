"""``transition --from-runtime``: what a controller that was down has missed, with the runtime's own times.

In: a document of runtime conditions. Out: the transitions that were missing, appended with ``source`` ``runtime``; a
stop voids what was written after it until the next ``provisioning``. A second run adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpuledger.errors import NotFound
from gpuledger.ledger import workloads
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import placements, standing
from gpuledger.model.lifecycle import ENDED, METERED, Placement, State, Transition
from gpuledger.model.moments import CLOCK_TOLERANCE_US, iso
from gpuledger.model.outcomes import TransitionReport
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.reading_files import read_text
from gpuledger.operations.transition import record_transitions
from gpuledger.sources import runtime_conditions
from gpuledger.sources.runtime_conditions import Condition

SOURCE = "runtime"
"""Who says so."""

_CONDITIONS = 'give a JSON document in UTF-8: {"workloads": [{"workload": NAME, "conditions": [...]}]}'


def from_runtime(open_ledger: Callable[[], Ledger], path: Path, *, now_us: int, writer: str) -> TransitionReport:
    """Append what the runtime tells and the ledger does not know.

    A condition is known where its workload stood in that state at that time already, or came to it within two
    seconds. All are appended in one transaction, or none.

    Raises:
        BadInput: a document that cannot be understood; the ledger is then not even opened.
        NotFound: ``unknown-workload``: the ledger knows none of that name, so nobody would know whose it is.
        Refused: as :func:`gpuledger.operations.transition.record_transitions` says.
    """
    conditions = runtime_conditions.parse(read_text(path, hint=_CONDITIONS), path=str(path))
    with open_ledger() as ledger:
        known = workloads.events_since_begin(ledger.connection, {each.workload: -1 for each in conditions})
        missed: list[Transition] = []
        told: dict[str, State] = {}
        for each in conditions:
            events = known.get(each.workload)
            if events is None:
                raise NotFound(
                    "unknown-workload",
                    f"the ledger knows no workload {each.workload!r}, so nobody to count its time for",
                    hint=f"gpuledger transition {each.workload} provisioning --user NAME --class CLASS",
                )
            stand = standing(events)
            if not _is_known(each, stand, told.get(each.workload)):
                missed.append(_transition(ledger, each, stand))
                told[each.workload] = each.state
            else:
                told.pop(each.workload, None)
        return record_transitions(ledger, missed, writer=writer, now_us=now_us)


def _is_known(condition: Condition, stand: list[WorkloadEvent], told: State | None) -> bool:
    """Whether the ledger has it already; ``told`` is what this document has just said that the ledger did not."""
    before = [event for event in stand if event.at_us <= condition.at_us]
    state = told or (State(before[-1].state) if before else None)
    if state is not None and _same(condition.state, state):
        return True
    after = [event for event in stand if event.at_us > condition.at_us]
    return (
        bool(after)
        and _same(condition.state, after[0].state)
        and after[0].at_us - condition.at_us <= CLOCK_TOLERANCE_US
    )


def _same(one: str, other: str) -> bool:
    return one == other or (one in ENDED and other in ENDED)


def _transition(ledger: Ledger, condition: Condition, stand: list[WorkloadEvent]) -> Transition:
    return Transition(
        workload=condition.workload,
        event_id=f"{SOURCE}:{condition.state}@{iso(condition.at_us)}",
        state=condition.state,
        at_us=condition.at_us,
        source=SOURCE,
        placement=condition.placement or _placement(ledger, condition, stand),
    )


def _placement(ledger: Ledger, condition: Condition, stand: list[WorkloadEvent]) -> Placement | None:
    """Where the workload ran, for a start that the ledger learned of later: what its life was placed on then."""
    if condition.state not in METERED:
        return None
    counts = placements(stand)
    place = sum(event.at_us <= condition.at_us for event in stand)
    if place and counts[place - 1]:
        return None
    for event, key in zip(stand[place:], counts[place:], strict=True):
        if event.state in ENDED or event.state == State.PROVISIONING:
            return None
        if key:
            return workloads.placement_rows(ledger.connection, [key])[0].read()
    return None
