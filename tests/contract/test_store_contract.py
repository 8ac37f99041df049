"""The contract of a store, one rule a test; every store must keep it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuledger.model.lifecycle import Placement
from gpuledger.model.missing import Missing
from gpuledger.model.rows import DriverRecord, Pass, PolicyVersion, UsageRecord, Watch
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent


def watch(since: int, length: int = 1, **fields: Any) -> Watch:
    """A watch over [since, since + length)."""
    base = {"host": "a", "device": "x", "source": "driver", "method": "nvml", "interval_ms": 1, "status": "ok"}
    return Watch(**base | {"since_us": since, "until_us": since + length} | fields)


def driver(pid: int, **fields: Any) -> DriverRecord:
    """A driver's row of a process that ran for 1 ms from pid milliseconds on."""
    base = {"host": "a", "device": "x", "pid": pid, "started_at_us": pid * 1000, "context_ms": 1, "gpu_percent": 0}
    rest = {"peak_memory_mib": 5, "memory_percent": Missing("driver: n/a"), "read_at_us": 10**9, "method": "nvml"}
    return DriverRecord(**base | rest | fields)


def a_pass(at_us: int = 5) -> Pass:
    """A metering pass."""
    return Pass(
        at_us=at_us, covered_from_us=0, covered_until_us=0, evidence_marks="{}", records_added=0, corrections_added=0
    )


def test_rows_come_back_as_they_went(store) -> None:
    """Equal, with their reference, absences without their reason."""
    (added,) = store.append([driver(7)], writer="w", at_us=1).added
    assert added == driver(7)
    assert store.get(added.ref) == driver(7, memory_percent=Missing("not recorded"))
    assert [row.ref for row in store.scan(DriverRecord)] == ["driver:w/1"]


def test_numbers_are_gap_free_per_writer(store) -> None:
    """Over all kinds, in the order of the chain, also when most of a batch is known."""
    store.append([driver(1), watch(1)], writer="w", at_us=1)
    store.append([driver(9)], writer="v", at_us=1)
    again = store.append([a_pass(), driver(2), watch(1), driver(1), watch(2)], writer="w", at_us=2)
    assert [row.ref for row in again.added] == ["watch:w/3", "driver:w/4", "pass:w/5"]
    assert again.known == 2
    assert store.marks() == {"w": 5, "v": 1}


def test_nothing_new_changes_nothing(store) -> None:
    """Neither marks nor heads move."""
    store.append([driver(1), watch(1)], writer="w", at_us=1)
    before = store.heads()
    for rows in ([], [driver(1)], [watch(1), driver(1), driver(1)]):
        assert store.append(rows, writer="w", at_us=9).added == ()
        assert store.append(rows, writer="new", at_us=9).added == ()
    assert store.heads() == before


def test_the_first_of_two_figures_stays(store) -> None:
    """Conflicts name the row that stands; other circumstances of reading are none."""
    store.append([driver(1)], writer="w", at_us=1)
    other = store.append([driver(1, context_ms=2), driver(1, read_at_us=5, method="import")], writer="v", at_us=2)
    assert [(problem.code, problem.where) for problem in other.conflicts] == [("conflict", "driver:w/1")]
    assert (other.added, other.known) == ((), 2)
    assert [row.context_ms for row in store.scan(DriverRecord)] == [1]


def test_rows_without_a_start_are_told_apart_by_content(store) -> None:
    """And by the load of the driver."""
    absent = Missing("csv")
    rows = [
        driver(1, started_at_us=absent),
        driver(1, started_at_us=absent, context_ms=2),
        driver(1, started_at_us=absent, driver_epoch="boot-2"),
        driver(1, started_at_us=absent),
    ]
    assert len(store.append(rows, writer="w", at_us=1).added) == 3


def test_an_hour_is_recorded_once(store) -> None:
    """By two servers at once, with one figure or two."""
    base = {"meter": "m", "hour_us": 0, "host": "a", "device": "x", "subject": "s", "context": "settled"}
    rest = {"evidence_count": 1, "evidence_hash": "e", "recorded_at_us": 1}
    store.append([UsageRecord(**base, **rest, quantity=5)], writer="a", at_us=1)
    same = store.append([UsageRecord(**base, **rest | {"recorded_at_us": 2}, quantity=5)], writer="b", at_us=2)
    other = store.append([UsageRecord(**base, **rest, quantity=6)], writer="b", at_us=2)
    assert (same.conflicts, len(other.conflicts), store.count(UsageRecord)) == ((), 1, 1)


