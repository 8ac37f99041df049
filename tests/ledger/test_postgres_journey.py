"""Statements that travel together: one journey, answers in order, faults where they are, and nothing left behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from gpuledger.ledger import postgres_journey as room
from gpuledger.ledger.postgres_journey import Asked, Driver, Road, road_of


@pytest.fixture
def driver(postgres) -> Iterator[Driver]:
    """A connection in autocommit."""
    with postgres.superuser() as connection:
        yield connection


def backend_of(driver: Driver) -> int:
    return driver.info.backend_pid


def test_what_is_asked_together_goes_when_an_answer_is_needed(driver: Driver, monkeypatch) -> None:
    """One journey for all of them, each with its own rows and count; alone each goes at once."""
    road, journeys = Road(driver), []
    wait = driver.wait
    monkeypatch.setattr(driver, "wait", lambda answers: journeys.append(1) or wait(answers))
    with road.together(driver):
        made = road.ask(driver, "CREATE TEMP TABLE t (x bigint, y text)")
        filled = road.ask(driver, "INSERT INTO t VALUES ($1, $2), (7, NULL)", (2**40, "a'?ü"))
        read = road.ask(driver, "SELECT x, y FROM t ORDER BY x")
        assert not journeys
        assert not made.is_answered
        road.go(driver)
        assert (filled.count, read.rows) == (2, [(7, None), (2**40, "a'?ü")])
        asked = road.ask(driver, "SELECT 1")
    assert asked.rows == [(1,)]
    assert len(journeys) == 2
    assert road.ask(driver, "SELECT $1::bigint + 1", (41,)).rows == [(42,)]
    assert len(journeys) == 3
    road.go(driver)
    assert len(journeys) == 3


@pytest.mark.parametrize("can_pipeline", [True, False])
def test_what_is_last_goes_with_what_follows(driver: Driver, monkeypatch, can_pipeline: bool) -> None:
    """As the rows of a transaction go with its end; what is forgotten does not. An old libpq sends one by one."""
    monkeypatch.setattr(room, "CAN_PIPELINE", can_pipeline)
    road = Road(driver)
    road.ask(driver, "BEGIN")
    with road.together(driver, is_last=True):
        asked = road.ask(driver, "SELECT 1")
    assert not asked.is_answered
    assert road.ask(driver, "COMMIT").said == b"COMMIT"
    assert (asked.rows, asked.count) == ([(1,)], 1)
    assert road.ask(driver, "SELECT $1::text, $2::bigint", ("a'?", 2**40)).rows == [("a'?", 2**40)]
    with pytest.raises(psycopg.errors.DivisionByZero):
        road.ask(driver, "SELECT 1 / 0")
    with road.together(driver, is_last=True):
        asked = road.ask(driver, "SELECT 1 / 0")
    road.forget()
    road.go(driver)
    assert not asked.is_answered


def test_what_is_asked_often_is_prepared_once(driver: Driver) -> None:
    """Whatever else is asked between; and never more than so many statements."""
    road = Road(driver)
    for number in range(room._OFTEN + 2):
        with road.together(driver):
            found = [road.ask(driver, "SELECT $1::text || $2", (str(number), "x")), road.ask(driver, "SELECT 1")]
        assert [each.rows for each in found] == [[(f"{number}x",)], [(1,)]]
    named = "SELECT statement FROM pg_prepared_statements WHERE name LIKE 'gpuledger%' ORDER BY statement"
    assert road.ask(driver, named).rows == [("SELECT $1::text || $2",), ("SELECT 1",)]
    for number in range(room._MOST_PREPARED + 10):
        for _ in range(room._OFTEN):
            assert road.ask(driver, f"SELECT {number} + 1").rows == [(number + 1,)]
    ((count,),) = road.ask(driver, "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'gpuledger%'").rows
    assert count == room._MOST_PREPARED


def test_a_fault_is_the_first_one_and_nothing_after_it_is_done(driver: Driver) -> None:
    """Also while statements are prepared; the connection stays, and what was prepared before is known."""
    road = Road(driver)
    road.ask(driver, "CREATE TEMP TABLE t (x bigint PRIMARY KEY)")

    def ask_all() -> None:
        with road.together(driver):
            for _ in range(3):
                road.ask(driver, "INSERT INTO t VALUES ($1)", (1,))
            road.ask(driver, "SELECT 1 / 0")

    def ask_and_fail() -> None:
        with road.together(driver):
            asked.append(road.ask(driver, "INSERT INTO t VALUES (100)"))
            raise ValueError("ours")

    asked: list[Asked] = []
    for _ in range(room._OFTEN):
        with pytest.raises(psycopg.errors.UniqueViolation):
            ask_all()
        assert road.ask(driver, "SELECT count(*) FROM t").rows == [(0,)]
    for number in range(2 * room._OFTEN):
        assert road.ask(driver, "INSERT INTO t VALUES ($1)", (number,)).count == 1
    with pytest.raises(ValueError, match="ours"):
        ask_and_fail()
    road.go(driver)
    assert not asked[0].is_answered
    assert road.ask(driver, "SELECT max(x) FROM t").rows == [(2 * room._OFTEN - 1,)]


def test_more_than_fits_into_the_buffers_of_both_sides(driver: Driver) -> None:
    """Megabytes there and back at once: neither side waits for the other for good."""
    road, text = Road(driver), "x" * 1_000_000
    with road.together(driver):
        asked = [road.ask(driver, "SELECT $1::text || $1::text", (text,)) for _ in range(12)]
    assert {len(each.rows[0][0]) for each in asked} == {2_000_000}


def test_a_connection_that_is_cut_is_closed(postgres, driver: Driver) -> None:
    """While it waits, and before it asks."""
    with postgres.superuser() as beside:
        begun = time.monotonic()
        cutting = threading.Timer(0.3, lambda: beside.execute("SELECT pg_terminate_backend(%s)", (backend_of(driver),)))
        cutting.start()
        with pytest.raises(psycopg.OperationalError):
            Road(driver).ask(driver, "SELECT pg_sleep(30)")
        cutting.join()
        assert time.monotonic() - begun < 20
    assert driver.closed
    with pytest.raises(psycopg.OperationalError):
        Road(driver).ask(driver, "SELECT 1")


def test_whoever_is_interrupted_cancels_what_runs(driver: Driver) -> None:
    """Ctrl-C ends the wait at once, and the connection answers the next question."""
    road = road_of(driver)
    assert road is road_of(driver)

    def ask_both() -> None:
        with road.together(driver):
            road.ask(driver, "SELECT pg_sleep(30)")
            road.ask(driver, "SELECT 2")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            ask_both()
    finally:
        signal.signal(signal.SIGINT, before)
    assert road.ask(driver, "SELECT 3").rows == [(3,)]
