"""SQLite's part of archives: guards that go and come with a transaction, and rows laid under tables."""

from __future__ import annotations

import pytest

from gpuledger.ledger import sqlite, sqlite_archive
from gpuledger.ledger.schema import SIGHTING
from gpuledger.ledger.store import Ledger
from gpuledger.model.rows import Sighting


def test_guards_come_back_as_they_were(tmp_path) -> None:
    """The same SQL stands again; an error in between leaves them too."""
    wanted = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
    with Ledger.open(tmp_path / "l.db", mode="append") as ledger:
        connection = ledger.connection
        before = connection.exec_driver_sql(wanted).fetchall()
        with sqlite.transaction(connection, write=True), sqlite_archive.unguarded(connection, ["sighting", "hold"]):
            assert len(connection.exec_driver_sql(wanted).fetchall()) == len(before) - 2
        assert connection.exec_driver_sql(wanted).fetchall() == before
        with (
            pytest.raises(ValueError, match="cut"),
            sqlite.transaction(connection, write=True),
            sqlite_archive.unguarded(connection, ["sighting"]),
        ):
            raise ValueError("cut")
        assert connection.exec_driver_sql(wanted).fetchall() == before
        sqlite_archive.refuse_to_drop(connection)


def test_rows_lie_under_a_table_that_is_only_read(tmp_path, make) -> None:
    """Every read sees both; the file is not touched, and another connection sees nothing of it."""
    place = tmp_path / "l.db"
    with Ledger.open(place, mode="append") as ledger:
        (stored,) = ledger.append([make.sighting(0)], writer="box.agent", at_us=1).added
    with Ledger.open(place, mode="read") as ledger, Ledger.open(place, mode="read") as other:
        names = sqlite_archive.lay_under(ledger.connection, {"sighting": SIGHTING})
        columns = ", ".join(column.name for column in SIGHTING.columns)
        ledger.connection.exec_driver_sql(
            f"INSERT INTO {names['sighting']} SELECT {columns.replace('number', 'number + 1')} FROM main.sighting"
        )
        sqlite_archive.index(ledger.connection, {"sighting": SIGHTING})
        assert [row.number for row in ledger.scan(Sighting)] == [stored.number, stored.number + 1]
        assert other.count(Sighting) == 1
