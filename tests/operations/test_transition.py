"""``transition`` by its rules: what is refused, by which code, and what of it is then in the ledger: nothing."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from gpuledger.errors import GpuledgerError, Misconfigured, Refused
from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.outcomes import TransitionReport
from gpuledger.model.rows import PolicyVersion, Watch
from gpuledger.model.workload_rows import Hold, WorkloadEvent
from gpuledger.operations.transition import heartbeat, record_transitions
from gpuledger.operations.workload_memory import forget_memory

EVERY_STORE = True

WHOLE = Placement(class_name="L4", machine="m1", devices=("GPU-a",))
HALF = Placement(class_name="L4", machine="m1", devices=("GPU-a",), share=Fraction(1, 2))
OTHER = Placement(class_name="L4", machine="m2", devices=("GPU-b",))
CPU_ONLY = Placement(class_name="cpu", count=0)


@pytest.fixture
def told(box) -> Callable[..., TransitionReport]:
    """Tells transitions as ``("w", "running", minute, placement)``, each with its own id, in one call."""

    def tell(*steps: tuple[Any, ...], now: float = 600, imported: bool = False, **words: Any) -> TransitionReport:
        transitions = []
        for workload, state, minute, *placement in steps:
            base = {"workload": workload, "state": State(state), "at_us": box.at(minute), "source": "ctl"}
            base |= {"event_id": f"{state}@{minute}", "placement": placement[0] if placement else None}
            transitions.append(Transition(**base | words))
        return record_transitions(
            box.ledger, transitions, writer="box.transition", now_us=box.at(now), imported=imported
        )

    return tell


def refused(tell: Callable[[], object], code: str, ledger: Ledger) -> GpuledgerError:
    """It is refused by this code, with a hint, and nothing of it is in the ledger."""
    before = ledger.marks()
    with pytest.raises((Refused, Misconfigured)) as caught:
        tell()
    assert caught.value.code == code
    assert caught.value.hint
    assert ledger.marks() == before
    return caught.value


def holds(ledger: Ledger, workload: str = "w") -> list[tuple[str, int]]:
    """Changes of a workload's holds, with the sequence of their event."""
    return [(hold.change, hold.sequence) for hold in ledger.scan(Hold) if hold.workload == workload]


def test_a_life_takes_and_releases_its_hold(told, box) -> None:
    """Taken by provisioning, kept while it runs, released by a row of its own in the transaction of the stop."""
    told(("w", "pending", 0), ("w", "provisioning", 1, WHOLE), ("w", "booting", 2), ("w", "running", 3))
    assert holds(box.ledger) == [("taken", 2)]
    report = told(("w", "stopping", 4), ("w", "stopped", 5))
    assert [hold.change for hold in report.holds] == ["released"]
    assert report.holds[0].at_us == box.at(5)
    assert [event.ref for event in report.added] == ["event:box.transition/7", "event:box.transition/8"]
    assert verify_ledger(box.ledger) == []


def test_the_same_event_again_adds_nothing(told, box) -> None:
    """Told twice in one call or in two, by the id and the content."""
    steps = [("w", "provisioning", 1, WHOLE), ("w", "running", 2)]
    told(*steps, user="al")
    marks = box.ledger.marks()
    assert told(("w", "provisioning", 1)).known == (("w", "provisioning@1"),)
    again = told(*steps, *steps, user="al")
    assert (again.added, again.holds, len(again.known)) == ((), (), 4)
    assert box.ledger.marks() == marks


