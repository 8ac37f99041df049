"""The tables on PostgreSQL are those of the schema; grants and checks (attacks: test_append_only_postgres)."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from gpuledger.errors import Misconfigured, Unavailable
from gpuledger.ledger import Ledger, postgres_tables, verify_ledger
from gpuledger.ledger.schema import METADATA
from postgres_server import APPLICATION, OWNER


@pytest.fixture
def place(postgres) -> str:
    """The URL of an empty ledger, as the application."""
    return str(postgres.new_ledger())


@pytest.fixture
def owner(postgres, place: str) -> Iterator[psycopg.Connection]:
    """Its owner."""
    with psycopg.connect(postgres.url(OWNER, place.rpartition("/")[2]), autocommit=True) as connection:
        yield connection


def test_metadata_and_migrations_agree(place: str) -> None:
    """Columns, types, collation, keys and indexes are those that the code speaks of."""
    with Ledger.open(place, mode="read") as ledger:
        assert list(postgres_tables.schema_findings(ledger.connection)) == []


def test_what_others_add_beside_our_tables_is_theirs(place: str, owner) -> None:
    """Views and tables of other tools are no finding."""
    owner.execute("CREATE TABLE notes (x text); CREATE INDEX ON notes (x); CREATE VIEW seen AS SELECT * FROM watch")
    with Ledger.open(place, mode="read") as ledger:
        assert verify_ledger(ledger) == []


def test_every_missing_table_is_found(place: str, owner) -> None:
    """By name; the checks that need it say so, and the others go on."""
    owner.execute("DROP TABLE driver_record CASCADE")
    with Ledger.open(place, mode="read") as ledger:
        findings = verify_ledger(ledger)
    assert ("schema", "driver_record", "the table is missing") in {
        (finding.code, finding.where, finding.sentence) for finding in findings
    }
    assert {"chain", "keys", "derived"} <= {finding.code for finding in findings}


def test_roles_are_looked_at(place: str, postgres) -> None:
    """Whether they are there, and whether a grant binds them."""
    with Ledger.open(postgres.url(OWNER, place.rpartition("/")[2]), mode="read") as ledger:
        found = postgres_tables.look_at(ledger.connection, [APPLICATION, "postgres", OWNER, "nobody"])
    assert [(note.is_there, note.is_strong) for note in found] == [
        (True, False), (True, True), (True, True), (False, False),
    ]  # fmt: skip


def test_who_is_not_the_owner_is_told_who_is(place: str) -> None:
    """PostgreSQL would pass over the grants with a warning."""
    with Ledger.open(place, mode="append") as ledger:
        with pytest.raises(Unavailable, match=f"belong to {OWNER}"):
            postgres_tables.refuse_without_ownership(ledger.connection)
        postgres_tables.refuse_without_schema(ledger.connection)


def test_a_path_to_no_schema_is_refused(postgres, place: str) -> None:
    """Nothing is made anywhere else instead."""
    from gpuledger.ledger import postgres as engine
    from gpuledger.ledger.places import Server

    opened = engine.connect(Server(f"{place}?options=-csearch_path%3Dnone"))
    with pytest.raises(Misconfigured, match="no schema"):
        postgres_tables.refuse_without_schema(opened.connection)
    opened.connection.close()


def test_an_index_that_lost_rows_is_found(place: str, make, postgres) -> None:
    """Rows that a table holds and its keys do not lead to."""
    with Ledger.open(place, mode="append") as ledger:
        ledger.append([make.watch(number) for number in range(50)], writer="w", at_us=1)
        assert list(postgres_tables.damaged_pages(ledger.connection)) == []
        assert len(METADATA.tables) > 10
