"""The seam: which engine speaks for a place or a connection."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.ledger import Ledger, postgres, sqlite
from gpuledger.ledger.engine import Engine, bare_cursor, engine_for, engine_of, others_wrote, own_changes
from gpuledger.ledger.places import Server

EVERY_STORE = True


def test_a_place_has_its_engine() -> None:
    """Found without connecting to anything."""
    assert engine_for(Path("/nowhere/l.db")) is sqlite
    assert engine_for(Server("postgresql://nowhere/d")) is postgres


def test_a_connection_has_its_engine(ledger: Ledger, engine: str) -> None:
    """And cursors of it read the same marks."""
    assert engine_of(ledger.connection) is {"sqlite": sqlite, "postgresql": postgres}[engine]
    cursor = bare_cursor(ledger.connection)
    cursor.execute("SELECT :a + :b, '?'", {"a": 1, "b": 2})
    assert cursor.fetchall() == [(3, "?")]


def test_both_engines_have_all_that_the_seam_names() -> None:
    """mypy compares their types; this their names."""
    wanted = {name for name in [*vars(Engine), *Engine.__annotations__] if not name.startswith("_")}
    for module in (sqlite, postgres):
        assert wanted <= vars(module).keys(), wanted - vars(module).keys()


def test_whether_anybody_wrote_can_be_asked(ledger: Ledger, place, make) -> None:
    """The two numbers are others once somebody else, or this connection, has written."""

    def stamp() -> tuple[int, int]:
        return others_wrote(ledger.connection), own_changes(ledger.connection)

    before = stamp()
    with Ledger.open(place, mode="append") as other:
        other.append([make.watch(1)], writer="b", at_us=1)
    between = stamp()
    ledger.append([make.watch(2)], writer="a", at_us=1)
    assert len({before, between, stamp()}) == 3


def test_relations_of_a_connection_are_its_own(ledger: Ledger, place) -> None:
    """Made before a snapshot, filled inside of it, empty for everybody else."""
    engine = engine_of(ledger.connection)
    relations = {"asked": "name TEXT PRIMARY KEY, number INTEGER"}
    for _ in range(2):
        engine.make_relations(ledger.connection, relations)
        with ledger.snapshot():
            cursor = bare_cursor(ledger.connection)
            cursor.execute("DELETE FROM asked")
            cursor.executemany("INSERT INTO asked VALUES (?, ?)", [("é", 2**62), ("Z", 1)])
            engine.weigh(cursor, ["asked"])
            rows = list(engine.stream(ledger.connection, "SELECT name, number FROM asked ORDER BY name", {}, 1))
            assert rows == [[("Z", 1)], [("é", 2**62)]]


def test_a_part_may_fail_without_the_whole(ledger: Ledger) -> None:
    """One check of verify that cannot read its table does not stop the next."""
    engine = engine_of(ledger.connection)
    with ledger.snapshot():
        with pytest.raises(Exception, match="nowhere"), engine.part(ledger.connection):  # of either driver
            bare_cursor(ledger.connection).execute("SELECT * FROM nowhere")
        assert ledger.writers() == ()
