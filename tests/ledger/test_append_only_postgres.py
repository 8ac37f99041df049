"""Append-only on PostgreSQL: every attack that plain SQL knows, by the application's role, and by the tables' owner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from gpuledger.ledger import Ledger, verify_ledger
from gpuledger.ledger.schema import METADATA
from gpuledger.model.identity import IdentityText
from postgres_server import APPLICATION, OWNER

TABLES = sorted(METADATA.tables)
NEVER = [name for name in TABLES if name != "identity_text"]
TRIGGER = "GL001"
FORBIDDEN = "42501"


@pytest.fixture(scope="module")
def filled(postgres, make) -> str:
    """The URL of a ledger with one row of every kind, sealed."""
    place = postgres.new_ledger()
    with Ledger.open(place, mode="append") as ledger:
        key = ledger.key_of(IdentityText(exe="/usr/bin/ollama"))
        ledger.append(
            [make.archive(), *make.one_of_each(), make.identity(9, text_key=key)], writer="box.agent", at_us=1
        )
        ledger.seal(2, writer="box.agent")
    return str(place)


def dump(connection: psycopg.Connection) -> dict[str, list[tuple]]:
    """Everything in every table."""
    return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES}


@pytest.fixture
def attack(filled: str, postgres) -> Iterator[Callable[[str], SimpleNamespace]]:
    """Connects as a role to a ledger that must afterwards be as it was."""
    database = filled.rpartition("/")[2]
    opened: list[psycopg.Connection] = []

    def connect(role: str) -> SimpleNamespace:
        connection = psycopg.connect(postgres.url(role, database), autocommit=True)
        opened.append(connection)

        def refused(statement: str, *states: str) -> None:
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(statement)
            assert caught.value.sqlstate in states, (statement, caught.value)

        return SimpleNamespace(run=connection.execute, refused=refused, cursor=connection.cursor)

    with postgres.superuser(database) as looking:
        before = dump(looking)
        yield connect
        for connection in opened:
            connection.close()
        assert dump(looking) == before
    with Ledger.open(filled, mode="read") as ledger:
        assert verify_ledger(ledger) == []


@pytest.mark.parametrize("role", [APPLICATION, OWNER])
@pytest.mark.parametrize("table", TABLES)
def test_no_row_changes(attack, table: str, role: str) -> None:
    """UPDATE of each column, of all rows or of none, is refused: by the grants, and to the owner by a trigger."""
    attacker = attack(role)
    state = FORBIDDEN if role == APPLICATION else TRIGGER
    for column in METADATA.tables[table].columns:
        attacker.refused(f"UPDATE {table} SET {column.name} = {column.name}", state)
        attacker.refused(f"UPDATE {table} SET {column.name} = {column.name} WHERE false", state)
    first = next(iter(METADATA.tables[table].columns)).name
    attacker.refused(f"UPDATE ONLY {table} SET {first} = 'x' RETURNING *", state)
    attacker.refused(f"TRUNCATE {table}", state)
    attacker.refused(f"TRUNCATE {table} CASCADE", state)


@pytest.mark.parametrize("role", [APPLICATION, OWNER])
@pytest.mark.parametrize("table", NEVER)
def test_no_row_goes(attack, table: str, role: str) -> None:
    """DELETE, also inside a WITH and by a MERGE."""
    attacker = attack(role)
    state = FORBIDDEN if role == APPLICATION else TRIGGER
    attacker.refused(f"DELETE FROM {table}", state)
    attacker.refused(f"DELETE FROM {table} WHERE false", state)
    attacker.refused(f"WITH gone AS (DELETE FROM {table} RETURNING 1) SELECT * FROM gone", state)
    attacker.refused(f"MERGE INTO {table} USING (SELECT 1) AS x ON true WHEN MATCHED THEN DELETE", state)


@pytest.mark.parametrize("role", [APPLICATION, OWNER])
@pytest.mark.parametrize("table", TABLES)
def test_no_row_is_replaced_through_any_key(attack, table: str, role: str) -> None:
    """ON CONFLICT DO UPDATE, by whichever key, and also where nothing conflicts; DO NOTHING and COPY add nothing."""
    attacker = attack(role)
    names = ", ".join(column.name for column in METADATA.tables[table].columns)
    first = next(iter(METADATA.tables[table].columns)).name
    keys = [
        tuple(constraint.columns.keys())
        for constraint in METADATA.tables[table].constraints
        if type(constraint).__name__ in ("PrimaryKeyConstraint", "UniqueConstraint")
    ]
    state = FORBIDDEN if role == APPLICATION else TRIGGER
    for key in keys:
        upsert = f"INSERT INTO {table} ({names}) SELECT * FROM {table} LIMIT 1 ON CONFLICT ({', '.join(key)})"
        attacker.refused(f"{upsert} DO UPDATE SET {first} = 'forged'", state)
        attacker.refused(f"{upsert.replace('LIMIT 1', 'LIMIT 0')} DO UPDATE SET {first} = 'forged'", state)
    attacker.refused(f"INSERT INTO {table} ({names}) SELECT * FROM {table}", "23505")
    attacker.run(f"INSERT INTO {table} ({names}) SELECT * FROM {table} ON CONFLICT DO NOTHING")
    row = attacker.run(f"SELECT * FROM {table} LIMIT 1").fetchone()
    with pytest.raises(psycopg.errors.UniqueViolation), attacker.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        copy.write_row(row)


def test_the_application_cannot_make_room_for_a_change(attack, postgres, filled: str) -> None:
    """Triggers, tables, rules, children and the replica's role are out of its reach."""
    attacker = attack(APPLICATION)
    for table in TABLES:
        attacker.refused(f"ALTER TABLE {table} DISABLE TRIGGER ALL", FORBIDDEN)
        attacker.refused(f"DROP TRIGGER {table}_no_change ON {table}", FORBIDDEN)
        attacker.refused(f"CREATE TRIGGER t BEFORE INSERT ON {table} EXECUTE FUNCTION gpuledger_refuse()", FORBIDDEN)
        attacker.refused(f"CREATE RULE r AS ON INSERT TO {table} DO INSTEAD NOTHING", FORBIDDEN)
        attacker.refused(f"CREATE TEMP TABLE child () INHERITS ({table})", FORBIDDEN)
        attacker.refused(f"CREATE INDEX ON {table} (({1}))", FORBIDDEN)
        attacker.refused(f"DROP TABLE {table}", FORBIDDEN)
        attacker.refused(f"ALTER TABLE {table} RENAME TO old", FORBIDDEN)
        attacker.refused(f"ALTER TABLE {table} OWNER TO {APPLICATION}", FORBIDDEN)
        attacker.refused(f"ALTER TABLE {table} ADD COLUMN more text", FORBIDDEN)
    attacker.refused("SET session_replication_role = replica", FORBIDDEN)
    attacker.refused(f"SET ROLE {OWNER}", FORBIDDEN)
    attacker.refused("UPDATE gpuledger_version SET version_num = '0001'", FORBIDDEN)
    attacker.refused("INSERT INTO gpuledger_version VALUES ('0009')", FORBIDDEN)
    attacker.refused("CREATE TABLE mine (x int)", FORBIDDEN)
    attacker.refused(
        "CREATE OR REPLACE FUNCTION gpuledger_refuse() RETURNS trigger LANGUAGE sql AS 'SELECT NULL'", FORBIDDEN
    )


