"""What an archive needs of PostgreSQL: guards off within one transaction, by the owner; archived rows under the tables.

In: the connection of an open ledger. Out: nothing but what is said, or a refusal. Only the role that owns the tables
can take their guards off; the one that the application uses cannot delete a row whatever it tries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import sqlalchemy as sa

from gpuledger.errors import Refused
from gpuledger.ledger.engine import bare_cursor
from gpuledger.ledger.migrations.making import in_postgres
from gpuledger.ledger.postgres_tables import strangers

_PREFIX = "archived_"

HOLDS = "archive_on_this_connection"
"""In a connection's notes: archived rows lie in its temporary tables, and go with it."""


def refuse_to_drop(connection: sa.Connection) -> None:
    """Raise where the tables belong to another role.

    Raises:
        Refused: ``not-owner``.
    """
    for user, owner in strangers(connection):
        raise Refused(
            "not-owner",
            f"rows leave by the owner of the tables, {owner}; {user} can only add rows",
            hint=f"as their owner: gpuledger archive ... --ledger postgresql://{owner}@HOST/DATABASE",
        )


@contextmanager
def unguarded(connection: sa.Connection, tables: Sequence[str]) -> Iterator[None]:
    """Switch the guards off and on again; the caller holds the transaction, and nobody else can write meanwhile."""
    refuse_to_drop(connection)
    cursor = bare_cursor(connection)
    guards = [(table, f"{table}_{name}") for table in tables for name in ("no_change", "no_row_change")]
    for table, guard in guards:
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {guard}")
    yield
    for table, guard in guards:
        cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {guard}")


def lay_under(connection: sa.Connection, tables: Mapping[str, sa.Table]) -> dict[str, str]:
    """Make room for archived rows, and let every read see them: temporary views stand before the tables.

    Returns:
        By table, the name that takes its archived rows.
    """
    cursor = bare_cursor(connection)
    cursor.execute("SELECT quote_ident(current_schema())")
    ((schema,),) = cursor.fetchall()
    connection.info[HOLDS] = True
    for name, table in tables.items():
        columns = ", ".join(
            f"{each.name} {'INTEGER' if isinstance(each.type, sa.BigInteger) else 'TEXT'}" for each in table.columns
        )
        laid = in_postgres(f"CREATE TEMP TABLE {_PREFIX}{name} ({columns}, PRIMARY KEY (writer, number))")
        cursor.execute(laid)
        names = ", ".join(column.name for column in table.columns)
        cursor.execute(
            f"CREATE TEMP VIEW {name} AS SELECT {names} FROM {schema}.{name} "  # noqa: S608 the schema's own names
            f"UNION ALL SELECT {names} FROM {_PREFIX}{name}"
        )
    return {name: f"{_PREFIX}{name}" for name in tables}


def index(connection: sa.Connection, tables: Mapping[str, sa.Table]) -> None:
    """Index the archived rows as their tables are, and let the planner know how many there are."""
    cursor = bare_cursor(connection)
    cursor.execute("SELECT quote_ident(current_schema())")
    ((schema,),) = cursor.fetchall()
    for name, table in tables.items():
        cursor.execute(  # in a copy that was made before they left they are still there
            f"DELETE FROM {_PREFIX}{name} AS a WHERE EXISTS (SELECT 1 FROM {schema}.{name} AS m "  # noqa: S608 the schema's own names
            "WHERE m.writer = a.writer AND m.number = a.number)"
        )
        keys = [each.columns for each in table.constraints if isinstance(each, sa.UniqueConstraint)]
        for number, key in enumerate([*keys, *(each.columns for each in table.indexes)]):
            columns = ", ".join(column.name for column in key)
            cursor.execute(f"CREATE INDEX {_PREFIX}{name}_{number} ON {_PREFIX}{name} ({columns})")
        cursor.execute(f"ANALYZE {_PREFIX}{name}")


FOR_ENGINE = (refuse_to_drop, unguarded, lay_under, index)
"""What :mod:`.postgres` has of it as its own, in the order of :class:`gpuledger.ledger.engine.Engine`."""
