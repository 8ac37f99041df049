"""Append-only: every attack that plain SQL knows, tried on every table by somebody who may write the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.ledger.kinds import KINDS
from gpuledger.ledger.schema import METADATA
from gpuledger.model.identity import IdentityText

TABLES = sorted(METADATA.tables)
NEVER = [name for name in TABLES if name != "identity_text"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, make) -> bytes:
    """A ledger's file with one row of every kind."""
    path = tmp_path_factory.mktemp("filled") / "ledger.db"
    with Ledger.open(path, mode="append") as ledger:
        key = ledger.key_of(IdentityText(exe="/usr/bin/ollama"))
        ledger.append(
            [make.archive(), *make.one_of_each(), make.identity(9, text_key=key)], writer="box.agent", at_us=1
        )
        ledger.seal(2, writer="box.agent")
    return path.read_bytes()


@pytest.fixture(params=[False, True], ids=["plain triggers", "recursive triggers"])
def attacker(request: pytest.FixtureRequest, place: Path, filled: bytes) -> Iterator[sqlite3.Connection]:
    """Plain sqlite3 on a ledger that holds one row of every kind, with recursive_triggers off and on."""
    place.write_bytes(filled)
    with closing(sqlite3.connect(place, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA recursive_triggers = {'ON' if request.param else 'OFF'}")
        before = dump(connection)
        yield connection
        assert dump(connection) == before
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with Ledger.open(place, mode="read") as ledger:
        assert verify_ledger(ledger) == []


def dump(connection: sqlite3.Connection) -> dict[str, list[tuple]]:
    """Everything in every table."""
    return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES}


def columns_of(table: str) -> list[str]:
    """The table's columns in order."""
    return [column.name for column in METADATA.tables[table].columns]


def refused(connection: sqlite3.Connection, statement: str, *values: object) -> None:
    """The statement is refused by a trigger, by name."""
    with pytest.raises(sqlite3.IntegrityError, match="never change"):
        connection.execute(statement, values)


@pytest.mark.parametrize("table", TABLES)
def test_no_column_can_be_updated(attacker: sqlite3.Connection, table: str) -> None:
    """UPDATE, whatever its conflict clause and however many rows, is refused."""
    for column in columns_of(table):
        for clause in ("", "OR REPLACE", "OR IGNORE", "OR FAIL", "OR ROLLBACK"):
            refused(attacker, f"UPDATE {clause} {table} SET {column} = {column}")
            refused(attacker, f"UPDATE {clause} {table} SET {column} = 1 WHERE 1 = 1")


@pytest.mark.parametrize("table", NEVER)
def test_no_row_can_be_deleted(attacker: sqlite3.Connection, table: str) -> None:
    """DELETE of one row, and of all rows by the shortcut that passes over triggers elsewhere."""
    refused(attacker, f"DELETE FROM {table}")
    refused(attacker, f"DELETE FROM {table} WHERE 1 = 1")


@pytest.mark.parametrize("table", TABLES)
def test_no_row_can_be_replaced_through_any_unique_key(attacker: sqlite3.Connection, table: str) -> None:
    """REPLACE throws the old row out without a delete trigger; the guard on each key comes first."""
    columns = columns_of(table)
    row = list(attacker.execute(f"SELECT * FROM {table}").fetchone())
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    keys = [
        [info[2] for info in attacker.execute(f"PRAGMA index_info({index[1]})")]
        for index in attacker.execute(f"PRAGMA index_list({table})").fetchall()
        if index[2]
    ]
    assert keys
    for key in keys:
        forged = [
            value if name in key or value is None else (value + 1000 if isinstance(value, int) else f"{value}x")
            for name, value in zip(columns, row, strict=True)
        ]
        for verb in ("REPLACE", "INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR FAIL"):
            refused(attacker, f"{verb} INTO {table} ({names}) VALUES ({marks})", *forged)
        update = ", ".join(f"{name} = excluded.{name}" for name in columns)
        upsert = f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT DO UPDATE SET {update}"
        refused(attacker, upsert, *forged)
        refused(attacker, f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING", *forged)
        refused(attacker, f"INSERT OR REPLACE INTO {table} SELECT {marks}", *forged)


@pytest.mark.parametrize("spelled", ["1", "1.0", 1.0, " 1"])
def test_a_key_in_another_spelling_is_the_same_key(attacker: sqlite3.Connection, spelled: object) -> None:
    """Text or a real that becomes the same integer does not slip past the guard."""
    row = list(attacker.execute("SELECT * FROM policy").fetchone())
    marks = ", ".join("?" * len(row))
    number = row[1] / 1 if isinstance(spelled, float) else spelled.replace("1", str(row[1]), 1)
    refused(attacker, f"REPLACE INTO policy VALUES ({marks})", "box.agent", number, 77, *row[3:])
    refused(attacker, f"REPLACE INTO policy VALUES ({marks})", "other", 1, spelled, *row[3:])


@pytest.mark.parametrize("table", TABLES)
def test_there_is_no_rowid(attacker: sqlite3.Connection, table: str) -> None:
    """What is not there cannot be used to reach or replace a row."""
    for name in ("rowid", "oid", "_rowid_"):
        with pytest.raises(sqlite3.OperationalError, match=f"no (such )?column|has no column named {name}"):
            attacker.execute(f"INSERT OR REPLACE INTO {table} ({name}) VALUES (1)")
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            attacker.execute(f"UPDATE {table} SET {name} = 5")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.table.name)
def test_no_float_can_be_stored(attacker: sqlite3.Connection, kind) -> None:
    """A STRICT table takes no real number and no text where an integer belongs, nor a blob where text does."""
    columns = columns_of(kind.table.name)
    row = list(attacker.execute(f"SELECT * FROM {kind.table.name}").fetchone())
    row[1] = 999
    marks = ", ".join("?" * len(columns))
    for position, name in enumerate(columns[1:], start=1):
        fresh = [f"{cell}!" if isinstance(cell, str) and at > 1 else cell for at, cell in enumerate(row)]
        for wrong in (0.5, b"x") if isinstance(row[position], str) else (0.5, "x", b"x"):
            if isinstance(row[position], str) and wrong == 0.5:
                continue  # becomes the text '0.5': still no float
            fresh[position] = wrong
            with pytest.raises(sqlite3.IntegrityError, match=rf"cannot store|NOT NULL|{name}"):
                attacker.execute(f"INSERT INTO {kind.table.name} VALUES ({marks})", fresh)


def test_text_can_be_deleted_but_not_changed(place: Path, make) -> None:
    """identity_text allows one thing, and the amounts and seals stand after it."""
    with Ledger.open(place, mode="append") as ledger:
        key = ledger.key_of(IdentityText(exe="/usr/bin/ollama"))
        ledger.append([make.identity(text_key=key)], writer="box.agent", at_us=1)
        ledger.seal(2, writer="box.agent")
    with closing(sqlite3.connect(place, isolation_level=None)) as connection:
        assert connection.execute("DELETE FROM identity_text").rowcount == 1
    with Ledger.open(place, mode="read") as ledger:
        assert ledger.texts() == {}
        assert verify_ledger(ledger) == []
