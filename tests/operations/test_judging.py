"""Judging one call: the order in which it happened, and nothing written while it is judged."""

from __future__ import annotations

from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.workload_rows import PlacementRow, WorkloadEvent
from gpuledger.operations.judging import Batch
from gpuledger.operations.workload_memory import Memory

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
