"""PostgreSQL's part of archives: only the owner takes guards off, and for one transaction."""

from __future__ import annotations

from typing import Any

import pytest

from gpuledger.errors import Refused
from gpuledger.ledger import postgres as store
from gpuledger.ledger import postgres_archive, postgres_tables
from gpuledger.ledger.schema import SIGHTING
from gpuledger.ledger.store import Ledger
from gpuledger.model.rows import Sighting
from postgres_server import OWNER


def test_the_application_is_refused(postgres: Any) -> None:
    """By name, with what to type; its rows stay."""
    with Ledger.open(postgres.new_ledger(), mode="append") as ledger, pytest.raises(Refused) as refused:
        postgres_archive.refuse_to_drop(ledger.connection)
    assert refused.value.code == "not-owner"
    assert OWNER in refused.value.hint


def test_the_owners_guards_come_back(postgres: Any, make) -> None:
    """Inside rows go; afterwards the tables are as this program made them, and rows are guarded again."""
    place = str(postgres.new_ledger())
    owner = postgres.url(OWNER, place.rpartition("/")[2])
    with Ledger.open(owner, mode="append") as ledger:
        ledger.append([make.sighting(0)], writer="box.agent", at_us=1)
        connection = ledger.connection
        with engine_transaction(ledger), postgres_archive.unguarded(connection, ["sighting"]):
            connection_cursor(ledger).execute("DELETE FROM sighting")
        assert not ledger.count(Sighting)
        assert not list(postgres_tables.schema_findings(connection))


def test_rows_lie_under_a_table(postgres: Any, make) -> None:
    """Every read of this connection sees both."""
    place = str(postgres.new_ledger())
    with Ledger.open(place, mode="append") as ledger:
        ledger.append([make.sighting(0)], writer="box.agent", at_us=1)
    with Ledger.open(place, mode="read") as ledger, Ledger.open(place, mode="read") as other:
        names = postgres_archive.lay_under(ledger.connection, {"sighting": SIGHTING})
        columns = ", ".join(column.name for column in SIGHTING.columns)
        connection_cursor(ledger).execute(
            f"INSERT INTO {names['sighting']} SELECT {columns.replace('number', 'number + 1')} FROM public.sighting"
        )
        postgres_archive.index(ledger.connection, {"sighting": SIGHTING})
        assert [row.number for row in ledger.scan(Sighting)] == [1, 2]
        assert other.count(Sighting) == 1


def engine_transaction(ledger: Ledger) -> Any:
    """A transaction that writes."""
    return store.transaction(ledger.connection, write=True)


def connection_cursor(ledger: Ledger) -> Any:
    """A cursor of it."""
    return store.bare_cursor(ledger.connection)
