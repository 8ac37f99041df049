"""What is new beyond marks: workloads, late events, corrections, heartbeats, policies."""

from __future__ import annotations

import pytest

from gpuledger.ledger import Ledger
from gpuledger.ledger import news as room
from gpuledger.ledger.engine import bare_cursor
from gpuledger.ledger.news import NO_EVENT, News, ask_ahead, news

EVERY_STORE = True


def since(ledger: Ledger, seen: dict[str, int]) -> News:
    return news(ledger.connection, seen, ledger.marks())


def test_workloads_are_those_with_new_events_or_holds(ledger: Ledger, make) -> None:
    """Each writer's rows beyond its own mark, and nothing where nothing moved."""
    ledger.append([make.event(1, workload="old"), make.hold(1, workload="old")], writer="b.agent", at_us=1)
    seen = ledger.marks()
    ledger.append([make.event(9, workload="z")], writer="c.agent", at_us=2)
    ledger.append([make.hold(9, workload="y"), make.watch(1)], writer="b.agent", at_us=2)
    found = since(ledger, seen)
    assert found.workloads == {"z", "y"}
    assert (found.seen, found.marks) == (seen, ledger.marks())
    assert since(ledger, {}).workloads == {"old", "z", "y"}
    nothing = since(ledger, ledger.marks())
    assert (nothing.workloads, nothing.earliest_us, nothing.beats) == (frozenset(), NO_EVENT, {})
    assert not nothing.is_corrected
    assert not nothing.has_policy


def test_new_placements_are_told_by_their_keys(ledger: Ledger, make) -> None:
    """Whether or not any event names them yet."""
    ledger.append([make.placement(1)], writer="b.one", at_us=1)
    seen = ledger.marks()
    assert since(ledger, seen).placements == frozenset()
    fresh = [make.placement(2), make.placement(3)]
    ledger.append(fresh[:1], writer="b.one", at_us=2)
    ledger.append(fresh[1:], writer="c.two", at_us=2)
    assert since(ledger, seen).placements == {row.placement for row in fresh}


def test_what_comes_late_can_change_time_before(ledger: Ledger, make) -> None:
    """An event for time before, or any correction; nothing that lies after, and nothing that was seen."""
    ledger.append([make.event(1, at_us=50)], writer="b.one", at_us=1)
    seen = ledger.marks()
    assert not since(ledger, seen).can_change(60)
    assert since(ledger, {}).can_change(60)
    ledger.append([make.event(2, at_us=60)], writer="b.two", at_us=1)
    assert not since(ledger, seen).can_change(60)
    ledger.append([make.event(3, at_us=59)], writer="b.two", at_us=1)
    assert since(ledger, seen).can_change(60)
    seen = ledger.marks()
    ledger.append([make.correction()], writer="b.two", at_us=1)
    assert since(ledger, seen).can_change(0)


def test_heartbeats_are_told_by_source(ledger: Ledger, make) -> None:
    """The last of each, and no other watch."""

    def beat(source: str, at_us: int) -> object:
        return make.watch(0, host=source, device="", source="controller", method="heartbeat", since_us=at_us,
                          until_us=at_us)  # fmt: skip

    ledger.append([beat("a", 5), beat("b", 6), make.watch(1)], writer="b.one", at_us=1)
    seen = ledger.marks()
    ledger.append([beat("a", 8), beat("a", 7)], writer="b.one", at_us=1)
    ledger.append([beat("a", 3)], writer="b.two", at_us=1)
    assert since(ledger, seen).beats == {"a": 8}
    assert since(ledger, {}).beats == {"a": 8, "b": 6}


def test_a_new_policy_is_told(ledger: Ledger, make) -> None:
    """Whoever applied it."""
    ledger.append([make.policy(1)], writer="b.apply", at_us=1)
    seen = ledger.marks()
    assert not since(ledger, seen).has_policy
    ledger.append([make.policy(2)], writer="c.apply", at_us=1)
    assert since(ledger, seen).has_policy


def test_what_left_for_the_archive_is_told(ledger: Ledger, make) -> None:
    """Whoever let it go: until when time is closed for good is to be asked anew."""
    ledger.append([make.event(1)], writer="b.one", at_us=1)
    seen = ledger.marks()
    assert not since(ledger, seen).has_archive
    ledger.append([make.archive()], writer="c.archive", at_us=1)
    assert since(ledger, seen).has_archive


def test_what_was_asked_ahead_is_not_asked_again(ledger: Ledger, make) -> None:
    """Of some writers it was asked with the marks; of the others it is asked once these are known: the same is told."""
    ledger.append([make.event(1, workload="old")], writer="b.one", at_us=1)
    seen = ledger.marks()
    ledger.append([make.event(2, workload="x")], writer="b.one", at_us=2)
    ledger.append([make.event(3, workload="y")], writer="b.two", at_us=2)
    marks = ledger.marks()
    told = news(ledger.connection, seen, marks)
    assert told.writers == {"b.one", "b.two"}
    for writers in ((), ("b.one",), ("b.one", "b.two"), ("b.one", "b.none")):
        ahead = ask_ahead(ledger.connection, seen, writers)
        assert news(ledger.connection, seen, marks, ahead) == told
    ledger.append([make.event(4, workload="z")], writer="b.one", at_us=3)
    early = news(ledger.connection, seen, marks, ask_ahead(ledger.connection, seen, ("b.one",)))
    assert early.workloads == {"x", "y", "z"}, "what came after the marks may be told"
    assert since(ledger, dict(early.marks)).workloads == {"z"}, "and is told again"


def test_more_writers_than_one_statement_takes(ledger: Ledger, make) -> None:
    """A hundred and twenty of them, each with one workload."""
    for number in range(120):
        ledger.append([make.event(number, workload=f"w{number}", at_us=number)], writer=f"h{number}.agent", at_us=1)
    found = since(ledger, {f"h{number}.agent": 1 for number in range(0, 120, 2)})
    assert found.workloads == {f"w{number}" for number in range(1, 120, 2)}
    assert found.earliest_us == 1


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_no_part_walks_a_table(ledger: Ledger, make) -> None:
    """Each writer's rows are found by its mark."""
    ledger.append([make.event(1), make.hold(1), make.correction()], writer="b.one", at_us=1)
    cursor = bare_cursor(ledger.connection)
    cursor.execute(f"EXPLAIN QUERY PLAN {room._OF_ONE_WRITER}", ("b.one", 0) * room._PARTS)
    plan = [row[3] for row in cursor.fetchall()]
    assert not [step for step in plan if step.startswith("SCAN") and "CONSTANT" not in step], plan
