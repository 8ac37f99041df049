"""Statements that travel together: one round trip, answers in order, faults where they are, and nothing left behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from gpuledger.ledger import postgres_pipeline as room
from gpuledger.ledger.postgres_cursor import Cursor
from gpuledger.ledger.postgres_pipeline import Asked, Driver, Pipeline, pipeline_of


@pytest.fixture
def driver(postgres) -> Iterator[Driver]:
    """A connection in autocommit."""
    with postgres.superuser() as connection:
        yield connection


def backend_of(driver: Driver) -> int:
    return driver.info.backend_pid


def test_what_is_asked_together_goes_when_an_answer_is_needed(driver: Driver, monkeypatch) -> None:
    """One round trip for all of them, each with its own rows and count; alone each goes at once."""
    pipeline, trips = Pipeline(driver), []
    wait = driver.wait
    monkeypatch.setattr(driver, "wait", lambda answers: trips.append(1) or wait(answers))
    with pipeline.together(driver):
        made = pipeline.ask(driver, "CREATE TEMP TABLE t (x bigint, y text)")
        filled = pipeline.ask(driver, "INSERT INTO t VALUES ($1, $2), (7, NULL)", (2**40, "a'?ü"))
        read = pipeline.ask(driver, "SELECT x, y FROM t ORDER BY x")
        assert not trips
        assert not made.is_answered
        pipeline.flush(driver)
        assert (filled.count, read.rows) == (2, [(7, None), (2**40, "a'?ü")])
        asked = pipeline.ask(driver, "SELECT 1")
    assert asked.rows == [(1,)]
    assert len(trips) == 2
    assert pipeline.ask(driver, "SELECT $1::bigint + 1", (41,)).rows == [(42,)]
    assert len(trips) == 3
    pipeline.flush(driver)
    assert len(trips) == 3


@pytest.mark.parametrize("can_pipeline", [True, False])
def test_what_is_last_goes_with_what_follows(driver: Driver, monkeypatch, can_pipeline: bool) -> None:
    """As the rows of a transaction go with its end; what is forgotten does not. An old libpq sends one by one."""
    monkeypatch.setattr(room, "CAN_PIPELINE", can_pipeline)
    pipeline = Pipeline(driver)
    pipeline.ask(driver, "BEGIN")
    with pipeline.together(driver, is_last=True):
        asked = pipeline.ask(driver, "SELECT 1")
    assert not asked.is_answered
    assert pipeline.ask(driver, "COMMIT").said == b"COMMIT"
    assert (asked.rows, asked.count) == ([(1,)], 1)
    assert pipeline.ask(driver, "SELECT $1::text, $2::bigint", ("a'?", 2**40)).rows == [("a'?", 2**40)]
    with pytest.raises(psycopg.errors.DivisionByZero):
        pipeline.ask(driver, "SELECT 1 / 0")
    with pipeline.together(driver, is_last=True):
        asked = pipeline.ask(driver, "SELECT 1 / 0")
    pipeline.forget()
    pipeline.flush(driver)
    assert not asked.is_answered


def test_what_is_prepared_stays_whatever_the_driver_does(driver: Driver) -> None:
    """After a rollback psycopg lets the server forget all that is prepared, where it has prepared anything itself."""
    pipeline = Pipeline(driver)
    for _ in range(room._OFTEN + 2):
        assert pipeline.ask(driver, "SELECT 7").rows == [(7,)]
    assert pipeline._prepared
    for _ in range(10):
        driver.execute("SELECT 1")
    driver.execute("BEGIN")
    driver.execute("ROLLBACK")
    driver.execute("SELECT 2")
    assert pipeline.ask(driver, "SELECT 7").rows == [(7,)]


def test_what_is_asked_often_is_prepared_once(driver: Driver) -> None:
    """Whatever else is asked between."""
    pipeline = Pipeline(driver)
    for number in range(room._OFTEN + 2):
        with pipeline.together(driver):
            joined = pipeline.ask(driver, "SELECT $1::text || $2", (str(number), "x"))
            found = [joined, pipeline.ask(driver, "SELECT 1")]
        assert [each.rows for each in found] == [[(f"{number}x",)], [(1,)]]
    assert prepared(driver) == ["SELECT $1::text || $2", "SELECT 1"]


def prepared(driver: Driver) -> list[str]:
    """The statements that the server holds, in their order."""
    found = driver.execute("SELECT statement FROM pg_prepared_statements WHERE name LIKE 'gpuledger%' ORDER BY 1")
    return [statement for (statement,) in found]


def test_many_rows_of_one_round_trip_are_prepared_once(driver: Driver) -> None:
    """By one name for all that travel together; where they fail it is not believed to be there."""
    cursor = Cursor(driver)
    cursor.execute("CREATE TEMP TABLE t (x bigint PRIMARY KEY)")
    rows = [(number,) for number in range(10)]
    with pytest.raises(psycopg.errors.UniqueViolation):
        cursor.executemany("INSERT INTO t VALUES (?)", [(0,), *rows])
    assert prepared(driver) == []  # the second row failed, and from the third it was to be
    cursor.executemany("INSERT INTO t VALUES (?)", rows)
    assert cursor.execute("SELECT count(*), sum(x)::bigint FROM t").fetchall() == [(10, 45)]
    assert prepared(driver) == ["INSERT INTO t VALUES ($1)"]


def test_what_was_not_asked_for_longest_is_let_go(driver: Driver) -> None:
    """So many statements and no more; what is asked still stays, within a transaction that reads and around faults."""
    pipeline = Pipeline(driver)

    def ask_often(text: str) -> None:
        for _ in range(room._OFTEN):
            pipeline.ask(driver, text)

    def ask_and_fail() -> None:
        with pipeline.together(driver):
            ask_often("SELECT 'newest'")
            pipeline.ask(driver, "SELECT 1 / 0")

    def name_of_kept() -> list[tuple[str]]:
        found = driver.execute("SELECT name FROM pg_prepared_statements WHERE statement = $$SELECT 'kept'$$")
        return found.fetchall()

    ask_often("SELECT 'kept'")
    name = name_of_kept()
    assert len(name) == 1
    for number in range(room._MOST_PREPARED + 10):
        ask_often(f"SELECT {number}")
        pipeline.ask(driver, "SELECT 'kept'")
    assert len(prepared(driver)) == room._MOST_PREPARED
    assert name_of_kept() == name
    assert f"SELECT {room._MOST_PREPARED + 9}" in prepared(driver)
    assert "SELECT 0" not in prepared(driver)
    for _ in range(room._OFTEN):
        with pipeline.together(driver):
            pipeline.ask(driver, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            pipeline.ask(driver, "SELECT 'new'")
            pipeline.ask(driver, "COMMIT")
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):  # what was to be let go is let go later
            ask_and_fail()
    assert pipeline.ask(driver, "SELECT 'newest'").rows == [("newest",)]
    assert len(prepared(driver)) == room._MOST_PREPARED
    with pipeline.together(driver):  # more at once than are kept
        asked = [pipeline.ask(driver, f"SELECT -{number // 3}") for number in range(3 * room._MOST_PREPARED + 30)]
    assert [each.rows[0][0] for each in asked] == [-(number // 3) for number in range(len(asked))]
    assert len(prepared(driver)) == room._MOST_PREPARED
    assert pipeline.ask(driver, "SELECT 'kept'").rows == [("kept",)]


@pytest.mark.parametrize("can_pipeline", [True, False])
def test_a_value_that_cannot_be_bound_costs_nothing_but_itself(driver: Driver, monkeypatch, can_pipeline: bool) -> None:
    """It is found before anything goes: the connection stays, in its transaction and not in a pipeline."""
    monkeypatch.setattr(room, "CAN_PIPELINE", can_pipeline)
    pipeline, before = Pipeline(driver), []

    def ask_both(value: object) -> None:
        with pipeline.together(driver):
            before.append(pipeline.ask(driver, "SELECT $1::text", ("good",)))
            pipeline.ask(driver, "SELECT $1::text", (value,))

    pipeline.ask(driver, "BEGIN")
    for value, kind in (("a\0b", psycopg.DataError), (object(), psycopg.ProgrammingError)):
        with pytest.raises(kind):
            ask_both(value)
        assert not before[-1].is_answered
        assert not driver.closed
        assert pipeline.ask(driver, "SELECT $1::text", ("good",)).rows == [("good",)]
    assert pipeline.ask(driver, "COMMIT").said == b"COMMIT"


def test_a_fault_is_the_first_one_and_nothing_after_it_is_done(driver: Driver) -> None:
    """Also while statements are prepared; the connection stays, and what was prepared before is known."""
    pipeline = Pipeline(driver)
    pipeline.ask(driver, "CREATE TEMP TABLE t (x bigint PRIMARY KEY)")

    def ask_all() -> None:
        with pipeline.together(driver):
            for _ in range(3):
                pipeline.ask(driver, "INSERT INTO t VALUES ($1)", (1,))
            pipeline.ask(driver, "SELECT 1 / 0")

    def ask_and_fail() -> None:
        with pipeline.together(driver):
            asked.append(pipeline.ask(driver, "INSERT INTO t VALUES (100)"))
            raise ValueError("ours")

    asked: list[Asked] = []
    for _ in range(room._OFTEN):
        with pytest.raises(psycopg.errors.UniqueViolation):
            ask_all()
        assert pipeline.ask(driver, "SELECT count(*) FROM t").rows == [(0,)]
    for number in range(2 * room._OFTEN):
        assert pipeline.ask(driver, "INSERT INTO t VALUES ($1)", (number,)).count == 1
    with pytest.raises(ValueError, match="ours"):
        ask_and_fail()
    pipeline.flush(driver)
    assert not asked[0].is_answered
    assert pipeline.ask(driver, "SELECT max(x) FROM t").rows == [(2 * room._OFTEN - 1,)]


def test_more_than_fits_into_the_buffers_of_both_sides(driver: Driver) -> None:
    """Megabytes there and back at once: neither side waits for the other for good."""
    pipeline, text = Pipeline(driver), "x" * 1_000_000
    with pipeline.together(driver):
        asked = [pipeline.ask(driver, "SELECT $1::text || $1::text", (text,)) for _ in range(12)]
    assert {len(each.rows[0][0]) for each in asked} == {2_000_000}


def test_a_connection_that_is_cut_is_closed(postgres, driver: Driver) -> None:
    """While it waits, and before it asks."""
    with postgres.superuser() as beside:
        begun = time.monotonic()
        cutting = threading.Timer(0.3, lambda: beside.execute("SELECT pg_terminate_backend(%s)", (backend_of(driver),)))
        cutting.start()
        with pytest.raises(psycopg.OperationalError):
            Pipeline(driver).ask(driver, "SELECT pg_sleep(30)")
        cutting.join()
        assert time.monotonic() - begun < 20
    assert driver.closed
    with pytest.raises(psycopg.OperationalError):
        Pipeline(driver).ask(driver, "SELECT 1")


def test_whoever_is_interrupted_cancels_what_runs(driver: Driver) -> None:
    """Ctrl-C ends the wait at once, and the connection answers the next question."""
    pipeline = pipeline_of(driver)
    assert pipeline is pipeline_of(driver)

    def ask_both() -> None:
        with pipeline.together(driver):
            pipeline.ask(driver, "SELECT pg_sleep(30)")
            pipeline.ask(driver, "SELECT 2")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            ask_both()
    finally:
        signal.signal(signal.SIGINT, before)
    assert pipeline.ask(driver, "SELECT 3").rows == [(3,)]
