"""The tables as the code speaks of them are the tables as the migrations make them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from gpuledger.ledger import Ledger
from gpuledger.ledger.schema import METADATA, SCHEMA_VERSION

TABLES = sorted(METADATA.tables)


def shape(connection: sqlite3.Connection, table: str) -> object:
    """Columns with types and nullability, primary key, unique keys, and indexes with their conditions."""
    columns = connection.execute(f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{table}')").fetchall()
    flags = connection.execute(f"SELECT strict, wr FROM pragma_table_list('{table}') WHERE schema = 'main'").fetchall()
    keys = sorted(
        (
            origin,
            unique,
            partial,
            tuple(row[0] for row in connection.execute(f"SELECT name FROM pragma_index_info('{name}')")),
        )
        for name, unique, origin, partial in connection.execute(
            f"SELECT name, \"unique\", origin, partial FROM pragma_index_list('{table}')"
        ).fetchall()
    )
    return columns, flags, keys


@pytest.mark.parametrize("table", TABLES)
def test_metadata_and_migrations_agree(table: str, ledger: Ledger, place: Path, bare) -> None:
    """Created from the metadata or by the migrations, a table has one shape."""
    with bare(place) as migrated, sqlite3.connect(":memory:") as declared:
        engine = sa.create_engine("sqlite://", creator=lambda: declared, poolclass=sa.StaticPool)
        METADATA.create_all(engine)
        assert shape(migrated, table) == shape(declared, table)
    declared.close()


@pytest.mark.parametrize("table", TABLES)
def test_every_table_is_strict_and_has_no_rowid(table: str, ledger: Ledger, place: Path, bare) -> None:
    """A float cannot be stored anywhere, and no rowid exists to play tricks with."""
    with bare(place) as connection:
        ((strict, without_rowid),) = connection.execute(f"SELECT strict, wr FROM pragma_table_list('{table}')")
        assert (strict, without_rowid) == (1, 1)
        types = {row[0] for row in connection.execute(f"SELECT type FROM pragma_table_info('{table}')")}
        assert types <= {"INTEGER", "TEXT"}


@pytest.mark.parametrize("table", TABLES)
def test_every_table_and_column_is_explained(table: str) -> None:
    """The reference is generated from comments, so each has one, a sentence with its full stop."""
    for item in (METADATA.tables[table], *METADATA.tables[table].columns):
        assert item.comment, item.name
        assert item.comment.endswith("."), item.comment


def test_the_file_says_what_it_is(ledger: Ledger, place: Path, bare) -> None:
    """Application id and version stand in the header, where other tools and programs look."""
    with bare(place) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"GPLG", "big"),)
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
