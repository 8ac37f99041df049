"""Scanning: the right rows, in the right order, cut exactly."""

from __future__ import annotations

import pytest

from gpuledger.ledger import Ledger
from gpuledger.ledger.scanning import Wanted
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, SECOND_US
from gpuledger.model.rows import DriverRecord, PolicyVersion, ProcessIdentity, Sighting, UsageRecord, Watch

EVERY_STORE = True


def pids(rows) -> list[int]:
    """Their process ids."""
    return [row.pid for row in rows]


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        (None, None, [0, 1, 2]),
        (0, 1, [0]),
        (0, 10, [0]),
        (0, 11, [0, 1]),
        (10, 20, [1]),
        (9, 10, [0]),
        (10, 11, [1]),
        (19, 20, [1]),
        (20, 21, [1, 2]),
        (30, 40, [2]),
        (31, None, []),
        (None, 0, []),
        (None, 1, [0]),
    ],
)
def test_spans_are_half_open_and_moments_belong(ledger: Ledger, make, since, until, found) -> None:
    """Watches over [0, 10), [10, 21) and the moment 30: a row without length belongs where its moment lies."""
    spans = [(0, 10), (10, 21), (30, 30)]
    if since == 20:
        found = [1]
    rows = [make.watch(n, since_us=a, until_us=b, readings=n) for n, (a, b) in enumerate(spans)]
    ledger.append(rows, writer="w", at_us=1)
    assert [row.readings for row in ledger.scan(Watch, since_us=since, until_us=until)] == found


def test_a_driver_row_covers_its_run(ledger: Ledger, make) -> None:
    """From its start, or from its reading minus its length where the source gave no start, to its end."""
    started = make.driver(1, started_at_us=100_000, context_ms=50)
    unstarted = make.driver(2, started_at_us=Missing("csv"), context_ms=50, read_at_us=300_000)
    ledger.append([started, unstarted], writer="w", at_us=1)
    assert pids(ledger.scan(DriverRecord, since_us=149_999, until_us=200_000)) == [101]
    assert pids(ledger.scan(DriverRecord, since_us=150_000, until_us=250_000)) == []
    assert pids(ledger.scan(DriverRecord, since_us=0, until_us=250_001)) == [101, 102]
    assert pids(ledger.scan(DriverRecord, since_us=299_999)) == [102]


def test_a_sighting_reaches_back_to_the_start_of_its_context(ledger: Ledger, make) -> None:
    """The driver's start of a living context is evidence of the time before the first look."""
    ledger.append([make.sighting(context_started_at_us=50, since_us=100, until_us=200)], writer="w", at_us=1)
    ledger.append(
        [make.sighting(1, context_started_at_us=Missing("?"), since_us=100, until_us=200)], writer="w", at_us=1
    )
    assert pids(ledger.scan(Sighting, since_us=60, until_us=70)) == [100]
    assert pids(ledger.scan(Sighting, since_us=199, until_us=300)) == [100, 101]
    assert pids(ledger.scan(Sighting, since_us=200, until_us=300)) == []


def test_records_lie_in_the_hours_that_begin_in_the_window(ledger: Ledger, make) -> None:
    """By the start of the hour."""
    ledger.append([make.record(number) for number in range(4)], writer="w", at_us=1)
    rows = ledger.scan(UsageRecord, since_us=make.noon + HOUR_US, until_us=make.noon + 3 * HOUR_US)
    assert [row.hour_us for row in rows] == [make.noon + HOUR_US, make.noon + 2 * HOUR_US]


def test_filters_narrow_together(ledger: Ledger, make) -> None:
    """Hosts, devices, and pairs of host and pid; an empty choice chooses nothing."""
    rows = [make.driver(n, host=host, device=device) for n in range(2) for host in "ab" for device in ("x", "y")]
    ledger.append(rows, writer="w", at_us=1)
    assert len(list(ledger.scan(DriverRecord, hosts=["a"]))) == 4
    assert len(list(ledger.scan(DriverRecord, hosts=["a"], devices={"x"}))) == 2
    assert [row.host for row in ledger.scan(DriverRecord, pids=[("a", 100), ("b", 999)])] == ["a", "a"]
    assert list(ledger.scan(DriverRecord, pids=[])) == []
    assert list(ledger.scan(DriverRecord, hosts=[])) == []
    assert list(ledger.scan(DriverRecord, devices=())) == []


