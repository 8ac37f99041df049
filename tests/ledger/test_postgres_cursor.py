"""Statements for both engines, as PostgreSQL reads them."""

from __future__ import annotations

import psycopg
import pytest

from gpuledger.ledger.postgres_cursor import Cursor, StreamingCursor, WholeLoader, insert, together, translated


def test_marks_are_translated() -> None:
    """``?`` and ``:name``, but not within texts, names, comments and casts."""
    assert translated("SELECT ?, '?' || ?") == ("SELECT $1, '?' || $2", None)
    assert translated("SELECT :a, :b, :a") == ("SELECT $1, $2, $1", ("a", "b"))
    assert translated("SELECT 'it''s :a', \"b?\" -- :c ?\n, :d::int") == (
        "SELECT 'it''s :a', \"b?\" -- :c ?\n, $1::int",
        ("d",),
    )


def test_cursors_read_these_marks(postgres) -> None:
    """In one piece and streamed, with names, in their order, and without; sums are whole numbers."""
    with postgres.superuser() as connection:
        connection.adapters.register_loader("numeric", WholeLoader)
        with Cursor(connection) as cursor:
            assert cursor.execute("SELECT ? || 'x?', 2 + ?", ("a", 3)).fetchall() == [("ax?", 5)]
            assert cursor.execute("SELECT :b, :a, :b", {"a": 1, "b": 2, "c": 3}).fetchall() == [(2, 1, 2)]
            assert cursor.execute("SELECT 5 % 3").fetchall() == [(2,)]
            cursor.execute("CREATE TEMP TABLE t (x bigint)")
            cursor.executemany("INSERT INTO t VALUES (?)", [(2**62,), (2**62,)])
            (total,) = cursor.execute("SELECT sum(x) FROM t").fetchall()
            assert total == (2**63,)
            assert type(total[0]) is int
            with pytest.raises(ValueError, match="invalid literal"):
                cursor.execute("SELECT 1.5").fetchall()
        with StreamingCursor(connection, "streamed", withhold=True) as cursor:
            cursor.execute("SELECT x FROM generate_series(1, :until) AS x", {"until": 3})
            assert (cursor.fetchmany(2), cursor.fetchmany(2)) == ([(1,), (2,)], [(3,)])


def test_a_statement_of_unknown_marks_fails_there(postgres) -> None:
    """Nothing is guessed."""
    with postgres.superuser() as connection, Cursor(connection) as cursor:
        with pytest.raises(KeyError):
            cursor.execute("SELECT :a", {"b": 1})
        with pytest.raises(psycopg.Error):
            cursor.execute("SELECT ?")


def test_rows_of_any_number_arrive(postgres) -> None:
    """One, a few, and so many that they go by COPY, which no pipeline allows: then there is none."""
    with postgres.superuser() as connection, connection.transaction(), Cursor(connection) as cursor:
        cursor.execute("CREATE TEMP TABLE t (x bigint, y text)")
        for number in (1, 3, 60):
            with together(cursor):  # type: ignore[arg-type]
                insert(cursor, "t", ("x", "y"), [(number, "a?") for _ in range(number)])  # type: ignore[arg-type]
        assert cursor.execute("SELECT x, count(*) FROM t WHERE y = 'a?' GROUP BY x ORDER BY x").fetchall() == [
            (1, 1), (3, 3), (60, 60),
        ]  # fmt: skip


def test_what_fails_together_is_said_as_it_failed(postgres) -> None:
    """The first fault, not that the rest was left out; and the connection is usable again."""
    with postgres.superuser() as connection, Cursor(connection) as cursor:

        def fail() -> None:
            with together(cursor):  # type: ignore[arg-type]
                insert(cursor, "nowhere", ("x",), [(1,)])  # type: ignore[arg-type]
                cursor.execute("SELECT 1")

        with pytest.raises(psycopg.errors.UndefinedTable):
            fail()
        assert cursor.execute("SELECT 2").fetchall() == [(2,)]


def test_a_statement_without_an_answer_has_no_rows_to_tell(postgres) -> None:
    """Neither none nor those of the statement before: it never went, failed, or there was none."""
    with postgres.superuser() as connection, Cursor(connection) as cursor:

        def leave() -> None:
            with together(cursor):  # type: ignore[arg-type]
                cursor.execute("SELECT 2")
                raise ValueError("ours")

        def refuse() -> None:
            for look in (cursor.fetchall, cursor.fetchone, lambda: cursor.rowcount):
                with pytest.raises(AssertionError, match="never asked"):
                    look()
            assert cursor.execute("SELECT 1").rowcount == 1

        refuse()
        with pytest.raises(ValueError, match="ours"):
            leave()
        refuse()
        with pytest.raises(psycopg.errors.DivisionByZero):
            cursor.execute("SELECT 1 / 0")
        refuse()
        with pytest.raises(KeyError):
            cursor.execute("SELECT :a", {"b": 1})
        refuse()
        cursor.execute("CREATE TEMP TABLE t (x bigint)")
        for count in (2, 60):
            cursor.executemany("INSERT INTO t VALUES (?)", [(1,)] * count)
            refuse()
        with cursor.copy("COPY t FROM STDIN") as stream_in:
            stream_in.write_row((1,))
        refuse()
        assert list(cursor.streamed("SELECT 7", None, 5)) == [[(7,)]]
        refuse()


def test_a_connection_that_is_cut_in_a_pipeline_is_closed(postgres) -> None:
    """Else it would stay in the pipeline for good, and look open."""
    place = postgres.new_ledger()

    def ask(connection: psycopg.Connection, *, is_read: bool) -> None:
        with together(Cursor(connection)):  # type: ignore[arg-type]
            cursor = Cursor(connection)
            cursor.execute("SELECT 1")
            if is_read:
                cursor.fetchall()
            assert postgres.cut(place) == 1
            cursor.execute("SELECT 2")
            cursor.fetchall()

    for is_read in (True, False):
        connection = psycopg.connect(place, autocommit=True)
        with pytest.raises(psycopg.OperationalError):
            ask(connection, is_read=is_read)
        assert connection.closed
