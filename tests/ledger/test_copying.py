"""Copying a ledger: byte for byte, in both directions, cut off and gone on with, or refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from gpuledger.errors import Corrupt, GpuledgerError, Refused
from gpuledger.ledger import Ledger, copying, verify_ledger
from gpuledger.ledger.codec import CODECS, Codec
from gpuledger.ledger.copying import copy_ledger
from gpuledger.ledger.engine import engine_of
from gpuledger.ledger.schema import METADATA
from gpuledger.model.identity import IdentityText
from gpuledger.model.rows import DriverRecord
from gpuledger.model.stores import CopyReport
from postgres_server import OWNER

ENGINES = ["sqlite", "postgresql"]


@pytest.fixture
def fresh(postgres, tmp_path: Path) -> Callable[[str, str], Path | str]:
    """A place for a new ledger of an engine."""
    return lambda engine, name: tmp_path / f"{name}.db" if engine == "sqlite" else str(postgres.new_ledger())


def fill(place: Path | str, make, *, rows: int = 30) -> None:
    """Rows of every kind in three chains, texts, seals."""
    with Ledger.open(place, mode="append") as ledger:
        keys = [ledger.key_of(IdentityText(exe=f"/bin/{number}", command="é日")) for number in range(rows)]
        ledger.append(make.one_of_each(), writer="box.agent", at_us=1)
        ledger.append(
            [make.identity(number + 10, text_key=key) for number, key in enumerate(keys)], writer="box.run", at_us=2
        )
        ledger.seal(3, writer="box.agent")
        for start in range(100, 100 + rows, 7):
            ledger.append([make.driver(start + number) for number in range(7)], writer="a.import", at_us=start)
        ledger.seal(4, writer="a.import")


def dump(place: Path | str) -> dict[str, list[tuple]]:
    """Everything in every table."""
    with Ledger.open(place, mode="read") as ledger:
        return {
            name: sorted(tuple(row) for row in ledger.connection.execute(sa.select(*table.columns)))
            for name, table in METADATA.tables.items()
        }


def copied(source: Path | str, target: Path | str) -> CopyReport:
    """One copy."""
    with Ledger.open(source, mode="read") as opened, Ledger.open(target, mode="append") as into:
        return copy_ledger(opened, into)


def take_out(place: Path | str, table: str, where: str, postgres) -> None:
    """Rows of a table deleted behind the program's back."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as file, file:
            for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                file.execute(f"DROP TRIGGER {name}")
            file.execute(f"DELETE FROM {table} WHERE {where}")
        return
    with psycopg.connect(postgres.url(OWNER, place.rpartition("/")[2]), autocommit=True) as owner:
        owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        owner.execute(f"DELETE FROM {table} WHERE {where}")


@pytest.mark.parametrize("source", ENGINES)
@pytest.mark.parametrize("target", ENGINES)
def test_a_copy_is_the_ledger(fresh, make, source: str, target: str) -> None:
    """Every table is the same; both sides verify, with one root; a second copy adds nothing, what is new goes on."""
    origin, copy = fresh(source, "origin"), fresh(target, "copy")
    fill(origin, make)
    report = copied(origin, copy)
    with Ledger.open(origin, mode="append") as one, Ledger.open(copy, mode="read") as other:
        total = sum(one.marks().values())
        assert (report.rows, report.known_rows, report.chains, report.texts) == (total, 0, 3, 30)
        assert report.root == one.latest_root() == other.latest_root()
        assert verify_ledger(one) == verify_ledger(other) == []
    assert dump(origin) == dump(copy)
    again = copied(origin, copy)
    assert (again.rows, again.links, again.texts, again.known_rows) == (0, 0, 0, total)
    with Ledger.open(origin, mode="append") as one:
        one.append([make.watch(50), make.driver(5000)], writer="b.agent", at_us=9)
        one.append([make.watch(51)], writer="box.agent", at_us=9)
    assert copied(origin, copy).rows == 3
    assert dump(origin) == dump(copy)


