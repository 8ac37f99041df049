"""A query on somebody else's database: rows by name, from the cursor on, and nothing changed there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gpuledger.errors import GpuledgerError, Misconfigured, Unavailable
from gpuledger.sources import sql_query


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with three events."""
    place = tmp_path / "cp.db"
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("CREATE TABLE ev (n INTEGER, state TEXT, at TEXT)")
        connection.executemany("INSERT INTO ev VALUES (?, ?, '12:00')", [(3, "c"), (1, "a"), (2, "b")])
        connection.commit()
    return f"sqlite:///{place}"


def test_rows_come_by_name(url: str) -> None:
    """In the order of the query."""
    assert sql_query.read(url, "SELECT n, state FROM ev ORDER BY n;")[0] == {"n": 1, "state": "a"}


def test_a_cursor_sorts_and_goes_on(url: str) -> None:
    """From its last value, that value again: rows may share it."""
    states = [row["state"] for row in sql_query.read(url, "SELECT * FROM ev WHERE at = '12:00'", cursor="n")]
    assert states == ["a", "b", "c"]
    later = sql_query.read(url, "SELECT * FROM ev", cursor="n", after=2)
    assert [row["state"] for row in later] == ["b", "c"]


@pytest.mark.parametrize("after", [None, 2])
def test_colons_of_the_query_are_no_parameters(url: str, after: int | None) -> None:
    """At the first import and at all later ones."""
    query = "SELECT n, ' :after :x' AS text, '12:00' AS at FROM ev WHERE at <> 'a :b'"
    rows = sql_query.read(url, query, cursor="n", after=after)
    assert [(row["n"], row["text"], row["at"]) for row in rows][-1] == (3, " :after :x", "12:00")
    assert len(rows) == (3 if after is None else 2)


@pytest.mark.parametrize(
    ("place", "query", "cursor", "code"),
    [
        ("", "SELEC", "", "bad-query"),
        ("", "SELECT * FROM nothing", "", "bad-query"),
        ("", "DELETE FROM ev", "", "bad-query"),
        ("", "SELECT * FROM ev", "n; DROP TABLE ev", "bad-cursor"),
        ("", "SELECT * FROM ev", "nothing", "bad-query"),
        ("", "SELECT nothing(1)", "", "bad-query"),
        ("", "SELECT n FROM ev a, ev b", "", "bad-query"),
        ("", "SELECT n FROM ev WHERE (", "n", "bad-query"),
        ("no url", "SELECT 1", "", "bad-database"),
        ("sqlite:////nowhere/at/all.db", "SELECT 1", "", "database-unreachable"),
        ("sqlite://", "SELECT 1", "", "database-unreachable"),
        ("nosuch://x/y", "SELECT 1", "", "database-driver"),
    ],
)
def test_what_cannot_be_read_is_said(url: str, place: str, query: str, cursor: str, code: str) -> None:
    """By name, and with what to try."""
    with pytest.raises(GpuledgerError) as caught:
        sql_query.read(place or url, query, cursor=cursor)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize("after", [None, 2])
def test_a_query_may_end_with_a_comment(url: str, after: int | None) -> None:
    """What is asked around it stands on lines of its own."""
    rows = sql_query.read(url, "SELECT n FROM ev -- all of them", cursor="n", after=after)
    assert [row["n"] for row in rows] == ([1, 2, 3] if after is None else [2, 3])


def test_what_is_wrong_with_the_database_is_not_the_query(tmp_path: Path) -> None:
    """A file that is none, and one that somebody else has locked."""
    place = tmp_path / "events.jsonl"
    place.write_text('{"workload": "w"}\n' * 50)
    with pytest.raises(Misconfigured) as caught:
        sql_query.read(f"sqlite:///{place}", "SELECT 1 FROM ev")
    assert caught.value.code == "bad-database"
    busy = tmp_path / "busy.db"
    with closing(sqlite3.connect(busy)) as connection:
        connection.execute("CREATE TABLE ev (n)")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Unavailable) as unavailable:
            sql_query.read(f"sqlite:///{busy}?timeout=0", "SELECT n FROM ev")
    assert unavailable.value.code == "database-unreachable"


def test_each_database_has_a_driver_of_its_own() -> None:
    """What helps is named for it."""
    with pytest.raises(Unavailable) as caught:
        sql_query.read("mysql://h/portal", "SELECT 1")
    assert "pymysql" in caught.value.hint


def test_nothing_is_changed_there(url: str) -> None:
    """A query that writes is rolled back, and no file is made of a mistyped path."""
    with pytest.raises(GpuledgerError):
        sql_query.read(url, "INSERT INTO ev VALUES (9, 'x', 'y')")
    sql_query.read(url, "INSERT INTO ev VALUES (9, 'x', 'y') RETURNING n")
    assert len(sql_query.read(url, "SELECT * FROM ev")) == 3
    with pytest.raises(GpuledgerError):
        sql_query.read(f"{url}.typo", "SELECT 1")
    assert not Path(f"{url.removeprefix('sqlite:///')}.typo").exists()
