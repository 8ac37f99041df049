"""``import transitions``: lines and queries, each event once, from where the cursor stood."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.model.moments import iso
from gpuledger.model.outcomes import HistoryReport
from gpuledger.model.rows import Watch
from gpuledger.model.workload_rows import WorkloadEvent
from gpuledger.operations.import_transitions import import_transitions, read_lines, read_query

QUERY = "SELECT n, workload, state, at, class FROM ev"


@pytest.fixture
def run(box, tmp_path: Path) -> Callable[..., HistoryReport]:
    """Imports lines given as dictionaries."""

    def imported(*lines: object, as_of: float | None = None, keep_going: bool = False) -> HistoryReport:
        path = tmp_path / "events.jsonl"
        path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
        found = read_lines(path, source="cp", keep_going=keep_going)
        return import_transitions(
            lambda: Ledger.open(box.place, mode="append"), found, path=str(path), source="cp",
            as_of_us=None if as_of is None else box.at(as_of), now_us=box.at(600), writer="box.import",
        )  # fmt: skip

    return imported


def line(box, workload: str, state: str, minute: float, **words: object) -> dict[str, object]:
    """One event."""
    return {"workload": workload, "state": state, "at": iso(box.at(minute)), **words}


def test_a_second_import_adds_nothing(run, box) -> None:
    """Events without an id are known by their content; what is added says what to look at."""
    lines = [line(box, "w", "running", 1, user="al", **{"class": "L4"}), line(box, "w", "stopped", 5)]
    first = run(*lines)
    assert (first.added, first.known, first.conflicts, first.running, first.by) == (2, 0, 0, 0, "user")
    assert (first.since_us, first.until_us) == (box.at(1), box.at(5))
    marks = box.ledger.marks()
    again = run(*lines)
    assert (again.added, again.known) == (0, 2)
    assert box.ledger.marks() == marks
    assert verify_ledger(box.ledger) == []


def test_a_broken_line_refuses_the_whole_file(run, box) -> None:
    """Before anything is written; told to keep going, the rest is kept."""
    lines = [line(box, "w", "running", 1, **{"class": "L4"}), '{"workload": "w", "state": "runing"}']
    with pytest.raises(BadInput, match=r"events\.jsonl:2"):
        run(*lines)
    assert box.ledger.marks() == {}
    report = run(*lines, keep_going=True)
    assert (report.added, [problem.code for problem in report.problems]) == (1, ["broken-line", "as-of-unknown"])


def test_what_is_open_is_known_until_the_time_given(run, box) -> None:
    """By a heartbeat of each source that the lines name."""
    lines = [line(box, "w", "running", 1, **{"class": "L4"}), line(box, "v", "pending", 2, source="other")]
    report = run(*lines, as_of=60)
    assert (report.running, report.waiting, report.as_of_us, report.source) == (1, 1, box.at(60), "cp, other")
    assert {(beat.host, beat.until_us) for beat in box.ledger.scan(Watch)} == {
        ("cp", box.at(60)), ("other", box.at(60)),
    }  # fmt: skip


def test_a_query_goes_on_from_its_cursor(box, tmp_path: Path) -> None:
    """The last value is remembered in the ledger, for this very query; rows of that value are known."""
    place = tmp_path / "cp.db"

    def add(*rows: tuple) -> None:
        with closing(sqlite3.connect(place)) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS ev (n INTEGER, workload, state, at, class)")
            connection.executemany("INSERT INTO ev VALUES (?, ?, ?, ?, ?)", rows)
            connection.commit()

    def run(query: str = QUERY, cursor: str = "n") -> HistoryReport:
        def opened() -> Ledger:
            return Ledger.open(box.place, mode="append")

        lines, reached = read_query(
            opened, query, database=f"sqlite:///{place}", cursor=cursor, source="cp", keep_going=False
        )
        return import_transitions(
            opened, lines, path="the query", source="cp", as_of_us=None, now_us=box.at(600), writer="box.import",
            reached=(query, cursor, reached),
        )  # fmt: skip

    add((1, "w", "provisioning", iso(box.at(1)), "L4"), (2, "w", "running", iso(box.at(2)), ""))
    assert (run().rows_read, box.ledger.count(WorkloadEvent)) == (2, 2)
    add((3, "w", "stopped", iso(box.at(9)), ""))
    again = run()
    assert (again.rows_read, again.added, again.known) == (2, 1, 1)
    whole = run(query=f"{QUERY} WHERE n > 0")
    assert (whole.rows_read, whole.added, whole.known) == (3, 0, 3)
    assert run(query="SELECT workload, state, at, class FROM ev", cursor="").known == 3
    with pytest.raises(Misconfigured):
        run(cursor="nothing")


@pytest.mark.parametrize("as_of", [4, 601])
def test_a_time_that_cannot_be_is_refused_before_anything_is_written(run, box, as_of: float) -> None:
    """Nobody has told all of the future, nor was all told before the last of it."""
    with pytest.raises(Misconfigured) as caught:
        run(line(box, "w", "running", 1, **{"class": "L4"}), line(box, "v", "pending", 5), as_of=as_of)
    assert (caught.value.code, box.ledger.marks()) == ("bad-as-of", {})
    assert caught.value.hint


def test_sources_with_nothing_new_are_heard_with_the_query(box, tmp_path: Path) -> None:
    """The cursor gives the last rows alone: what the others left open runs on as well. A cursor of an older version,
    which knew no sources, is not gone on from."""
    place = tmp_path / "cp.db"
    query = "SELECT n, workload, state, at, class, source FROM ev"
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("CREATE TABLE ev (n INTEGER, workload, state, at, class, source)")
        rows = [(n, f"w{n}", "running", iso(box.at(n)), "L4", f"p{n}") for n in (1, 2)]
        connection.executemany("INSERT INTO ev VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.commit()

    def opened() -> Ledger:
        return Ledger.open(box.place, mode="append")

    def run(minute: float) -> HistoryReport:
        lines, reached = read_query(
            opened, query, database=f"sqlite:///{place}", cursor="n", source="cp", keep_going=False
        )
        return import_transitions(
            opened, lines, path="the query", source="cp", as_of_us=box.at(minute), now_us=box.at(minute),
            writer="box.import", reached=(query, "n", reached),
        )  # fmt: skip

    def heard() -> dict[str, float]:
        beats = [row for row in box.ledger.scan(Watch) if row.method == "heartbeat"]
        return {row.host: max(each.until_us for each in beats if each.host == row.host) for row in beats}

    assert run(60).rows_read == 2
    assert run(90).rows_read == 1
    assert heard() == dict.fromkeys(("cp", "p1", "p2"), box.at(90))
    (newest,) = [row for row in box.ledger.scan(Watch) if row.method == "sql" and row.since_us == box.at(90)]
    old = json.loads(newest.detail)
    assert old.pop("sources") == ["cp", "p1", "p2"]
    older = replace(newest, writer="", number=0, since_us=box.at(95), until_us=box.at(95), detail=json.dumps(old))
    box.ledger.append([older], writer="box.import", at_us=box.at(95))
    assert heard() == dict.fromkeys(("cp", "p1", "p2"), box.at(90))
    assert (run(120).added, heard()) == (0, dict.fromkeys(("cp", "p1", "p2"), box.at(120)))


def test_progress_is_told(run, box) -> None:
    """For whoever waits."""
    seen: list[tuple[int, int]] = []
    path = box.place.with_name("one.jsonl")
    path.write_text(json.dumps(line(box, "w", "pending", 1)))
    found = read_lines(path, source="cp", keep_going=False)
    import_transitions(
        lambda: Ledger.open(box.place, mode="append"), found, path="f", source="cp", as_of_us=None,
        now_us=box.at(600), writer="box.import", progress=lambda done, of: seen.append((done, of)),
    )  # fmt: skip
    assert seen == [(1, 1)]