@pytest.mark.parametrize(
    ("step", "words", "said"),
    [
        (("w", "running", 1), {}, "state provisioning, now running"),
        (("w", "provisioning", 2, WHOLE), {}, "at "),
        (("w", "provisioning", 1, OTHER), {}, "placement 1 x L4"),
        (("w", "provisioning", 1, WHOLE), {"source": "other"}, "source ctl, now other"),
        (("w", "provisioning", 1, WHOLE), {"user": "bo"}, "user al, now bo"),
        (("w", "provisioning", 1, WHOLE), {"labels": (("qos", "LS"),)}, "labels none"),
        (("w", "provisioning", 1, WHOLE), {"requested_class": "T4"}, "requested class none, now T4"),
    ],
)
def test_the_same_id_with_other_content_is_a_conflict(told, box, step, words, said) -> None:
    """The first stays, and what differs is said."""
    told(("w", "provisioning", 1, WHOLE), event_id="one", user="al")
    error = refused(lambda: told(step, **{"event_id": "one"} | words), "conflict", box.ledger)
    assert said in error.message


@pytest.mark.parametrize(
    ("before", "step", "code"),
    [
        ([], ("w", "running", 3, WHOLE), "forbidden-transition"),
        ([], ("w", "stopped", 3), "end-before-start"),
        ([("w", "pending", 1)], ("w", "running", 3, WHOLE), "forbidden-transition"),
        ([("w", "provisioning", 1, WHOLE), ("w", "stopped", 2)], ("w", "running", 3), "forbidden-transition"),
        ([("w", "provisioning", 1, WHOLE), ("w", "stopping", 2)], ("w", "running", 3), "forbidden-transition"),
        ([("w", "provisioning", 5, WHOLE)], ("w", "stopped", 3), "end-before-start"),
        ([("w", "provisioning", 1)], ("w", "running", 3), "no-placement"),
        ([], ("w", "provisioning", 3), "no-hold"),
        ([], ("w", "provisioning", 606, WHOLE), "at-ahead"),
        ([("v", "provisioning", 1, HALF)], ("w", "provisioning", 3, WHOLE), "device-full"),
    ],
)
def test_what_the_rules_forbid_is_refused_by_name(told, box, before, step, code) -> None:
    """Each with its own code, and nothing of the call is written, not even what would have been right."""
    if before:
        told(*before, requested_class="L4" if code == "no-placement" else "")
    fine = ("other", "provisioning", 0, OTHER)
    refused(lambda: told(fine, step), code, box.ledger)


def test_at_may_be_five_minutes_ahead_and_no_more(told, box) -> None:
    """Clocks differ; a plan is no event."""
    told(("w", "provisioning", 605, WHOLE))
    refused(lambda: told(("w", "running", 605.0001)), "at-ahead", box.ledger)


def test_a_full_device_names_who_holds_it(told, box) -> None:
    """Shares of one device may sum to one, and to no more."""
    told(("v", "provisioning", 1, HALF), ("u", "provisioning", 2, HALF))
    error = refused(lambda: told(("w", "provisioning", 3, HALF)), "device-full", box.ledger)
    assert "GPU-a is held by v (1/2, since 2026-07-27T00:01:00Z), u (1/2" in error.message
    told(("v", "stopped", 4))
    refused(lambda: told(("w", "provisioning", 3, HALF)), "device-full", box.ledger)
    told(("w", "provisioning", 4, HALF))


def test_thirds_and_sevenths_fill_a_device(told, box) -> None:
    """Exactly: no share is rounded."""
    third = Placement(class_name="L4", devices=("GPU-a",), share=Fraction(1, 3))
    seventh = Placement(class_name="L4", devices=("GPU-b",), share=Fraction(1, 7))
    told(*((f"t{n}", "provisioning", 1, third) for n in range(3)))
    told(*((f"s{n}", "provisioning", 1, seventh) for n in range(7)))
    refused(lambda: told(("t3", "provisioning", 1, third)), "device-full", box.ledger)
    refused(lambda: told(("s7", "provisioning", 1, seventh)), "device-full", box.ledger)


def test_a_device_let_go_is_free_at_that_moment(told) -> None:
    """In one call too, whatever the order in which the two are given."""
    told(("v", "provisioning", 1, WHOLE), ("v", "running", 2))
    told(("w", "provisioning", 5, WHOLE), ("v", "stopped", 5))


