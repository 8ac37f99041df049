"""Look-ups of workloads: the tail of a life, what is claimed, who may hold a device, and never a walk of history."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from gpuledger.ledger import Ledger, workloads
from gpuledger.ledger.engine import bare_cursor
from gpuledger.model.lifecycle import Placement
from gpuledger.model.missing import Missing
from gpuledger.model.workload_rows import PlacementRow

EVERY_STORE = True

X = PlacementRow.of(Placement(class_name="L4", devices=("GPU-x",), share=Fraction(1, 2)))
Y = PlacementRow.of(Placement(class_name="L4", devices=("GPU-x", "GPU-y"), count=2))


@pytest.fixture
def told(ledger: Ledger, make) -> Ledger:
    """Two lives of w, one of v that is open, an admitted hold of u."""
    rows = [
        X, Y,
        make.event(1, workload="w", sequence=1, state="pending", at_us=10, placement=""),
        make.event(2, workload="w", sequence=2, state="provisioning", at_us=20, placement=X.placement),
        make.event(3, workload="w", sequence=3, state="running", at_us=30, placement=""),
        make.event(4, workload="w", sequence=5, state="stopped", at_us=40, placement=""),
        make.event(5, workload="w", sequence=4, state="provisioning", at_us=50, placement=Y.placement),
        make.event(1, workload="v", sequence=1, state="running", at_us=15, placement=X.placement),
        make.hold(2, workload="w", sequence=2, placement=X.placement, at_us=20),
        make.hold(4, workload="w", sequence=4, change="released", placement=X.placement, at_us=50),
        make.hold(4, workload="w", sequence=4, change="taken", placement=Y.placement, at_us=50),
        make.hold(0, workload="u", sequence=0, placement=X.placement, at_us=5, expires_at_us=100),
    ]  # fmt: skip
    ledger.append(rows, writer="b.agent", at_us=1)
    return ledger


def test_a_life_is_read_from_its_last_admission_on(told: Ledger, make) -> None:
    """Before that nothing can matter; without one it is read from its beginning."""

    def ids(**since_us: int) -> dict[str, list[str]]:
        found = workloads.events_since_begin(told.connection, since_us)
        return {name: [event.event_id for event in events] for name, events in found.items()}

    assert ids(w=99, v=99, nobody=1) == {"w": ["e5"], "v": ["e1"]}
    assert ids(w=45) == ids(w=20) == {"w": ["e2", "e3", "e4", "e5"]}
    assert ids(w=19) == {"w": ["e1", "e2", "e3", "e4", "e5"]}
    assert workloads.last_sequences(told.connection, ["w", "v", "nobody"]) == {"w": 5, "v": 1}
    told.append([make.hold(1, workload="held")], writer="b.agent", at_us=2)
    assert workloads.last_sequences(told.connection, ["held"]) == {"held": 0}


def test_names_are_found_by_where_they_stand(told: Ledger) -> None:
    """By the order of their bytes on every store, each pair by itself."""
    assert (workloads.name_after(told.connection, ""), workloads.name_after(told.connection, "v")) == ("v", "w")
    assert not isinstance(workloads.name_after(told.connection, "V~"), Missing)
    assert isinstance(workloads.name_after(told.connection, "w"), Missing)
    found = workloads.events_named(told.connection, [("v", "x"), ("v", "x"), ("u", "v"), ("u", "v~")])
    assert [(row.workload, row.event_id) for row in found] == [
        ("v", "e1"), *(("w", f"e{number}") for number in range(1, 6)),
    ]  # fmt: skip


def test_known_events_are_found_by_their_id(told: Ledger) -> None:
    """Of the very workload."""
    found = workloads.known_events(told.connection, [("w", "e3"), ("v", "e3"), ("v", "e1")])
    assert {key: row.state for key, row in found.items()} == {("w", "e3"): "running", ("v", "e1"): "running"}


def test_the_last_claim_is_what_a_move_takes(told: Ledger) -> None:
    """Of the two rows of one event, the release comes first."""
    claims = workloads.claims(told.connection, ["w", "u", "v"])
    assert {name: (row.change, row.placement) for name, row in claims.items()} == {
        "w": ("taken", Y.placement),
        "u": ("taken", X.placement),
    }


@pytest.mark.parametrize("others", [0, workloads.FEW - 1], ids=["one", "few"])
def test_placements_are_found_by_their_devices(told: Ledger, others: int) -> None:
    """Whole names only, however many are asked for."""
    devices = {"GPU-y", *(f"GPU-{n}" for n in range(others))}
    assert [row.placement for row in workloads.placements_on(told.connection, devices)] == [Y.placement]
    assert workloads.placements_on(told.connection, {"GPU-", "x"}) == []
    assert len(workloads.placements_on(told.connection, {"GPU-x"})) == 2
    assert workloads.placement_rows(told.connection, [X.placement, "?"]) == [X]
    every = workloads.every_placement(told.connection)
    assert {row.placement for row in every} >= {X.placement, Y.placement}
    assert len(every) == told.count(PlacementRow)


def test_who_may_hold_a_placement(told: Ledger) -> None:
    """Not who stopped by then; an unconfirmed hold until it lapses."""
    both = {X.placement, Y.placement}
    assert workloads.may_hold(told.connection, both, 60) == {"w", "v", "u"}
    assert workloads.may_hold(told.connection, {X.placement}, 60) == {"v", "u"}
    assert workloads.may_hold(told.connection, {X.placement}, 39) == {"w", "v", "u"}
    assert workloads.may_hold(told.connection, {X.placement}, 100) == {"v"}


def test_the_newest_policy(told: Ledger, make) -> None:
    """0 before the first."""
    assert workloads.newest_policy(told.connection) == 0
    told.append([make.policy(1), make.policy(2)], writer="b.agent", at_us=2)
    assert workloads.newest_policy(told.connection) == 2


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_every_look_up_goes_through_an_index(place: Path, make) -> None:
    """No statement about one workload walks a table that grows with history."""
    with Ledger.open(place, mode="append") as ledger:
        rows = [make.event(n, workload=f"w{n % 50}", sequence=n, placement="p") for n in range(2000)]
        ledger.append([*rows, *(make.hold(n, workload=f"w{n % 50}") for n in range(500))], writer="b.a", at_us=1)
        cursor = bare_cursor(ledger.connection)
        seen: list[str] = []
        driver = ledger.connection.connection.driver_connection
        driver.set_trace_callback(seen.append)
        workloads.events_since_begin(ledger.connection, {"w1": make.noon})
        workloads.known_events(ledger.connection, [("w1", "e1")])
        workloads.last_sequences(ledger.connection, ["w1"])
        workloads.claims(ledger.connection, ["w1"])
        workloads.may_hold(ledger.connection, ["p"], make.noon)
        driver.set_trace_callback(None)
        assert len(seen) == 6
        for statement in seen:
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
            plan = " ".join(str(row[3]) for row in cursor.fetchall())
            assert not any(f"SCAN {table}" in plan for table in ("e", "b", "h", "x", "hold", "workload_event")), plan
