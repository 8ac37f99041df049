"""``capacity`` out of a ledger: live events to now or to the last heartbeat, history to what it tells."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.model.capacity import CapacityReport
from gpuledger.model.lifecycle import Placement, State, Transition
from gpuledger.model.missing import Missing
from gpuledger.operations.capacity import capacity
from gpuledger.operations.transition import heartbeat, record_transitions

EVERY_STORE = True

L4 = Placement(class_name="L4", count=2, share=Fraction(1, 4))
A100 = Placement(class_name="A100")
MINUTE = 60_000_000


def say(box, *of: tuple, now: float = 60, imported: bool = False, source: str = "lab") -> None:
    """Transitions of (workload, state, minute, placement, requested class)."""
    told = [
        Transition(
            workload=workload, event_id=f"{state}@{minute}", state=State(state), at_us=box.at(minute), source=source,
            placement=placement, requested_class=requested,
        )
        for workload, state, minute, placement, requested in ((*each, *(None, "")[len(each) - 3 :]) for each in of)
    ]  # fmt: skip
    record_transitions(box.ledger, told, writer="box.control", now_us=box.at(now), imported=imported)


def ask(box, *, now: float = 60, since: float | None = None, until: float | None = None, **words) -> CapacityReport:
    return capacity(
        box.ledger,
        since_us=None if since is None else box.at(since),
        until_us=None if until is None else box.at(until),
        now_us=box.at(now),
        **words,
    )


def test_waits_fallbacks_held_and_owned(box) -> None:
    """One request that got what it asked for, one that did not, and a device that an agent has seen."""
    box.append(box.device(0))
    say(
        box, ("v", "pending", 0, None, "L4"), ("v", "provisioning", 10, L4), ("v", "running", 12), ("v", "stopped", 20),
        ("w", "pending", 5, None, "L4"), ("w", "provisioning", 35, A100), ("w", "running", 36),
    )  # fmt: skip
    report = ask(box, now=40)
    l4, a100 = sorted(report.lines, key=lambda line: line.class_name, reverse=True)
    assert (l4.class_name, l4.started, l4.fallbacks, l4.instead) == ("L4", 2, 1, (("A100", 1),))
    assert (l4.wait_p50_us, l4.wait_p95_us, l4.waited_us) == (10 * MINUTE, 30 * MINUTE, 35 * MINUTE)
    assert (l4.peak, l4.mean, l4.owned) == (Fraction(1, 2), Fraction(1, 8), 1)
    assert (a100.peak, a100.mean) == (1, Fraction(5, 40))
    assert isinstance(a100.owned, Missing)
    assert (report.since_us, report.until_us) == (box.at(0), box.at(40))


def test_history_is_known_to_its_last_event(box) -> None:
    """Nothing says that it ran on; a control plane's workload runs until now."""
    say(box, ("h", "provisioning", 0, A100), ("h", "running", 0), ("h", "running", 30), imported=True)
    assert ask(box).until_us == box.at(30)
    assert ask(box).overall.mean == 1
    say(box, ("w", "provisioning", 30, L4), ("w", "running", 30))
    report = ask(box)
    assert report.until_us == box.at(60)
    assert report.overall.mean == Fraction(1, 2) + Fraction(1, 4)


def test_a_controller_that_is_silent_holds_to_its_last_beat(box) -> None:
    """Beyond it nobody knows."""
    say(box, ("w", "provisioning", 0, A100), ("w", "running", 0))
    heartbeat(box.ledger, "lab", writer="box.control", at_us=box.at(45), interval_us=60_000_000)
    assert (ask(box).until_us, ask(box).overall.mean) == (box.at(45), 1)


def test_a_window_and_a_class(box) -> None:
    """Only what touches it."""
    say(box, ("w", "provisioning", 0, A100), ("w", "running", 0), ("w", "stopped", 30))
    assert ask(box, since=15, until=45).overall.mean == Fraction(1, 2)
    assert not ask(box, since=40).answered
    assert ask(box, class_name="L4").lines == ()


def test_a_window_that_ends_before_it_begins_is_refused(box) -> None:
    """As everywhere."""
    say(box, ("w", "provisioning", 0, A100))
    with pytest.raises(Misconfigured) as refused:
        ask(box, since=30, until=20)
    assert refused.value.code == "empty-window"


def test_a_ledger_without_events_knows_nothing(box) -> None:
    """Not that nothing was held."""
    box.append(box.device(0))
    assert not ask(box).answered