def test_a_late_start_may_not_overlap_what_was(told, box) -> None:
    """Capacity is judged at the time of which it is told, not only now."""
    told(("v", "provisioning", 10, WHOLE), ("v", "stopped", 20))
    refused(lambda: told(("w", "provisioning", 15, WHOLE)), "device-full", box.ledger)
    refused(lambda: told(("w", "provisioning", 5, WHOLE)), "device-full", box.ledger)
    told(("w", "provisioning", 5, WHOLE), ("w", "stopped", 10))


def test_a_move_lets_go_and_takes(told, box) -> None:
    """A re-placement releases one and takes the other, in one transaction."""
    told(("w", "provisioning", 1, WHOLE), ("w", "running", 2))
    report = told(("w", "running", 3, OTHER))
    assert [hold.change for hold in report.holds] == ["released", "taken"]
    told(("v", "provisioning", 3, WHOLE))
    refused(lambda: told(("u", "provisioning", 3, OTHER)), "device-full", box.ledger)


def test_a_class_can_be_held_before_it_is_placed(told, box) -> None:
    """By the class asked for, without a look at devices; running then says where."""
    told(("w", "provisioning", 1), requested_class="H100-80GB")
    (hold,) = box.ledger.scan(Hold)
    assert (hold.change, hold.placement) == ("taken", "")
    told(("w", "running", 2, CPU_ONLY))
    assert holds(box.ledger) == [("taken", 1), ("released", 2), ("taken", 2)]


def test_a_stop_of_long_ago_voids_what_followed(told, box) -> None:
    """The controller was down: the runtime's own time counts, and the device was free from then on."""
    told(("w", "provisioning", 1, WHOLE), ("w", "running", 2), ("w", "running", 30, OTHER))
    report = told(("w", "stopped", 10))
    assert [(hold.change, hold.at_us) for hold in report.holds] == [("released", box.at(10))]
    told(("v", "provisioning", 10, WHOLE), ("u", "provisioning", 30, OTHER))
    refused(lambda: told(("w", "running", 40)), "forbidden-transition", box.ledger)


def test_a_stop_before_a_new_life_leaves_that_alone(told, box) -> None:
    """It belongs to the life before; the claim of today goes on."""
    told(("w", "provisioning", 1, WHOLE), ("w", "running", 2), ("w", "provisioning", 20, OTHER), ("w", "running", 21))
    report = told(("w", "stopped", 10))
    assert [hold.change for hold in report.holds] == ["released", "taken"]
    refused(lambda: told(("v", "provisioning", 25, OTHER)), "device-full", box.ledger)
    told(("v", "provisioning", 10, WHOLE))


def test_late_events_are_taken_where_the_order_stays_legal(told, box) -> None:
    """In between, yes; where what follows could not have followed, no."""
    told(("w", "provisioning", 1, WHOLE), ("w", "running", 10), ("w", "stopped", 20))
    told(("w", "downloading", 2), ("w", "booting", 5))
    refused(lambda: told(("w", "stopping", 6)), "forbidden-transition", box.ledger)
    refused(lambda: told(("w", "pending", 6)), "forbidden-transition", box.ledger)
    states = sorted(box.ledger.scan(WorkloadEvent), key=lambda event: event.at_us)
    assert [event.state for event in states] == ["provisioning", "downloading", "booting", "running", "stopped"]


def test_whose_it_is_stays_as_it_was_told(told, box) -> None:
    """What a later event does not say is not lost; what it says anew counts from there."""
    told(("w", "provisioning", 1, WHOLE), user="al", team="vision", labels=(("qos", "LS"),))
    told(("w", "running", 2))
    told(("w", "stopping", 3), user="bo")
    events = list(box.ledger.scan(WorkloadEvent))
    texts = box.ledger.texts()
    assert events[0].subject == events[1].subject != events[2].subject
    assert [(texts[e.subject].user, texts[e.subject].team) for e in events] == [
        ("al", "vision"), ("al", "vision"), ("bo", "vision"),
    ]  # fmt: skip
    assert texts[events[2].subject].labels == '{"qos": "LS"}'