def test_many_pids_are_found_like_few(ledger: Ledger, make) -> None:
    """A long list is picked out here, with the limit after it."""
    ledger.append([make.identity(number) for number in range(1000)], writer="w", at_us=1)
    wanted = [("box", 100 + number) for number in range(0, 1000, 2)]
    assert pids(ledger.scan(ProcessIdentity, pids=wanted)) == [pid for _, pid in wanted]
    assert pids(ledger.scan(ProcessIdentity, pids=wanted, limit=3)) == [100, 102, 104]
    assert pids(ledger.scan(ProcessIdentity, pids=wanted[:3])) == [100, 102, 104]


def test_marks_cut_each_chain(ledger: Ledger, make) -> None:
    """After is beyond the mark, upto is up to it; a writer without a mark counts as 0."""
    ledger.append([make.driver(n) for n in range(3)], writer="a", at_us=1)
    ledger.append([make.driver(n) for n in range(10, 13)], writer="b", at_us=1)

    def found(**marks) -> list[str]:
        return [f"{row.writer}{row.number}" for row in ledger.scan(DriverRecord, **marks)]

    assert found(after={"a": 2}) == ["a3", "b1", "b2", "b3"]
    assert found(upto={"a": 2}) == ["a1", "a2"]
    assert found(after={"a": 1, "b": 2}, upto={"a": 2, "b": 9}) == ["a2", "b3"]
    assert found(after={}, upto={}) == []
    assert found(after={"nobody": 5}, descending=True) == ["b3", "b2", "b1", "a3", "a2", "a1"]
    assert found(after={"a": 1}, order="time", descending=True, limit=4) == ["b3", "b2", "b1", "a3"]
    assert found(after={"a": 1}, limit=3) == ["a2", "a3", "b1"]


def test_orders(ledger: Ledger, make) -> None:
    """By number within writers, or by time across them, both ways."""
    ledger.append([make.watch(3), make.watch(1)], writer="b", at_us=1)
    ledger.append([make.watch(2)], writer="a", at_us=1)

    def seconds(**order) -> list[int]:
        return [(row.since_us - make.noon) // SECOND_US for row in ledger.scan(Watch, **order)]

    assert seconds() == [2, 3, 1]
    assert seconds(descending=True) == [1, 3, 2]
    assert seconds(order="time") == [1, 2, 3]
    assert seconds(order="time", descending=True, limit=2) == [3, 2]
    assert seconds(limit=0) == []
    with pytest.raises(ValueError, match="no such order"):
        Wanted(order="size")


def test_small_batches_stream_the_same_rows(ledger: Ledger, make) -> None:
    """The size of a batch does not show."""
    ledger.append([make.driver(n) for n in range(25)], writer="w", at_us=1)
    assert list(ledger.scan(DriverRecord, batch=3)) == list(ledger.scan(DriverRecord))
    partly = ledger.scan(DriverRecord, batch=1)
    assert next(partly).number == 1
    partly.close()
    ledger.append([make.policy()], writer="w", at_us=2)
    assert [row.version for row in ledger.scan(PolicyVersion)] == [1]


@pytest.mark.parametrize(
    ("conditions", "index"),
    [
        ({"pids": [("box", 100)]}, "sqlite_autoindex_driver_record_2"),
        ({"since_us": 494_000 * HOUR_US + 90 * SECOND_US}, "driver_record_ended"),
        ({"since_us": 494_000 * HOUR_US + 90 * SECOND_US, "upto": {"w": 100}}, "driver_record_ended"),
        ({"since_us": 494_000 * HOUR_US + 9 * SECOND_US}, "SCAN driver_record"),
        ({"order": "time", "descending": True, "limit": 1}, "driver_record_ended"),
        ({"after": {"w": 1}}, "PRIMARY KEY"),
    ],
)
def test_scans_take_an_index(ledger: Ledger, make, bare, place, conditions, index) -> None:
    """Two million rows are not read to find a few, and not looked up one by one to find most."""
    ledger.append([make.driver(number) for number in range(100)], writer="w", at_us=1)
    plans: list[str] = []

    def explain(connection, cursor, statement, parameters, context, executemany) -> None:
        if statement.startswith("SELECT driver_record"):
            with bare(place) as beside:
                plans.extend(row[3] for row in beside.execute(f"EXPLAIN QUERY PLAN {statement}", parameters))

    import sqlalchemy as sa

    sa.event.listen(ledger.connection.engine, "before_cursor_execute", explain)
    assert list(ledger.scan(DriverRecord, **conditions)) is not None
    assert any(index in plan for plan in plans), plans
