"""What an archive needs of SQLite: guards taken off inside one transaction, and archived rows laid under the tables.

In: the connection of an open ledger. Out: nothing but what is said. Whoever may write the file owns it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import sqlalchemy as sa

_SCHEMA = "archived"


def refuse_to_drop(connection: sa.Connection) -> None:
    """Nothing: whoever can append to a file can also change its tables; only the guards are in the way."""
    del connection


@contextmanager
def unguarded(connection: sa.Connection, tables: Sequence[str]) -> Iterator[None]:
    """Take off the guards against deletion, and put the very same ones back; the caller holds the transaction.

    Triggers are rows of the schema, so they go and come with the transaction: who reads meanwhile sees them, and who
    is killed in between leaves them.
    """
    cursor = connection.connection.cursor()
    guards: list[str] = []
    for table in tables:
        cursor.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?", (f"{table}_no_delete",))
        for (sql,) in cursor.fetchall():
            guards.append(str(sql))
            cursor.execute(f"DROP TRIGGER {table}_no_delete")
    yield
    for sql in guards:
        cursor.execute(sql)


def lay_under(connection: sa.Connection, tables: Mapping[str, sa.Table]) -> dict[str, str]:
    """Make room for archived rows, and let every read see them under the rows of the ledger.

    A temporary view stands before the table of its name; the file itself is not touched, and need not be writable.

    Returns:
        By table, the name that takes its archived rows.
    """
    cursor = connection.connection.cursor()
    cursor.execute(f"ATTACH '' AS {_SCHEMA}")
    for name, table in tables.items():
        columns = ", ".join(f"{each.name} {'INTEGER' if _is_whole(each) else 'TEXT'}" for each in table.columns)
        cursor.execute(f"CREATE TABLE {_SCHEMA}.{name} ({columns}, PRIMARY KEY (writer, number)) WITHOUT ROWID")
        names = ", ".join(column.name for column in table.columns)
        cursor.execute(
            f"CREATE TEMP VIEW {name} AS SELECT {names} FROM main.{name} UNION ALL SELECT {names} FROM {_SCHEMA}.{name}"  # noqa: S608 the schema's own names
        )
    return {name: f"{_SCHEMA}.{name}" for name in tables}


def index(connection: sa.Connection, tables: Mapping[str, sa.Table]) -> None:
    """Index the archived rows as their tables are: by natural key, and by whatever else they are looked up by."""
    cursor = connection.connection.cursor()
    for name, table in tables.items():
        cursor.execute(  # in a copy that was made before they left they are still there
            f"DELETE FROM {_SCHEMA}.{name} WHERE EXISTS (SELECT 1 FROM main.{name} AS m "  # noqa: S608 the schema's own names
            f"WHERE m.writer = {name}.writer AND m.number = {name}.number)"
        )
        keys = [each.columns for each in table.constraints if isinstance(each, sa.UniqueConstraint)]
        for number, key in enumerate([*keys, *(each.columns for each in table.indexes)]):
            columns = ", ".join(column.name for column in key)
            cursor.execute(f"CREATE INDEX {_SCHEMA}.{name}_archived_{number} ON {name} ({columns})")


def _is_whole(column: sa.Column[object]) -> bool:
    return isinstance(column.type, sa.BigInteger)