def test_a_forgotten_owner_stays_forgotten(told, box) -> None:
    """Later events of the workload go on under the key whose text is gone; the amounts stand."""
    told(("w", "provisioning", 1, WHOLE), user="al")
    (event,) = box.ledger.scan(WorkloadEvent)
    box.ledger.forget([event.subject])
    told(("w", "running", 2))
    assert {each.subject for each in box.ledger.scan(WorkloadEvent)} == {event.subject}
    assert box.ledger.texts() == {}


def test_a_team_that_the_policy_does_not_list_is_refused(told, box) -> None:
    """Where it lists any; without a policy every team goes."""
    told(("v", "provisioning", 1, OTHER), team="anything")
    document = "owners: {users: {al: {team: vision}}}\n"
    row = PolicyVersion(
        version=1, effective_from_us=box.at(0), applied_at_us=box.at(0), document=document, document_hash="h"
    )
    box.ledger.append([row], writer="box.apply", at_us=1)
    error = refused(lambda: told(("w", "provisioning", 1, WHOLE), team="vison"), "unknown-team", box.ledger)
    assert "only vision" in error.message
    told(("w", "provisioning", 1, WHOLE), team="vision")
    imported = told(("u", "running", 1, CPU_ONLY), team="vison", imported=True)
    assert [problem.code for problem in imported.problems] == ["unknown-team"]


def test_importers_are_believed_and_told(told, box) -> None:
    """What breaks a rule is kept, as a fact, with a problem beside it."""
    told(("v", "provisioning", 1, WHOLE), ("v", "running", 2))
    report = told(
        ("a", "running", 3, WHOLE), ("b", "running", 3), ("c", "stopped", 3), ("d", "stopped", 3), ("d", "running", 4),
        ("e", "provisioning", 700, WHOLE), imported=True,
    )  # fmt: skip
    assert {problem.code for problem in report.problems} == {
        "over-capacity", "unplaced", "end-before-start", "forbidden-transition", "at-ahead",
    }  # fmt: skip
    assert len(report.added) == 5
    assert {event.is_declared for event in report.added} == {1}
    again = told(("a", "running", 3, OTHER), imported=True)
    assert [problem.code for problem in again.problems] == ["conflict"]
    assert again.added == ()


def test_importers_claim_only_what_is_still_open(told, box) -> None:
    """A past that is over holds nothing; what is open does, against live controllers too, until its end comes."""
    report = told(
        ("a", "running", 1, WHOLE), ("a", "stopped", 5), ("b", "running", 6, WHOLE), imported=True
    )  # fmt: skip
    assert [(hold.workload, hold.change) for hold in report.holds] == [("b", "taken")]
    refused(lambda: told(("w", "provisioning", 7, WHOLE)), "device-full", box.ledger)
    closing = told(("b", "stopped", 7), imported=True)
    assert [(hold.workload, hold.change) for hold in closing.holds] == [("b", "released")]
    told(("w", "provisioning", 7, WHOLE))


def test_an_unconfirmed_hold_is_confirmed_moved_or_lapses(told, box) -> None:
    """As ``admit`` takes it: provisioning confirms it in time, names another, or comes too late."""
    rows = [
        Hold(workload=name, sequence=0, change="taken", at_us=box.at(1), placement=OTHER.key, expires_at_us=box.at(11))
        for name in "abc"
    ]
    told(("x", "provisioning", 0, OTHER), ("x", "stopped", 1))
    box.ledger.append(rows[:1], writer="box.admit", at_us=1)
    refused(lambda: told(("w", "provisioning", 5, OTHER)), "device-full", box.ledger)
    confirmed = told(("a", "provisioning", 5))
    assert [hold.change for hold in confirmed.holds] == ["confirmed"]
    assert confirmed.added[0].placement == OTHER.key
    assert told(("a", "provisioning", 5)).known == (("a", "provisioning@5"),)
    refused(lambda: told(("w", "provisioning", 20, OTHER)), "device-full", box.ledger)
    told(("a", "stopped", 21))
    box.ledger.append(rows[1:], writer="box.admit", at_us=1)
    assert [hold.change for hold in told(("b", "provisioning", 5, WHOLE)).holds] == ["released", "taken"]
    error = refused(lambda: told(("c", "provisioning", 12)), "no-hold", box.ledger)
    assert "lapsed at 2026-07-27T00:11:00Z" in error.message


