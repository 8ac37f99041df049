"""How a step makes what it adds, on either engine, from one spelling: that of SQLite.

In: names and columns as the steps spell them, integers and text only. Out: tables, indexes and the guards by which rows
never change. Frozen like the steps: what is made here for a version was made so on every ledger of that version, so
another way of making is another function. ``tests/ledger/test_making.py`` holds each version's result.

A later step says ``make(bind, tables, indexes, keys)``, then ``sign(bind, version)``, and serves both engines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from gpuledger.ledger.engine import bare_cursor

Keys = Mapping[str, Sequence[Sequence[str]]]
"""Table to its unique keys, the primary one first."""

_DELETABLE = "identity_text"
"""The one table that allows deletion, and no other change."""

POSTGRES_GUARD = """
BEGIN
    RAISE EXCEPTION 'gpuledger: rows of % never change', TG_TABLE_NAME USING ERRCODE = 'GL001';
END
"""
"""What the triggers run on PostgreSQL."""


def make(bind: sa.Connection, tables: Mapping[str, str], indexes: Sequence[str], keys: Keys) -> None:
    """Create tables of these columns, then indexes, then the guards of each table.

    Args:
        bind: the step's connection.
        tables: name to columns and constraints, in SQLite's words: TEXT, INTEGER, NOT NULL, PRIMARY KEY, UNIQUE.
        indexes: whole statements.
        keys: every unique key of each table, for the guards.
    """
    is_sqlite = bind.dialect.name == "sqlite"
    run = bare_cursor(bind).execute
    for table, columns in tables.items():
        created = f"CREATE TABLE {table} ({columns}\n)"
        run(f"{created} STRICT, WITHOUT ROWID" if is_sqlite else in_postgres(created))
    for index in indexes:
        run(index)
    if not is_sqlite:
        function = "CREATE OR REPLACE FUNCTION gpuledger_refuse() RETURNS trigger LANGUAGE plpgsql"
        run(f"{function} AS $guard${POSTGRES_GUARD}$guard$")
    for table, unique in keys.items():
        for statement in _sqlite_guards(table, unique) if is_sqlite else postgres_guards(table):
            run(statement)


def sign(bind: sa.Connection, version: int) -> None:
    """Say that the ledger is one of this version: in the file's header; on PostgreSQL the chain of steps says it."""
    if bind.dialect.name == "sqlite":
        bare_cursor(bind).execute(f"PRAGMA user_version = {version}")


def in_postgres(statement: str) -> str:
    """A statement in SQLite's words: its integers have 64 bits, and its texts are ordered by their bytes."""
    return re.sub(r"\bINTEGER\b", "BIGINT", re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', statement))


def _sqlite_guards(table: str, keys: Sequence[Sequence[str]]) -> list[str]:
    """The triggers of one table, as SQLite keeps them.

    BEFORE INSERT guards look at each unique key themselves, because a delete trigger does not see the row that REPLACE
    throws out.
    """
    same = [" AND ".join(f"{name} = NEW.{name}" for name in key) for key in keys]
    present = "\n  OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {each})" for each in same)  # noqa: S608 names of a step
    refusal = f"SELECT RAISE(ABORT, 'gpuledger: rows of {table} never change');"
    statements = [
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}\nWHEN {present}\nBEGIN\n  {refusal}\nEND",
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table}\nBEGIN\n  {refusal}\nEND",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}\nBEGIN\n  {refusal}\nEND",
    ]
    return statements[:2] if table == _DELETABLE else statements


def postgres_guards(table: str) -> list[str]:
    """The triggers of one table, as PostgreSQL keeps them.

    Those of a statement refuse even where no row would be met, ON CONFLICT DO UPDATE included. Those of a row are for
    changes that come without a statement (logical replication). ENABLE ALWAYS: also for who plays a replica.
    """
    events = "UPDATE" if table == _DELETABLE else "UPDATE OR DELETE"
    statements = []
    for name, what, each in (("no_change", f"{events} OR TRUNCATE", "STATEMENT"), ("no_row_change", events, "ROW")):
        at = f"BEFORE {what} ON {table} FOR EACH {each}"
        statements += [
            f"CREATE TRIGGER {table}_{name} {at} EXECUTE FUNCTION gpuledger_refuse()",
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_{name}",
        ]
    return statements
