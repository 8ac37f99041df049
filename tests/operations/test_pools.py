"""Rules of pools: whose reservations count, and who has to say that devices are free."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpuledger.errors import Refused
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.outcomes import TransitionReport
from gpuledger.model.rows import PolicyVersion
from gpuledger.operations.transition import record_transitions

EVERY_STORE = True

POLICY = """
owners: {hosts: {n1: {pool: strict}, n2: {pool: loose}}}
pools:
  strict: {release: confirmed}
  nodes: {source: kubelet}
"""


@pytest.fixture(autouse=True)
def policy(box) -> None:
    row = PolicyVersion(version=1, effective_from_us=box.at(0), applied_at_us=box.at(0), document_hash="h",
                        document=POLICY)  # fmt: skip
    box.ledger.append([row], writer="box.apply", at_us=box.at(0))


def tell(
    box, state: State, minute: float, *, workload: str = "w", source: str = "cp", imported: bool = False,
    now: float = 0, **where: object,
) -> TransitionReport:  # fmt: skip
    placement = Placement(class_name="L4", share=Fraction(1, 2), **where) if where else None  # type: ignore[arg-type]
    told = Transition(
        workload=workload, event_id=f"{workload} {state} {minute}", state=state, at_us=box.at(minute), source=source,
        placement=placement,
    )  # fmt: skip
    now_us = box.at(max(now, minute))
    return record_transitions(box.ledger, [told], writer="box.cp", now_us=now_us, imported=imported)


def run(box, **where: object) -> None:
    tell(box, State.PROVISIONING, 1, **where)
    tell(box, State.RUNNING, 2)


def refusal(box, minute: float, **words: object) -> str:
    with pytest.raises(Refused) as refused:
        tell(box, State.STOPPED, minute, **words)
    assert refused.value.code == "release-unconfirmed"
    assert "--from-runtime" in refused.value.hint
    return refused.value.message


def test_a_stop_waits_for_a_look_that_finds_nobody(box) -> None:
    """Not looked at, looked at before the stop, still somebody there, gone after it: then it is taken."""
    run(box, machine="n1", devices=(box.gpu,))
    assert "nobody has looked at" in refusal(box, 30)
    box.append(box.looking(5, 29), minute=29)
    assert "nobody has looked at" in refusal(box, 30)
    box.append(box.looking(29, 31), box.seen(77, 3, 31), minute=31)
    assert "process 77 was on" in refusal(box, 30)
    box.append(box.looking(31, 33), box.seen(77, 31, 32, gone=33), minute=33)
    report = tell(box, State.STOPPED, 30)
    assert [(hold.change, hold.at_us) for hold in report.holds] == [("released", box.at(30))]
    assert not tell(box, State.STOPPED, 30).added


def test_who_lived_when_last_written_is_not_gone(box) -> None:
    """A look can be written before the processes that it saw: the last that is known of one says that it lives."""
    run(box, machine="n1", devices=(box.gpu,))
    box.append(box.looking(5, 29), box.seen(77, 3, 29), minute=29)
    box.append(box.looking(29, 31), minute=31)
    assert "process 77 was on" in refusal(box, 30)


def test_who_came_after_the_stop_is_somebody_else(box) -> None:
    """Told late, when another has the device."""
    run(box, machine="n1", devices=(box.gpu,))
    box.append(box.looking(29, 45), box.seen(77, 3, 30, gone=31), box.seen(99, 40, 45), minute=45)
    assert tell(box, State.STOPPED, 30, now=45).holds


def test_a_late_stop_is_asked_of_where_it_ran_then(box) -> None:
    """It moved since, from a pool with the rule to one without, or back."""
    run(box, machine="n1", devices=(box.gpu,))
    tell(box, State.RUNNING, 20, machine="n2", devices=("GPU-2",))
    assert "nobody has looked at" in refusal(box, 10, now=30)
    tell(box, State.PROVISIONING, 1, workload="v", machine="n2", devices=("GPU-3",))
    tell(box, State.RUNNING, 2, workload="v")
    tell(box, State.RUNNING, 20, workload="v", machine="n1", devices=(box.gpu,))
    assert tell(box, State.STOPPED, 10, workload="v", now=30).added


def test_a_policy_applied_by_a_clock_ahead_holds_once_it_is_time(box) -> None:
    """A ledger that has been open since asks again."""
    row = PolicyVersion(version=2, effective_from_us=box.at(10), applied_at_us=box.at(10), document_hash="i",
                        document="pools: {nodes: {source: nobody}}")  # fmt: skip
    tell(box, State.PROVISIONING, 1, workload="a", source="kubelet", machine="n9", pool="nodes")
    box.ledger.append([row], writer="box.apply", at_us=box.at(10))
    tell(box, State.PROVISIONING, 9, workload="b", source="kubelet", machine="n9", pool="nodes")
    with pytest.raises(Refused, match="the reservations of nobody count"):
        tell(box, State.PROVISIONING, 20, workload="c", source="cp", machine="n9", pool="nodes")


def test_a_blind_look_is_no_look(box) -> None:
    """A look that is UNKNOWN, or one at the names alone, says nothing of the device."""
    run(box, machine="n1", devices=(box.gpu,))
    box.append(box.looking(5, 40, status="driver-unreachable"), box.naming(5, 40), minute=40)
    assert "nobody has looked at" in refusal(box, 30)


@pytest.mark.parametrize("source", ["runtime", "kubelet"])
def test_who_sees_the_devices_confirms_by_telling(box, source: str) -> None:
    """The runtime's own stop is the word that was asked for; the controller's after it is nothing new."""
    run(box, machine="n1", devices=(box.gpu,))
    refusal(box, 30)
    assert tell(box, State.STOPPED, 31, source=source).holds
    assert tell(box, State.STOPPED, 32).added


def test_devices_without_names_need_the_runtime(box) -> None:
    """No look can tell of them."""
    run(box, machine="n1")
    box.append(box.looking(5, 40), minute=40)
    assert "not known which devices" in refusal(box, 30)
    tell(box, State.FAILED, 30, source="runtime")


def test_other_pools_and_the_past_are_as_ever(box) -> None:
    """No rule, no pool, and what an importer declares: that is a fact, and told."""
    for name, where in (("a", {"machine": "n2"}), ("b", {"machine": "n3"}), ("c", {"machine": "n1", "pool": "other"})):
        tell(box, State.PROVISIONING, 1, workload=name, **where)
        assert tell(box, State.STOPPED, 2, workload=name).holds
    tell(box, State.RUNNING, 3, workload="d", imported=True, machine="n1")
    report = tell(box, State.STOPPED, 4, workload="d", imported=True)
    assert [problem.code for problem in report.problems] == ["release-unconfirmed"]
    assert report.added


def test_one_source_of_reservations_in_a_pool(box) -> None:
    """Another's is refused; whoever sees the devices, and a stop, are heard all the same; an import is told."""
    with pytest.raises(Refused, match="in pool nodes the reservations of kubelet count, and this is told by cp") as no:
        tell(box, State.PROVISIONING, 1, machine="n9", pool="nodes")
    assert (no.value.code, "pools:" in no.value.hint) == ("other-source", True)
    assert tell(box, State.PENDING, 1).added
    tell(box, State.PROVISIONING, 2, source="kubelet", machine="n9", pool="nodes")
    with pytest.raises(Refused, match="told by cp"):
        tell(box, State.RUNNING, 3)
    tell(box, State.RUNNING, 3, source="runtime")
    assert tell(box, State.STOPPED, 4).holds
    report = tell(box, State.RUNNING, 5, workload="x", imported=True, machine="n9", pool="nodes")
    assert ([problem.code for problem in report.problems], len(report.added)) == (["other-source"], 1)
