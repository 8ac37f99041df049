"""Dropping: all of it in one transaction, with the guards standing before and after."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any
from unittest.mock import patch

import pytest

from gpuledger.errors import Unavailable
from gpuledger.ledger import appending, dropping
from gpuledger.ledger.appending import Appended
from gpuledger.ledger.dropping import drop
from gpuledger.ledger.leaving import Leaving
from gpuledger.ledger.store import Ledger
from gpuledger.model.archive import Archive
from gpuledger.model.moments import HOUR_US
from gpuledger.model.rows import DriverRecord, Sighting
from old_evidence import JUNE_US, MAY_US, NOW_US, OldBox
from postgres_server import OWNER


def chosen(ledger: Ledger, *, count: int | None = None) -> Archive:
    """A row of the archive for the sightings of May that leave; ``count`` claims another number."""
    leaving = Leaving(ledger, JUNE_US, [("2026-05", MAY_US, JUNE_US)], ())
    rows = sum(len(part) for part in leaving.rows(Sighting, "2026-05", 100))
    return Archive(
        archived_at_us=NOW_US, before_us=JUNE_US, month="2026-05", rows_of="sighting",
        row_count=rows if count is None else count, first_us=0, last_us=0, writers="{}", rows_hash="h", file_name="f",
        file_hash="h", folder="",
    )  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    box = OldBox(tmp_path / "l.db", days=35, jobs=3)
    box.fill()
    return box.ledger


def test_the_rows_go_and_the_guards_stand(ledger: Ledger) -> None:
    """What was chosen is gone, its row is there, and nothing else can be deleted."""
    row, before = chosen(ledger), ledger.count(Sighting)
    added = drop(ledger, [row], marks=ledger.marks(), writer="box.archive", at_us=NOW_US)
    assert [each.ref for each in added] == ["archive:box.archive/1"]
    assert ledger.count(Sighting) == before - row.row_count
    with sqlite3.connect(str(ledger.place)) as raw, pytest.raises(sqlite3.IntegrityError, match="never change"):
        raw.execute("DELETE FROM sighting")
    raw.close()


def test_evidence_that_came_meanwhile_stops_it(ledger: Ledger) -> None:
    """A row of the time that leaves, appended after the choice: nothing goes."""
    row, marks, before = chosen(ledger), ledger.marks(), ledger.count(Sighting)
    late = next(iter(ledger.scan(DriverRecord)))
    told = DriverRecord(
        host=late.host, device=late.device, pid=9, started_at_us=late.started_at_us, context_ms=1, peak_memory_mib=1,
        gpu_percent=1, memory_percent=1, read_at_us=NOW_US, method="nvml",
    )  # fmt: skip
    ledger.append([told], writer="box.agent", at_us=NOW_US)
    with pytest.raises(Unavailable) as refused:
        drop(ledger, [row], marks=marks, writer="box.archive", at_us=NOW_US)
    assert refused.value.code == "archive-overtaken"
    assert (ledger.count(Sighting), ledger.count(Archive)) == (before, 0)


def test_rows_that_left_already_stop_it(ledger: Ledger) -> None:
    """Two who archive at once: the second finds other numbers, and nothing of it goes."""
    row = chosen(ledger, count=1)
    before = ledger.count(Sighting)
    with pytest.raises(Unavailable) as refused:
        drop(ledger, [row], marks=ledger.marks(), writer="box.archive", at_us=NOW_US)
    assert refused.value.code == "archive-overtaken"
    assert ledger.count(Sighting) == before


def test_an_append_in_flight_is_waited_for(postgres: Any, make: Any) -> None:
    """Of a row that is being written when the rows are about to go, whichever kind it is: it is seen, nothing goes."""
    place = str(postgres.new_ledger())
    OldBox(place, days=35, jobs=3).fill()
    with Ledger.open(postgres.url(OWNER, place.rpartition("/")[2]), mode="append") as ledger:
        row, marks, before = chosen(ledger), ledger.marks(), ledger.count(Sighting)
        with in_flight(place, make.driver(started_at_us=MAY_US + HOUR_US, context_ms=1)) as told:
            with pytest.raises(Unavailable) as refused:
                drop(ledger, [row], marks=marks, writer="box.archive", at_us=NOW_US)
            assert refused.value.code == "archive-overtaken"
            assert "driver:late.agent/1 of the time that is to leave" in refused.value.message
        assert len(told) == 1
        assert len(told[0].added) == 1
        assert (ledger.count(Sighting), ledger.count(Archive)) == (before, 0)


def test_who_appends_while_rows_go_finds_their_time_archived(postgres: Any, make: Any, monkeypatch: Any) -> None:
    """It waits, and is then told that nobody can tell any more whether its row is there: it is not added."""
    place = str(postgres.new_ledger())
    OldBox(place, days=35, jobs=3).fill()
    told: list[Appended] = []
    with Ledger.open(postgres.url(OWNER, place.rpartition("/")[2]), mode="append") as ledger:
        row, marks = chosen(ledger), ledger.marks()
        looked = dropping._came_meanwhile
        threads: list[Thread] = []

        def look(*words: Any) -> str:
            found = looked(*words)
            late = make.driver(started_at_us=MAY_US + HOUR_US, context_ms=1)
            threads.append(Thread(target=append_late, args=(place, late, told)))
            threads[0].start()
            wait_for_a_waiter(postgres, place)
            return found

        monkeypatch.setattr(dropping, "_came_meanwhile", look)
        drop(ledger, [row], marks=marks, writer="box.archive", at_us=NOW_US)
        threads[0].join()
        assert [(each.added, [problem.code for problem in each.conflicts]) for each in told] == [((), ["archived"])]
        assert ledger.marks().get("late.agent") is None


@contextmanager
def in_flight(place: str, row: DriverRecord) -> Iterator[list[Appended]]:
    """An append of another connection that has begun and is not through until something has waited a while for it."""
    told: list[Appended] = []
    has_begun, written = Event(), appending._write

    def slowly(*words: Any) -> Any:
        found = written(*words)
        if words[-2] == "late.agent":
            has_begun.set()
            sleep(0.5)
        return found

    with patch.object(appending, "_write", slowly):
        thread = Thread(target=append_late, args=(place, row, told))
        thread.start()
        assert has_begun.wait(30)
        yield told
        thread.join()


def append_late(place: str, row: DriverRecord, told: list[Appended]) -> None:
    with Ledger.open(place, mode="append") as ledger:
        told.append(ledger.append([row], writer="late.agent", at_us=NOW_US))


def wait_for_a_waiter(server: Any, place: str) -> None:
    """Until somebody waits for a lock in a ledger's database."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
    with server.superuser() as connection:
        for _ in range(600):
            if connection.execute(query, (place.rpartition("/")[2],)).fetchone()[0]:
                return
            sleep(0.05)
    raise AssertionError("nobody waited")
