"""Migrations: by themselves, all or nothing, once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from gpuledger.errors import Unavailable
from gpuledger.ledger import Ledger, appending, migrate, migrations, verify_ledger
from gpuledger.ledger.schema import METADATA, SCHEMA_VERSION
from gpuledger.ledger.texts import TextBook
from gpuledger.model.archive import Archive
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent

_LATER = {
    1: (PlacementRow, WorkloadEvent, Hold, ExpectedEnd, Archive),
    2: (ExpectedEnd, Archive),
    3: (Archive,),
}
"""Kinds that a ledger of an older version has no table for."""


def older_ledger(version: int, place: Path, rows: list) -> None:
    """A ledger as the program of that version left it, with rows of each kind that it knew."""
    engine = sa.create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(place, isolation_level=None), poolclass=sa.NullPool
    )
    with engine.connect() as connection:
        config = Config()
        config.set_main_option("script_location", str(Path(migrations.__file__).parent))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, f"{version:04}")
        connection.exec_driver_sql("CREATE TEMP TABLE archive (before_us INTEGER)")  # which an append of today asks
        appending.append_rows(connection, TextBook(connection), rows, writer="box.agent", at_us=1)


def test_a_new_file_gets_every_table(ledger: Ledger, place: Path, bare) -> None:
    """After opening to append, all tables are there."""
    with bare(place) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == set(METADATA.tables) | {"alembic_version"}


def test_migrating_twice_changes_nothing() -> None:
    """A ledger that is up to date is left as it is."""
    with sa.create_engine("sqlite://", poolclass=sa.NullPool).connect() as connection:
        migrate.migrate(connection)
        before = connection.exec_driver_sql("SELECT * FROM sqlite_master").fetchall()
        migrate.migrate(connection)
        assert connection.exec_driver_sql("SELECT * FROM sqlite_master").fetchall() == before


def test_a_migration_that_fails_leaves_nothing(place: Path, bare, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk fills half way through, the file is as it was, and the next opening finishes the work."""

    def cramped(connection: sa.Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 12")
        real(connection)

    real = migrate.migrate
    monkeypatch.setattr(migrate, "migrate", cramped)
    with pytest.raises(Unavailable, match="no room") as caught:
        Ledger.open(place, mode="append")
    assert caught.value.code == "ledger-full"
    with bare(place) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    monkeypatch.setattr(migrate, "migrate", real)
    with Ledger.open(place, mode="append") as ledger:
        assert verify_ledger(ledger) == []


def test_processes_that_create_one_ledger_together_all_succeed(place: Path) -> None:
    """Whoever comes first makes the tables; the others wait and use them."""
    code = "import sys; from gpuledger.ledger import Ledger; Ledger.open(sys.argv[1], mode='append').close()"
    started = [subprocess.Popen([sys.executable, "-c", code, str(place)]) for _ in range(4)]
    assert [process.wait(60) for process in started] == [0, 0, 0, 0]
    with Ledger.open(place, mode="read") as ledger:
        assert verify_ledger(ledger) == []


def test_an_unfinished_creation_is_no_ledger_to_a_reader(place: Path) -> None:
    """An empty file, left by a process that died before the tables, reads as no ledger yet."""
    place.touch()
    with pytest.raises(Unavailable) as caught:
        Ledger.open(place, mode="read")
    assert caught.value.code == "no-ledger"


@pytest.mark.parametrize("version", sorted(_LATER))
def test_an_older_ledger_is_brought_up_to_date_and_its_rows_stand(place: Path, make, bare, version: int) -> None:
    """Its chain still verifies, a reader is told who mends it, and the new kinds can be written."""
    rows = [row for row in [make.archive(), *make.one_of_each()] if not isinstance(row, _LATER[version])]
    older_ledger(version, place, rows)
    with bare(place) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
        before = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("watch", "link")}
    with pytest.raises(Unavailable) as caught:
        Ledger.open(place, mode="read")
    assert caught.value.code == "ledger-older"
    with Ledger.open(place, mode="append") as ledger:
        assert verify_ledger(ledger) == []
        assert [ledger.count(type(row)) for row in rows] == [1] * len(rows)
        new = [row for row in [make.archive(), *make.one_of_each()] if isinstance(row, _LATER[version])]
        assert len(ledger.append(new, writer="box.agent", at_us=2).added) == len(new)
        ledger.seal(3, writer="box.agent")
        assert verify_ledger(ledger) == []
    with bare(place) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert {table: connection.execute(f"SELECT * FROM {table}").fetchall()[:1] for table in before} == {
            table: rows[:1] for table, rows in before.items()
        }
