"""A controller that was down: what it missed is appended with the runtime's own time, once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuledger.errors import BadInput, NotFound, Refused
from gpuledger.ledger import Ledger
from gpuledger.metering.lifecycles import intervals
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.outcomes import TransitionReport
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.from_runtime import from_runtime
from gpuledger.operations.transition import record_transitions

EVERY_STORE = True

PLACE = Placement(class_name="L4", devices=("GPU-a",))


@pytest.fixture
def tell(box) -> Callable[..., None]:
    """The controller tells of w: (state, minute, placement)."""

    def told(*steps: tuple) -> None:
        transitions = [
            Transition(
                workload="w", event_id=f"{state}@{minute}", state=State(state), at_us=box.at(minute), source="ctl",
                placement=placement[0] if placement else None, requested_class="L4",
            )
            for state, minute, *placement in steps
        ]  # fmt: skip
        record_transitions(box.ledger, transitions, writer="box.transition", now_us=box.at(600))

    return told


@pytest.fixture
def reconcile(box, tmp_path: Path) -> Callable[..., TransitionReport]:
    """The runtime's document of w: (type, minute); run it."""

    def run(*conditions: tuple, workload: str = "w") -> TransitionReport:
        told = [{"type": kind, "at": iso(box.at(minute)), **more} for kind, minute, *rest in conditions
                for more in (rest or [{}])]  # fmt: skip
        path = tmp_path / "runtime.json"
        path.write_text(json.dumps({"workload": workload, "conditions": told}))
        return from_runtime(
            lambda: Ledger.open(box.place, mode="append"), path, now_us=box.at(600), writer="box.transition"
        )

    return run


def metered(box) -> list[tuple[float, float | None]]:
    """The metered minutes of w."""
    found = intervals(box.ledger.scan(WorkloadEvent))
    return [
        ((s.since_us - box.at(0)) / 6e7, None if isinstance(s.until_us, Missing) else (s.until_us - box.at(0)) / 6e7)
        for s in found
    ]


def test_a_stop_that_was_missed_counts_from_its_own_time(tell, reconcile, box) -> None:
    """What the controller guessed afterwards is void; a second run adds nothing."""
    tell(("provisioning", 1, PLACE), ("running", 2), ("stopped", 90))
    report = reconcile(("Running", 2), ("Terminated", 30, {"exit_code": 1}))
    assert [(event.state, event.source) for event in report.added] == [("failed", "runtime")]
    assert metered(box) == [(2, 30)]
    again = reconcile(("Running", 2), ("Terminated", 30, {"exit_code": 1}))
    assert (again.added, again.holds, again.known) == ((), (), ())


def test_what_both_know_is_not_told_again(tell, reconcile) -> None:
    """Within two seconds, as two clocks differ; a stop is a stop, whatever the controller called it."""
    tell(("provisioning", 1, PLACE), ("running", 2), ("stopped", 30))
    assert reconcile(("Running", 2 - 1 / 30), ("Terminated", 30.5, {"exit_code": 1})).added == ()


def test_a_start_that_was_seen_late_is_told_from_its_own_time(tell, reconcile, box) -> None:
    """On the placement of its life, also where only the later event names it."""
    tell(("provisioning", 1), ("running", 20, PLACE))
    report = reconcile(("Running", 5))
    assert [(event.state, event.placement) for event in report.added] == [("running", PLACE.key)]
    assert metered(box) == [(5, 20), (20, None)]
    assert reconcile(("Running", 5)).added == ()


def test_a_whole_life_can_be_told_after_the_fact(tell, reconcile, box) -> None:
    """A restart while the controller was away, with where it ran."""
    tell(("provisioning", 1, PLACE), ("running", 2))
    document = [
        ("Terminated", 10), ("Scheduled", 11, {"class": "L4", "devices": ["GPU-b"]}), ("Running", 12),
        ("Terminated", 20),
    ]  # fmt: skip
    report = reconcile(*document)
    assert [event.state for event in report.added] == ["stopped", "provisioning", "running", "stopped"]
    assert metered(box) == [(2, 10), (12, 20)]
    assert reconcile(*document).added == ()


def test_a_start_after_a_stop_needs_its_provisioning(tell, reconcile, box) -> None:
    """Nothing is guessed: it is refused, and nothing of the document is written."""
    tell(("provisioning", 1, PLACE), ("running", 2))
    marks = box.ledger.marks()
    with pytest.raises(Refused) as caught:
        reconcile(("Terminated", 10), ("Running", 12))
    assert caught.value.code == "forbidden-transition"
    assert box.ledger.marks() == marks


def test_a_workload_that_nobody_knows_is_refused(reconcile, tmp_path: Path) -> None:
    """Its time would be nobody's; a broken document does not even open the ledger."""
    with pytest.raises(NotFound) as caught:
        reconcile(("Running", 1), workload="stranger")
    assert caught.value.code == "unknown-workload"
    path = tmp_path / "broken.json"
    path.write_text("{")
    with pytest.raises(BadInput):
        from_runtime(lambda: pytest.fail("opened"), path, now_us=1, writer="box.transition")
