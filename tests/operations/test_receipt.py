"""The receipt of a command out of a ledger."""

from __future__ import annotations

from typing import Any

from gpuledger.model.missing import Missing
from gpuledger.model.receipt import Doubt, Member, Membership, Ran, Receipt, State, Watcher
from gpuledger.operations.explain import explain
from gpuledger.operations.receipt import explain_line, receipt_of, receipt_without_a_ledger


def told(box, began: float, ended: float, *pids: int, now: float | None = None, **words: Any) -> Receipt:
    """The receipt of a run whose processes are these, each with its pid as its start ticks."""
    ran = Ran(command="train", pid=pids[0] if pids else 1, began_us=box.at(began), ended_us=box.at(ended), wall_ms=0,
              status=0)  # fmt: skip
    members = tuple(
        Member(pid=pid, start_ticks=pid, born_us=box.at(began), seen_us=box.at(ended), is_alive=False) for pid in pids
    )
    given: dict[str, Any] = {
        "ran": ran, "host": box.host, "watched_by": Watcher.AGENT, "looks_after": 2, "trouble": "", "place": "",
        "membership": Membership(boot_id="boot", members=members, cgroup=Missing("not made"), blind_us=30_000,
                                 are_the_drivers_pids=True),
        "now_us": box.at(ended if now is None else now),
    }  # fmt: skip
    return receipt_of(box.ledger, **given | words)


def test_a_morning_with_a_command_in_it(box) -> None:
    """Its own time, its neighbour's within the run, the unnamed one apart; its reference can be explained."""
    box.tell_a_morning()
    box.append(box.named(70, 31, "train", seen=33), box.settled(70, 32, 60_000, read=34), minute=121)
    made = told(box, 30, 50, 70)
    assert (made.context_ms, made.naming, made.doubts, made.unknown) == (60_000, "poll", (), ())
    assert [(one.service, one.context_ms) for one in made.neighbours] == [("unit:chat.service", 1_200_000)]
    assert [(one.service, one.context_ms) for one in made.unnamed] == [("unattributed:between-samples", 600)]
    (line,) = made.contexts
    assert (line.state, line.service) == (State.SETTLED, "unit:train.service")
    for ref in line.refs:
        tree = explain(
            box.ledger, ref, meter="gpu.context", since_us=box.at(30), until_us=box.at(50), now_us=box.at(126)
        )
        assert "70" in tree.title
    assert made.explain.startswith("gpuledger explain total --since 2026-07-27T00:30:00Z --until 2026-07-27T00:50:00Z")


def test_nobody_looked(box) -> None:
    """A run after the last look: its time is a gap, and its zero is UNKNOWN."""
    box.tell_a_morning()
    made = told(box, 125, 126, 70, watched_by=Watcher.NOBODY, trouble="no driver")
    assert isinstance(made.context_ms, Missing)
    assert [(one.reason, one.ms) for one in made.unknown] == [("watch-gap", 60_000)]
    assert {one.doubt for one in made.doubts} == {Doubt.NOT_WATCHED}


def test_watched_without_loss_and_held_nothing(box) -> None:
    """0, and why; a neighbour on a device that the command did not hold is none."""
    box.tell_a_morning()
    made = told(box, 50, 51, 70)
    assert (made.context_ms, made.neighbours, made.is_at_least) == (0, (), False)
    assert "watched without loss" in made.devices[0].why


def test_lost_events_of_the_time_are_told(box) -> None:
    """Not those of another hour."""
    box.append(box.device(0), box.looking(0, 60), box.naming(0, 20), box.naming(20, 30, status="events-lost"),
               box.naming(30, 60), box.settled(9, 1, 100, read=2))  # fmt: skip
    assert [one.doubt for one in told(box, 25, 26, 70).doubts] == [Doubt.EVENTS_LOST]
    assert told(box, 40, 41, 70).doubts == ()


def test_an_empty_ledger_and_none_at_all(box) -> None:
    """No device is known: UNKNOWN, never 0."""
    made = told(box, 1, 2, 70)
    assert isinstance(made.context_ms, Missing)
    bare = receipt_without_a_ledger(
        ran=made.ran, host=box.host, trouble="no driver here",
        membership=Membership(boot_id="", members=(), cgroup=Missing("-"), blind_us=0, are_the_drivers_pids=True),
    )  # fmt: skip
    assert isinstance(bare.context_ms, Missing)
    assert [one.sentence for one in bare.doubts] == ["no driver here"]
    assert bare.explain == ""


def test_the_line_that_explains_names_the_ledger_that_was_asked_for(box) -> None:
    """It can be pasted as it stands."""
    ran = Ran(command="x", pid=1, began_us=box.at(1), ended_us=box.at(1) + 1, wall_ms=0, status=0)
    assert explain_line(ran, "/tmp/my ledger.db").endswith(
        "--since 2026-07-27T00:01:00Z --until 2026-07-27T00:01:01Z --ledger '/tmp/my ledger.db'"
    )