def test_there_and_back(fresh, make) -> None:
    """SQLite to PostgreSQL, gone on with there, and back into the first file: it takes up what it lacks."""
    origin, copy = fresh("sqlite", "origin"), fresh("postgresql", "copy")
    fill(origin, make)
    copied(origin, copy)
    with Ledger.open(copy, mode="append") as ledger:
        ledger.append([make.watch(70)], writer="box.agent", at_us=9)
        ledger.seal(10, writer="box.agent")
    ahead = copied(origin, copy)
    assert ahead.rows == 0
    assert copied(copy, origin).rows == 2
    assert dump(origin) == dump(copy)


@pytest.mark.parametrize("target", ENGINES)
def test_another_ledger_is_never_mixed_in(fresh, make, target: str) -> None:
    """The same writer with other rows, or a writer that the source does not have: refused, and nothing is added."""
    origin, copy = fresh("sqlite", "origin"), fresh(target, "copy")
    fill(origin, make)
    for writer in ("box.agent", "other.agent"):
        place = fresh(target, writer)
        with Ledger.open(place, mode="append") as ledger:
            ledger.append([make.watch(77)], writer=writer, at_us=1)
        before = dump(place)
        with pytest.raises(Refused) as caught:
            copied(origin, place)
        assert caught.value.code == "copy-diverges"
        assert writer in caught.value.message
        assert dump(place) == before
    copied(origin, copy)
    with Ledger.open(origin, mode="append") as one, Ledger.open(copy, mode="append") as other:
        one.append([make.watch(80)], writer="box.agent", at_us=9)
        other.append([make.watch(81)], writer="box.agent", at_us=9)
    with pytest.raises(Refused, match=r"box\.agent"):
        copied(origin, copy)


def test_a_changed_source_is_not_copied(fresh, make, postgres) -> None:
    """Each link is hashed again on its way: what does not fit is damage, and what came before it stands."""
    origin, copy = fresh("postgresql", "origin"), fresh("sqlite", "copy")
    fill(origin, make)
    with psycopg.connect(postgres.url(OWNER, str(origin).rpartition("/")[2]), autocommit=True) as owner:
        owner.execute("ALTER TABLE driver_record DISABLE TRIGGER USER")
        owner.execute("UPDATE driver_record SET context_ms = 77 WHERE writer = 'a.import' AND number = 8")
    with pytest.raises(Corrupt) as caught:
        copied(origin, copy)
    assert "a.import/8" in caught.value.message
    with Ledger.open(copy, mode="read") as ledger:
        assert verify_ledger(ledger) == []


@pytest.mark.parametrize("cut", ["a seal without its chain", "the end of a chain", "a chain's own rows"])
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_without_a_link_are_damage(fresh, make, postgres, engine: str, cut: str) -> None:
    """What no link reaches is never left behind without a word: the first such row is named, and nothing is added."""
    origin, copy = fresh(engine, "origin"), fresh("sqlite", "copy")
    with Ledger.open(origin, mode="append") as ledger:
        ledger.append([make.driver(1)], writer="x.agent", at_us=1)
        ledger.seal(2, writer="s.seal")
        ledger.append([make.driver(2)], writer="x.agent", at_us=3)
        ledger.append([make.watch(2)], writer="y.agent", at_us=4)
    where, ref = {
        "a seal without its chain": ("writer = 's.seal'", "seal:s.seal/1"),
        "the end of a chain": ("writer = 'x.agent' AND first_number = 2", "driver:x.agent/2"),
        "a chain's own rows": ("writer = 'y.agent'", "watch:y.agent/1"),
    }[cut]
    take_out(origin, "link", where, postgres)
    with pytest.raises(Corrupt) as caught:
        copied(origin, copy)
    assert caught.value.code == "ledger-damaged"
    assert f" {ref} belongs to no link" in caught.value.message
    assert caught.value.hint.startswith("gpuledger verify")
    with Ledger.open(origin, mode="read") as one, Ledger.open(copy, mode="read") as other:
        assert ref in {finding.where for finding in verify_ledger(one)}
        assert other.heads() == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_link_that_was_taken_out_is_damage(fresh, make, postgres, engine: str) -> None:
    """With its rows gone too the next link is whole, and follows none: the source is named, not the target."""
    origin, copy = fresh(engine, "origin"), fresh("sqlite", "copy")
    with Ledger.open(origin, mode="append") as ledger:
        for number in range(1, 5):
            ledger.append([make.driver(number)], writer="x.agent", at_us=number)
    take_out(origin, "link", "writer = 'x.agent' AND first_number = 2", postgres)
    take_out(origin, "driver_record", "writer = 'x.agent' AND number = 2", postgres)
    with pytest.raises(Corrupt, match=r"x\.agent/3 does not follow the one before it, which ends at 1") as caught:
        copied(origin, copy)
    assert caught.value.code == "ledger-damaged"