def test_a_policy_version_is_applied_once(store) -> None:
    """Two people applying version 1 at once: the second is told."""
    one = PolicyVersion(version=1, effective_from_us=0, applied_at_us=1, document="a", document_hash="A")
    two = PolicyVersion(version=1, effective_from_us=0, applied_at_us=1, document="b", document_hash="B")
    store.append([one], writer="a", at_us=1)
    assert len(store.append([two], writer="b", at_us=1).conflicts) == 1
    assert [row.document for row in store.scan(PolicyVersion)] == ["a"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [1, 2, 3]),
        ({"since_us": 3000, "until_us": 4000}, [3]),
        ({"since_us": 2500, "until_us": 3000}, [2]),
        ({"since_us": 2000}, [2, 3]),
        ({"until_us": 2000}, [1]),
        ({"pids": {("a", 3), ("b", 1)}}, [3]),
        ({"hosts": {"b"}}, []),
        ({"after": {"w": 1}}, [2, 3]),
        ({"upto": {"w": 1}}, [1]),
        ({"upto": {}}, []),
        ({"order": "time", "descending": True, "limit": 2}, [3, 2]),
        ({"descending": True}, [3, 2, 1]),
    ],
)
def test_scans_choose_and_order(store, wanted, found) -> None:
    """Windows, filters, marks, orders, limits."""
    store.append([driver(pid) for pid in (1, 2, 3)], writer="w", at_us=1)
    assert [row.pid for row in store.scan(DriverRecord, **wanted)] == found


def test_seals_chain_over_all_writers(store) -> None:
    """A seal holds every head before it, and the root before it."""
    store.append([driver(1)], writer="w", at_us=1)
    store.append([driver(2)], writer="v", at_us=1)
    assert isinstance(store.latest_root(), Missing)
    first = store.seal(3, writer="w")
    second = store.seal(4, writer="v")
    assert (first.ref, second.ref, second.previous_root) == ("seal:w/2", "seal:v/2", first.root)
    assert store.latest_root() == second.root
    assert store.findings() == []


def test_an_event_is_told_once(store) -> None:
    """Told twice it is known; its id with other content is a conflict; whose it was is no part of that."""
    base = {"workload": "w", "event_id": "1", "sequence": 1, "state": "running", "at_us": 5, "source": "ctl"}
    first = WorkloadEvent(**base, recorded_at_us=6, subject="al", placement="p")
    store.append([first], writer="a", at_us=1)
    again = store.append([replace(first, recorded_at_us=9, sequence=2, subject="-")], writer="b", at_us=2)
    other = store.append([replace(first, at_us=7)], writer="b", at_us=3)
    assert (again.added, again.known, again.conflicts) == ((), 1, ())
    assert (other.added, len(other.conflicts)) == ((), 1)
    assert [row.at_us for row in store.scan(WorkloadEvent)] == [5]


def test_a_hold_moves_with_one_event(store) -> None:
    """Let go and taken in one transaction; the same twice adds nothing; without an expiry it says so."""
    moved = [
        Hold(workload="w", sequence=2, change=change, at_us=5, placement=place, expires_at_us=Missing("confirmed"))
        for change, place in (("released", "p"), ("taken", "q"))
    ]
    assert len(store.append(moved, writer="a", at_us=1).added) == 2
    assert store.append(moved, writer="b", at_us=2).known == 2
    assert [row.expires_at_us for row in store.scan(Hold)] == [Missing("not recorded")] * 2


def test_an_expected_end_is_said_once_an_admission(store) -> None:
    """The same again is known; another end of the same admission is a conflict, and the first stays."""
    row = ExpectedEnd(workload="w", sequence=2, at_us=5, until_us=9)
    store.append([row], writer="a", at_us=1)
    assert store.append([replace(row, at_us=6)], writer="b", at_us=2).known == 1
    assert len(store.append([replace(row, until_us=10)], writer="b", at_us=3).conflicts) == 1
    assert [one.until_us for one in store.scan(ExpectedEnd)] == [9]


def test_a_placement_stands_for_one_thing(store) -> None:
    """Its key is of all of it, so a second meaning is a conflict."""
    row = PlacementRow.of(Placement(class_name="L4", devices=("GPU-a",)))
    store.append([row], writer="a", at_us=1)
    assert store.append([row], writer="b", at_us=2).known == 1
    assert len(store.append([replace(row, machine="m")], writer="b", at_us=2).conflicts) == 1
    assert [each.read() for each in store.scan(PlacementRow)] == [Placement(class_name="L4", devices=("GPU-a",))]
