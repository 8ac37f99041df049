"""Judging one call: the order in which it happened, and nothing written while it is judged."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import pytest

from gpuledger.errors import Refused
from gpuledger.ledger import workloads
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent
from gpuledger.operations.judging import Batch
from gpuledger.operations.transition import record_transitions
from gpuledger.operations.workload_memory import Memory, memory_of

PLACE = Placement(class_name="L4", devices=("GPU-a",))


def told(box, *steps: tuple[str, str, float]) -> list[Transition]:
    """Workload, state, minute."""
    return [
        Transition(
            workload=name, event_id=f"{name}{state}{minute}", state=State(state), at_us=box.at(minute), source="ctl",
            placement=PLACE if state == "provisioning" else None,
        )
        for name, state, minute in steps
    ]  # fmt: skip


def judge(box, transitions: list[Transition], *, imported: bool = False) -> tuple[Batch, list]:
    """The rows that would follow."""
    batch = Batch(box.ledger, Memory(box.ledger), now_us=box.at(60), imported=imported)
    return batch, batch.judge(transitions)


def test_a_call_is_judged_in_the_order_in_which_it_happened(box) -> None:
    """However it is given; at one moment, who lets go comes before who takes."""
    steps = [("w", "running", 3), ("v", "provisioning", 5), ("w", "stopped", 5), ("w", "provisioning", 1)]
    _, rows = judge(box, told(box, *steps))
    events = [(row.workload, row.state) for row in rows if isinstance(row, WorkloadEvent)]
    assert events == [("w", "provisioning"), ("w", "running"), ("w", "stopped"), ("v", "provisioning")]
    assert [row.sequence for row in rows if isinstance(row, WorkloadEvent)] == [1, 2, 3, 1]
    assert box.ledger.marks() == {}


def test_a_placement_is_a_row_once(box) -> None:
    """Of all events that name it, and not again when it is stored."""
    transitions = told(box, ("w", "provisioning", 1), ("w", "stopped", 2), ("v", "provisioning", 3))
    _, rows = judge(box, transitions)
    assert [row for row in rows if isinstance(row, PlacementRow)] == [PlacementRow.of(PLACE)]
    box.ledger.append(rows, writer="box.a", at_us=1)
    _, rows = judge(box, told(box, ("v", "provisioning", 4)))
    assert not [row for row in rows if isinstance(row, PlacementRow)]


def test_a_life_that_is_over_in_the_same_call_needs_its_devices_only_until_then(box) -> None:
    """Told late, between two others, it is judged by the span it had."""
    _, rows = judge(box, told(box, ("v", "provisioning", 10), ("v", "stopped", 20)))
    box.ledger.append(rows, writer="box.a", at_us=1)
    _, rows = judge(box, told(box, ("w", "provisioning", 5), ("w", "stopped", 10)))
    assert len(rows) == 4


def test_an_importers_problem_names_the_event(box) -> None:
    """So that it can be found in what was imported."""
    batch, rows = judge(box, told(box, ("w", "stopped", 5), ("w", "running", 6)), imported=True)
    assert len(rows) == 2
    assert {problem.code for problem in batch.problems} == {"end-before-start", "forbidden-transition", "unplaced"}
    assert {problem.where for problem in batch.problems} == {"wstopped5", "wrunning6"}


def test_an_event_that_is_known_is_found_however_its_life_is_remembered(box, monkeypatch) -> None:
    """Of a life that is here from its beginning without asking; of one from a later admission on by asking."""
    asked: list[tuple[str, str]] = []
    known_events = workloads.known_events
    monkeypatch.setattr(workloads, "known_events", lambda c, keys: asked.extend(keys) or known_events(c, keys))
    lived = told(box, ("w", "provisioning", 1), ("w", "running", 2), ("w", "stopped", 3), ("w", "provisioning", 4))
    record_transitions(box.ledger, lived, writer="box.a", now_us=box.at(60))
    again = record_transitions(
        box.ledger, [lived[1], *told(box, ("w", "running", 5))], writer="box.a", now_us=box.at(60)
    )
    assert [[row.state for row in again.added], again.known, asked] == [["running"], (("w", "wrunning2"),), []]
    with pytest.raises(Refused) as refused:
        record_transitions(box.ledger, [replace(lived[1], source="other")], writer="box.a", now_us=box.at(60))
    assert refused.value.code == "conflict"
    assert not asked, "a call that failed is forgotten, so this one was the last"
    later = told(box, ("w", "running", 6))
    report = record_transitions(box.ledger, later, writer="box.a", now_us=box.at(60))
    assert [row.state for row in report.added] == ["running"]
    report = record_transitions(box.ledger, [lived[1]], writer="box.a", now_us=box.at(60))
    assert (report.added, report.known) == ((), (("w", "wrunning2"),))
    assert ("w", "wrunning6") in asked


def test_one_event_walks_through_nothing_that_is_remembered(box) -> None:
    """Twenty thousand lives are looked up by name: what one event costs does not grow with them."""

    class Unwalked(dict):
        def keys(self) -> NoReturn:
            raise AssertionError("all of it was walked through")

        __iter__ = values = items = keys

    memory = memory_of(box.ledger)
    memory.lives = Unwalked()
    memory.texts = Unwalked()
    for steps in ([("w", "provisioning", 1), ("v", "pending", 1)], [("w", "running", 2)], [("u", "pending", 3)]):
        record_transitions(box.ledger, told(box, *steps), writer="box.a", now_us=box.at(60))
    assert [len(memory.lives), memory_of(box.ledger)] == [3, memory]
