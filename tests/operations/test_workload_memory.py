"""What is remembered between two calls is dropped as soon as it may be wrong."""

from __future__ import annotations

from pkgutil import resolve_name

from gpuledger.ledger import Ledger
from gpuledger.model.archive import Archive
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.rows import PolicyVersion, Row
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.transition import record_transitions
from gpuledger.operations.workload_memory import Memory, forget_memory, memory_of

PLACE = Placement(class_name="L4", devices=("GPU-a",))


def step(box, state: str, minute: float, *, workload: str = "w", user: str = "") -> Transition:
    """One event."""
    return Transition(
        workload=workload, event_id=f"{state}{minute}", state=State(state), at_us=box.at(minute), source="ctl",
        user=user, placement=PLACE if state == "provisioning" else None,
    )  # fmt: skip


def test_a_ledger_has_one_memory_while_it_is_open(box) -> None:
    """And none of a call that failed."""
    memory = memory_of(box.ledger)
    assert memory_of(box.ledger) is memory
    forget_memory(box.ledger)
    assert memory_of(box.ledger) is not memory


def test_lives_are_remembered_until_another_writes_of_them(box) -> None:
    """What others wrote about other workloads drops nothing."""
    record_transitions(box.ledger, [step(box, "provisioning", 1)], writer="box.a", now_us=box.at(9))
    memory = memory_of(box.ledger)
    with Ledger.open(box.place, mode="append") as other:
        record_transitions(other, [step(box, "pending", 1, workload="v")], writer="box.b", now_us=box.at(9))
        memory.catch_up()
        assert list(memory.lives) == ["w"]
        record_transitions(other, [step(box, "running", 2)], writer="box.b", now_us=box.at(9))
        memory.catch_up()
        assert list(memory.lives) == []


def test_a_text_that_another_forgot_is_not_used_again(box) -> None:
    """Whose it was is gone in this process too."""
    record_transitions(box.ledger, [step(box, "provisioning", 1, user="al")], writer="box.a", now_us=box.at(9))
    memory = memory_of(box.ledger)
    assert [text.user for text in memory.texts.values()] == ["al"]
    with Ledger.open(box.place, mode="append") as other:
        other.forget(list(memory.texts))
    record_transitions(box.ledger, [step(box, "running", 2, user="bo")], writer="box.a", now_us=box.at(9))
    assert {text.user for text in box.ledger.texts().values()} == {"bo"}


def test_until_when_time_is_closed_is_asked_again_once_more_left(box, monkeypatch) -> None:
    """And not before: it is remembered, as the newest policy is."""
    asked: list[str] = []

    def listened(name: str, module: str) -> None:
        whole = f"gpuledger.operations.{module}.{name}"
        call = resolve_name(whole)
        monkeypatch.setattr(whole, lambda connection: asked.append(name) or call(connection))

    listened("archived_until", "workload_memory")
    listened("workloads.newest_policy", "in_force")
    record_transitions(box.ledger, [step(box, "provisioning", 1)], writer="box.a", now_us=box.at(9))
    memory = memory_of(box.ledger)

    def looks(row: Row) -> int:
        """What is known once another has written a row."""
        asked.clear()
        with Ledger.open(box.place, mode="append") as other:
            other.append([row], writer="box.b", at_us=1)
        memory.catch_up()
        memory.teams_in_force(box.at(9))
        return memory.archived_until()

    def event(workload: str) -> WorkloadEvent:
        return WorkloadEvent(
            workload=workload,
            event_id="1",
            sequence=1,
            state="pending",
            at_us=1,
            recorded_at_us=1,
            source="s",
            subject="",
        )

    assert looks(event("u")) == 0
    assert looks(event("v")) == 0
    assert asked == []
    gone = Archive(
        archived_at_us=1, before_us=77, month="2026-01", rows_of="event", row_count=1, first_us=1, last_us=2,
        writers="{}", rows_hash="h", file_name="f", file_hash="g", folder="/srv",
    )  # fmt: skip
    assert looks(gone) == 77
    assert asked == ["archived_until"]
    policy = PolicyVersion(version=1, effective_from_us=1, applied_at_us=1, document="{}", document_hash="h")
    assert looks(policy) == 77
    assert asked == ["workloads.newest_policy"]


def test_the_teams_in_force_are_those_of_the_newest_version_in_effect(box) -> None:
    """A version that is not in effect yet does not count; none lists none."""
    memory = Memory(box.ledger)
    assert memory.teams_in_force(box.at(9)) == frozenset()
    for version, team, minute in ((1, "vision", 0), (2, "nlp", 60)):
        row = PolicyVersion(
            version=version, effective_from_us=box.at(minute), applied_at_us=box.at(1), document_hash=team,
            document=f"owners: {{namespaces: {{a: {{team: {team}}}}}}}\n",
        )  # fmt: skip
        box.ledger.append([row], writer="box.apply", at_us=1)
    memory.catch_up()
    assert memory.teams_in_force(box.at(9)) == {"vision"}
    assert memory.teams_in_force(box.at(61)) == {"nlp"}