def test_two_controllers_cannot_both_take_the_last_device(told, box) -> None:
    """Judged inside the transaction that writes: what the other wrote a moment ago counts."""
    told(("x", "provisioning", 0, WHOLE), ("x", "stopped", 1))
    with Ledger.open(box.place, mode="append") as other:
        taken = Transition(
            workload="w", event_id="1", state=State.PROVISIONING, at_us=box.at(2), source="b", placement=WHOLE
        )
        record_transitions(other, [taken], writer="box.other", now_us=box.at(3))
        refused(lambda: told(("v", "provisioning", 2, WHOLE)), "device-full", box.ledger)
        told(("w", "running", 4), ("w", "stopped", 5), ("v", "provisioning", 5, WHOLE))
        late = Transition(
            workload="u", event_id="1", state=State.PROVISIONING, at_us=box.at(6), source="b", placement=WHOLE
        )
        refused(
            lambda: record_transitions(other, [late], writer="box.other", now_us=box.at(7)), "device-full", box.ledger
        )


@pytest.mark.parametrize("afresh", [False, True])
def test_a_late_event_is_of_whoever_had_the_workload_then(told, box, afresh: bool) -> None:
    """What it does not say is as told of the time before it, and not as it was told last; nor does it depend on what
    this process remembers: a restarted one writes the same."""
    told(("w", "provisioning", 1, WHOLE), user="al", team="t")
    told(("w", "stopped", 9))
    told(("w", "provisioning", 20, OTHER), user="bo")
    if afresh:
        forget_memory(box.ledger)
    told(("w", "running", 2, WHOLE))
    told(("w", "running", 21))
    told(("w", "stopped", 8), team="u")
    told(("w", "stopped", 30))
    texts = box.ledger.texts(None)
    owners = {
        (event.at_us - box.at(0)) // 60_000_000: (texts[event.subject].user, texts[event.subject].team)
        for event in box.ledger.scan(WorkloadEvent)
    }
    assert owners == {
        1: ("al", "t"), 2: ("al", "t"), 8: ("al", "u"), 9: ("al", "t"), 20: ("bo", "t"), 21: ("bo", "t"),
        30: ("bo", "t"),
    }  # fmt: skip


def test_a_beginning_that_is_told_late_is_of_whoever_came_after_it(told, box) -> None:
    """Nobody had it before."""
    told(("w", "running", 5, WHOLE), imported=True, user="al")
    told(("w", "provisioning", 1, WHOLE), imported=True)
    assert {box.ledger.texts(None)[event.subject].user for event in box.ledger.scan(WorkloadEvent)} == {"al"}


def test_a_heartbeat_is_a_watch_of_the_controller(box) -> None:
    """Each beat one row, told in the journal; a source without a name is none."""
    heartbeat(box.ledger, "ctl", writer="box.transition", at_us=box.at(1), interval_us=60_000_000)
    (beat,) = box.ledger.scan(Watch)
    assert (beat.source, beat.host, beat.method, beat.interval_ms) == ("controller", "ctl", "heartbeat", 60_000)
    for source, interval_us in (("", 60_000_000), ("x" * 513, 60_000_000), ("ctl", 5)):
        with pytest.raises(Misconfigured):
            heartbeat(box.ledger, source, writer="box.transition", at_us=1, interval_us=interval_us)


def test_nothing_told_is_nothing_written(box) -> None:
    """An empty call."""
    assert record_transitions(box.ledger, [], writer="box.transition", now_us=1) == TransitionReport()