def test_what_plays_a_replica_is_refused_too(postgres, filled: str) -> None:
    """Triggers that are ENABLE ALWAYS fire for a superuser who switches the others off so."""
    with postgres.superuser(filled.rpartition("/")[2]) as connection:
        connection.execute("SET session_replication_role = replica")
        for table in NEVER:
            for statement in (f"DELETE FROM {table}", f"TRUNCATE {table}"):
                with pytest.raises(psycopg.Error) as caught:
                    connection.execute(statement)
                assert caught.value.sqlstate == TRIGGER


def test_a_cascade_does_not_reach_in(postgres, make) -> None:
    """A foreign key by the owner that would delete with its parent: the trigger stands before it."""
    place = postgres.new_ledger()
    database = place.rpartition("/")[2]
    with Ledger.open(place, mode="append") as ledger:
        ledger.append([make.policy(1)], writer="w", at_us=1)
    with psycopg.connect(postgres.url(OWNER, database), autocommit=True) as owner:
        owner.execute("CREATE TABLE parent (version bigint PRIMARY KEY)")
        owner.execute("INSERT INTO parent VALUES (1)")
        owner.execute("ALTER TABLE policy ADD FOREIGN KEY (version) REFERENCES parent ON DELETE CASCADE")
        with pytest.raises(psycopg.Error) as caught:
            owner.execute("DELETE FROM parent")
        assert caught.value.sqlstate == TRIGGER