@pytest.mark.parametrize("engine", ENGINES)
def test_many_writers_are_read_together(fresh, make, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """What a stage asks of the source does not grow with the chains: a fleet's ledger has hundreds that all moved."""
    monkeypatch.setattr(copying, "_CHAINS_AT_ONCE", 25)
    asked: dict[int, int] = {}
    told: dict[int, int] = {}
    for chains in (24, 25, 60):
        origin, copy = fresh(engine, f"origin{chains}"), fresh("sqlite", f"copy{chains}")
        with Ledger.open(origin, mode="append") as ledger:
            for hour in range(4):
                for number in range(chains):
                    ledger.append([make.watch(hour * 100 + number)], writer=f"h{number}.agent", at_us=hour)
                ledger.seal(hour, writer="c.seal")
        monkeypatch.setattr(copying, "_ROWS_AT_ONCE", chains)
        monkeypatch.setattr(copying, "_ALL_AT_ONCE", 2 * chains)
        streams: list[object] = []
        stages: list[int] = []
        with Ledger.open(origin, mode="read") as opened, Ledger.open(copy, mode="append") as into:
            speaking = engine_of(opened.connection)
            stream = speaking.stream
            monkeypatch.setattr(speaking, "stream", lambda *given: streams.append(given) or stream(*given))  # noqa: B023 used here only
            copy_ledger(opened, into, progress=lambda done, _: stages.append(done))  # noqa: B023
            monkeypatch.setattr(speaking, "stream", stream)
            assert verify_ledger(into) == []
        assert dump(origin) == dump(copy)
        asked[chains], told[chains] = len(streams), len(stages)
    assert told == {24: 4, 25: 4, 60: 4}
    by_stage = len(CODECS) + 2  # the rows of each kind, the links, and whether links end there
    once = 2  # the seals and the texts
    asked_each = {24: 1, 25: 2, 60: 3}  # times 25 chains, the one that seals among them
    assert asked == {chains: once + 4 * times * by_stage for chains, times in asked_each.items()}


@pytest.mark.parametrize("engine", ENGINES)
def test_chains_between_two_seals_follow_one_another_in_groups(
    fresh, make, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """More than goes at once is copied in groups of whole chains, each one transaction, the chain of the seal last."""
    origin, copy = fresh(engine, "origin"), fresh("sqlite", "copy")
    with Ledger.open(origin, mode="append") as ledger:
        for number in range(12):
            for row in range(3):
                ledger.append([make.watch(number * 10 + row)], writer=f"h{number}.agent", at_us=row)
        ledger.seal(9, writer="a.seal")
    monkeypatch.setattr(copying, "_ROWS_AT_ONCE", 5)
    monkeypatch.setattr(copying, "_ALL_AT_ONCE", 10)
    told: list[int] = []
    with Ledger.open(origin, mode="read") as opened, Ledger.open(copy, mode="append") as into:
        copy_ledger(opened, into, progress=lambda done, _: told.append(done))
    assert told == [9, 18, 27, 37]  # three chains at a time, and the seal with the last three
    assert dump(origin) == dump(copy)


def test_a_large_link_is_streamed(fresh, make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its rows nor those of its transaction have to fit in memory; progress is told by rows."""
    origin, copy = fresh("sqlite", "origin"), fresh("postgresql", "copy")
    with Ledger.open(origin, mode="append") as ledger:
        ledger.append([make.driver(number) for number in range(25_000)], writer="w", at_us=1)
        for number in range(3):
            ledger.append([make.watch(number)], writer="w", at_us=2)
    told: list[tuple[int, int]] = []
    with Ledger.open(origin, mode="read") as opened, Ledger.open(copy, mode="append") as into:
        report = copy_ledger(opened, into, progress=lambda done, of: told.append((done, of)))
    assert (report.rows, report.links) == (25_003, 4)
    assert told == [(25_000, 25_003), (25_003, 25_003)]
    assert dump(origin) == dump(copy)


@pytest.mark.parametrize("target", ENGINES)
def test_what_is_copied_so_far_verifies(fresh, make, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each transaction the target is what the source once was: no seal stands there before what it seals."""
    origin, copy = fresh("sqlite", "origin"), fresh(target, "copy")
    fill(origin, make)
    with Ledger.open(origin, mode="append") as ledger:
        for number in range(200, 230):
            ledger.append([make.driver(number)], writer="z.agent", at_us=number)
            ledger.append([make.watch(number)], writer="box.agent", at_us=number)
            if number % 5 == 0:
                ledger.seal(number, writer=("box.agent", "a.import")[number % 2])
    monkeypatch.setattr(copying, "_ROWS_AT_ONCE", 10)
    monkeypatch.setattr(copying, "_ALL_AT_ONCE", 20)
    reached: list[int] = []

    def look(done: int, of: int) -> None:
        reached.append(done)
        with Ledger.open(copy, mode="read") as ledger:
            assert verify_ledger(ledger) == []

    with Ledger.open(origin, mode="read") as opened, Ledger.open(copy, mode="append") as into:
        copy_ledger(opened, into, progress=look)
    assert len(reached) > 8
    assert dump(origin) == dump(copy)


_COPY = "import sys; from gpuledger.cli.main import main; main(['copy', sys.argv[1], sys.argv[2], '--quiet'])"


@pytest.mark.parametrize("target", ENGINES)
def test_a_copy_that_is_killed_goes_on(fresh, make, target: str) -> None:
    """kill -9 at any point: what is there is whole, and the next copy adds the rest."""
    origin, copy = fresh("sqlite", "origin"), fresh(target, "copy")
    with Ledger.open(origin, mode="append") as ledger:
        for start in range(0, 40_000, 2000):
            ledger.append([make.driver(start + number) for number in range(2000)], writer="w", at_us=start)
    Ledger.open(copy, mode="append").close()
    seen = set()
    for delay in (0.9, 1.0, 1.1, 1.3):
        process = subprocess.Popen([sys.executable, "-c", _COPY, str(origin), str(copy)], stdout=subprocess.DEVNULL)
        time.sleep(delay)
        process.kill()
        process.wait()
        with Ledger.open(copy, mode="append") as ledger:
            seen.add(ledger.count(DriverRecord))
            assert ledger.count(DriverRecord) % 2000 == 0
            assert verify_ledger(ledger) == []
    assert copied(origin, copy).known_rows == max(seen)
    assert dump(origin) == dump(copy)


def test_a_row_that_postgres_cannot_keep(fresh, make, monkeypatch) -> None:
    """A NUL byte stops the copy by name, with whole links before it."""
    origin, copy = fresh("sqlite", "origin"), fresh("postgresql", "copy")
    monkeypatch.setattr(Codec, "_refuse_no_text", lambda *_: None)  # as versions before this check wrote it
    with Ledger.open(origin, mode="append") as ledger:
        ledger.append([make.watch(1, detail="a\0b")], writer="w", at_us=1)
    with pytest.raises(GpuledgerError) as caught:
        copied(origin, copy)
    assert caught.value.code == "row-not-text"


def test_forgotten_texts_stay_forgotten(fresh, make) -> None:
    """What the source has forgotten is nowhere to be copied from; what the target has not, stays until it is told."""
    origin, copy = fresh("sqlite", "origin"), fresh("postgresql", "copy")
    fill(origin, make)
    with Ledger.open(origin, mode="append") as ledger:
        ledger.forget(list(ledger.texts()))
    assert copied(origin, copy).texts == 0
