"""Who holds capacity at a moment: names and expected ends."""

from __future__ import annotations

import pytest

from gpuledger.ledger import Ledger, holders, workloads
from gpuledger.ledger.engine import bare_cursor
from gpuledger.model.identity import IdentityText


@pytest.fixture
def told(ledger: Ledger, make) -> Ledger:
    """One that runs, one that ended, one that begins later, one that was admitted, one that only waits."""
    rows = [
        make.event(1, workload="runs", state="provisioning", at_us=10),
        make.event(2, workload="runs", sequence=2, state="running", at_us=20),
        make.event(1, workload="ended", state="running", at_us=10),
        make.event(2, workload="ended", sequence=2, state="stopped", at_us=20),
        make.event(1, workload="later", state="provisioning", at_us=60),
        make.event(1, workload="waits", state="pending", at_us=10),
        make.event(1, workload="admitted", state="pending", at_us=40),
        make.hold(1, workload="admitted", sequence=1, at_us=40, expires_at_us=55),
        make.hold(1, workload="lapsed", sequence=1, at_us=5, expires_at_us=45),
    ]
    ledger.append(rows, writer="b.agent", at_us=1)
    return ledger


@pytest.mark.parametrize(
    ("at_us", "until_us", "names"),
    [
        (15, 15, {"runs", "ended", "lapsed"}),
        (30, 30, {"runs", "lapsed"}),
        (42, 42, {"runs", "admitted", "lapsed"}),
        (50, 50, {"runs", "admitted"}),
        (50, 60, {"runs", "admitted", "later"}),
        (55, 55, {"runs"}),
        (70, 70, {"runs", "later"}),
    ],
)
def test_who_may_hold_at_a_moment(told: Ledger, at_us: int, until_us: int, names: set[str]) -> None:
    """By the last event before it, by a hold that has not lapsed, and by what happens soon after."""
    assert holders.holding_workloads(told.connection, at_us, until_us=until_us, longest_us=50) == names


def test_an_end_holds_for_its_own_admission(ledger: Ledger, make) -> None:
    """Not after a stop, nor once it was admitted again."""
    rows = [
        make.event(1, workload="a", sequence=1, state="pending"),
        make.expected(1, workload="a", at_us=5, until_us=100),
        make.event(1, workload="b", sequence=1, state="pending"),
        make.expected(1, workload="b", until_us=100),
        make.event(2, workload="b", sequence=2, state="stopped"),
        make.expected(1, workload="c", until_us=100),
        make.hold(2, workload="c", sequence=2, expires_at_us=50),
        make.expected(1, workload="d", until_us=100),
        make.hold(2, workload="d", sequence=2, change="confirmed"),
        make.expected(3, workload="d", at_us=7, until_us=200),
    ]
    ledger.append(rows, writer="b.agent", at_us=1)
    assert holders.expected_ends(ledger.connection, ["a", "b", "c", "d", "e"]) == {"a": (5, 100), "d": (7, 200)}
    assert holders.expected_ends(ledger.connection, []) == {}


def test_what_says_what_workloads_hold(told: Ledger, make) -> None:
    """As each part by itself: events since the last provisioning, the last hold row, the end."""
    told.append([make.expected(1, workload="admitted", at_us=40, until_us=90)], writer="b.agent", at_us=2)
    since_us = dict.fromkeys(["runs", "admitted", "nobody"], 50)
    found = holders.standing(told.connection, since_us)
    assert found.events == workloads.events_since_begin(told.connection, since_us)
    assert found.claims == workloads.claims(told.connection, since_us)
    assert found.ends == {"admitted": (40, 90)}
    assert found.texts == {}, "these events name no text that stands"
    assert {name: len(events) for name, events in found.events.items()} == {"runs": 2, "admitted": 1}


def test_owners_come_with_what_workloads_hold(ledger: Ledger, make) -> None:
    """The texts of the events that count, each once; not those that were forgotten, nor anybody else's."""
    texts = {name: IdentityText(workload="w", user=name) for name in ("al", "bo", "cy", "dee")}
    keys = {name: ledger.key_of(text) for name, text in texts.items()}
    rows = [
        make.event(1, workload="w", state="pending", at_us=1, subject=keys["al"]),
        make.event(2, workload="w", sequence=2, state="provisioning", at_us=2, subject=keys["bo"]),
        make.event(3, workload="w", sequence=3, state="running", at_us=3, subject=keys["bo"]),
        make.event(4, workload="w", sequence=4, state="running", at_us=4, subject=keys["cy"]),
        make.event(1, workload="other", state="running", at_us=4, subject=keys["dee"]),
    ]
    ledger.append(rows, writer="b.agent", at_us=1)
    ledger.forget([keys["cy"]])
    assert holders.standing(ledger.connection, {"w": 9}).texts == {keys["bo"]: texts["bo"].to_json()}


def test_no_look_walks_a_table(ledger: Ledger, make) -> None:
    """Names go by the index; ends by their keys."""
    ledger.append([make.event(1), make.hold(1), make.expected(1)], writer="b.one", at_us=1)
    cursor = bare_cursor(ledger.connection)
    for query, values in ((holders._LIVE, (1,)), (holders._MOVED, (1, 2)), (holders._ADMITTED, (1, 2, 3))):
        cursor.execute(f"EXPLAIN QUERY PLAN {query}", values)
        plan = [row[3] for row in cursor.fetchall()]
        scans = [step for step in plan if step.startswith("SCAN") and "name" not in step and "CONSTANT" not in step]
        assert not [step for step in scans if "INDEX" not in step], plan