def test_text_can_be_deleted_but_not_changed(postgres, make) -> None:
    """identity_text allows the application one thing, and the amounts and seals stand after it."""
    place = postgres.new_ledger()
    with Ledger.open(place, mode="append") as ledger:
        key = ledger.key_of(IdentityText(exe="/usr/bin/ollama"))
        ledger.append([make.identity(text_key=key)], writer="box.agent", at_us=1)
        ledger.seal(2, writer="box.agent")
    with psycopg.connect(place, autocommit=True) as connection:
        assert connection.execute("DELETE FROM identity_text").rowcount == 1
    with Ledger.open(place, mode="read") as ledger:
        assert ledger.texts() == {}
        assert verify_ledger(ledger) == []


OWNERS_DEEDS: dict[str, str] = {
    "ALTER TABLE watch DISABLE TRIGGER watch_no_change": "watch_no_change",
    "ALTER TABLE watch ENABLE TRIGGER watch_no_change": "watch_no_change",
    "DROP TRIGGER link_no_row_change ON link": "link_no_row_change",
    "CREATE OR REPLACE FUNCTION gpuledger_refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'": "seal",
    "CREATE TRIGGER quiet BEFORE INSERT ON watch FOR EACH ROW EXECUTE FUNCTION gpuledger_refuse()": "quiet",
    "CREATE RULE r AS ON INSERT TO pass DO INSTEAD NOTHING": "pass",
    "CREATE TABLE child () INHERITS (usage_record)": "usage_record",
    "DROP INDEX driver_record_ended": "driver_record",
    "CREATE UNIQUE INDEX one_only ON watch (host)": "watch",
    "ALTER TABLE watch ADD COLUMN extra text": "watch",
    "ALTER TABLE watch RENAME COLUMN detail TO notes": "watch",
    "ALTER TABLE watch ALTER COLUMN living TYPE numeric": "watch",
    "ALTER TABLE watch ALTER COLUMN detail DROP NOT NULL": "watch",
    "ALTER TABLE watch ENABLE ROW LEVEL SECURITY": "watch",
    "ALTER TABLE seal DROP CONSTRAINT seal_previous_root_key": "seal",
    "DROP TABLE usage_correction": "usage_correction",
    "ALTER TABLE usage_correction SET UNLOGGED": "usage_correction",
}
"""What the owner can do, and where verify then finds it."""


@pytest.mark.parametrize("deed", OWNERS_DEEDS)
def test_what_the_owner_makes_room_with_is_found(postgres, deed: str) -> None:
    """Nobody can keep an owner from it; verify shows it."""
    place = postgres.new_ledger()
    with psycopg.connect(postgres.url(OWNER, place.rpartition("/")[2]), autocommit=True) as owner:
        owner.execute(deed)
    with Ledger.open(place, mode="read") as ledger:
        findings: list[Any] = verify_ledger(ledger)
    assert "schema" in {finding.code for finding in findings}
    assert any(OWNERS_DEEDS[deed] in finding.where for finding in findings), findings


@pytest.mark.parametrize(
    "deed",
    [
        "UPDATE watch SET detail = 'other'",
        "DELETE FROM driver_record",
        "UPDATE link SET hash = repeat('0', 64)",
        "UPDATE seal SET at_us = 3",
        "UPDATE identity_text SET json = '{}'",
        "DELETE FROM seal",
    ],
)
def test_what_the_owner_changed_is_found(postgres, make, deed: str) -> None:
    """Triggers off, a row changed, triggers on again: nothing is left to see but the chain, and it shows."""
    place = postgres.new_ledger()
    with Ledger.open(place, mode="append") as ledger:
        key = ledger.key_of(IdentityText(exe="/usr/bin/ollama"))
        ledger.append(
            [make.archive(), *make.one_of_each(), make.identity(9, text_key=key)], writer="box.agent", at_us=1
        )
        ledger.seal(2, writer="box.agent")
    table = next(name for name in TABLES if f" {name}" in deed)
    with psycopg.connect(postgres.url(OWNER, place.rpartition("/")[2]), autocommit=True) as owner:
        owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        owner.execute(deed)
        owner.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_change")
        owner.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_row_change")
    with Ledger.open(place, mode="read") as ledger:
        findings = verify_ledger(ledger)
    assert findings
    assert "schema" not in {finding.code for finding in findings}
