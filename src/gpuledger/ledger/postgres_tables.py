"""The tables of a ledger on PostgreSQL: made by their owner, granted to others, and checked by whoever reads them.

In: a connection. Out: what was done; or what is not as this program makes it. The owner makes the tables and can alter
them; the application's role can add rows and read them, and delete text. Triggers refuse every change, to both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gpuledger.errors import Misconfigured, Unavailable
from gpuledger.ledger.engine import bare_cursor
from gpuledger.ledger.migrations.making import POSTGRES_GUARD
from gpuledger.ledger.schema import IDENTITY_TEXT, METADATA

_ROW, _BEFORE, _DELETE, _UPDATE, _TRUNCATE = 1, 2, 8, 16, 32
"""Bits of ``pg_trigger.tgtype`` (PostgreSQL's src/include/catalog/pg_trigger.h)."""

_KINDS = """
SELECT c.relname, concat(c.relkind, c.relpersistence, c.relrowsecurity,
    EXISTS (SELECT 1 FROM pg_inherits AS i WHERE c.oid IN (i.inhrelid, i.inhparent)),
    EXISTS (SELECT 1 FROM pg_rewrite AS r WHERE r.ev_class = c.oid))
FROM pg_class AS c WHERE c.relnamespace = current_schema()::regnamespace"""

_PLAIN = "rpfff"
"""A table, permanent, without row security, inheritance and rules."""

_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, coalesce(l.collname, '')
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_collation AS l ON l.oid = a.attcollation WHERE c.relnamespace = current_schema()::regnamespace"""

_INDEXES = """
SELECT c.relname, x.relname, i.indisunique, i.indisvalid AND i.indisready AND i.indislive, i.indpred IS NOT NULL,
    (SELECT string_agg(pg_get_indexdef(x.oid, k, false), ',' ORDER BY k) FROM generate_series(1, i.indnkeyatts) AS k)
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid JOIN pg_class AS x ON x.oid = i.indexrelid
WHERE c.relnamespace = current_schema()::regnamespace"""

_TRIGGERS = """
SELECT c.relname, t.tgname, t.tgenabled = 'A', t.tgtype, t.tgqual IS NULL AND t.tgattr = ''::int2vector, p.prosrc
FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_proc AS p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleNote:
    """A role that was to be granted something.

    Args:
        role: its name.
        is_there: whether the server has it.
        is_strong: whether it is a superuser or belongs to the tables' owner, so that grants do not bind it.
    """

    role: str
    is_there: bool
    is_strong: bool


def look_at(connection: sa.Connection, roles: Sequence[str]) -> list[RoleNote]:
    """What the server says of roles."""
    cursor = bare_cursor(connection)
    found = []
    for role in roles:
        cursor.execute(
            "SELECT rolsuper OR pg_has_role(oid, current_user, 'MEMBER') FROM pg_roles WHERE rolname = ?", (role,)
        )
        rows = cursor.fetchall()
        found.append(RoleNote(role=role, is_there=bool(rows), is_strong=bool(rows and rows[0][0])))
    return found


def refuse_without_schema(connection: sa.Connection) -> None:
    """Raise where the connection's search path names no schema that is there.

    Raises:
        Misconfigured: ``no-schema``.
    """
    cursor = bare_cursor(connection)
    cursor.execute("SELECT current_schema() IS NULL, current_setting('search_path')")
    ((is_absent, path),) = cursor.fetchall()
    if is_absent:
        raise Misconfigured(
            "no-schema", f"the search path {path} names no schema that is there", hint="psql -c 'CREATE SCHEMA NAME'"
        )


def strangers(connection: sa.Connection) -> list[tuple[str, str]]:
    """This role and the owner of the tables, where it is not theirs; else nothing."""
    cursor = bare_cursor(connection)
    cursor.execute(
        "SELECT current_user, r.rolname FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner "
        "WHERE c.oid = to_regclass('link') AND NOT pg_has_role(c.relowner, 'MEMBER')"
    )
    return [(str(user), str(owner)) for user, owner in cursor.fetchall()]


def refuse_without_ownership(connection: sa.Connection) -> None:
    """Raise where the tables belong to somebody else: grants of others would be passed over with a warning.

    Raises:
        Unavailable: ``ledger-permission``.
    """
    for user, owner in strangers(connection):
        raise Unavailable(
            "ledger-permission",
            f"the tables belong to {owner}, and {user} may neither bring them up to date nor grant them",
            hint=f"as their owner: gpuledger migrate --ledger postgresql://{owner}@HOST/DATABASE",
        )


def refuse_without_room(connection: sa.Connection) -> None:
    """Raise where this role may make no tables in the schema.

    Raises:
        Unavailable: ``ledger-permission``.
    """
    cursor = bare_cursor(connection)
    cursor.execute(
        "SELECT current_user, current_schema(), pg_get_userbyid(datdba) FROM pg_database "
        "WHERE datname = current_database() AND NOT has_schema_privilege(current_schema(), 'CREATE')"
    )
    for user, schema, owner in cursor.fetchall():
        raise Unavailable(
            "ledger-permission",
            f"{user} may make no tables in the schema {schema}; the database belongs to {owner}",
            hint=f"as its owner: gpuledger migrate --ledger postgresql://{owner}@HOST/DATABASE --application {user}",
        )


def explain_tables(connection: sa.Connection) -> None:
    """Write what each table and column means where psql and other tools show it."""
    cursor = bare_cursor(connection)
    for table in METADATA.tables.values():
        cursor.execute(f"COMMENT ON TABLE {table.name} IS {_literal(table.comment or '')}")
        for column in table.columns:
            cursor.execute(f"COMMENT ON COLUMN {table.name}.{column.name} IS {_literal(column.comment or '')}")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def grant(connection: sa.Connection, role: str, *, version_table: str, may_append: bool) -> None:
    """Give a role what it needs, and take away whatever else it had on these tables.

    Args:
        connection: the owner's, in the transaction that made the tables.
        role: who gets it.
        version_table: where the version of the tables stands.
        may_append: insert rows and delete text too; else only read.
    """
    cursor = bare_cursor(connection)
    cursor.execute("SELECT quote_ident(?), quote_ident(current_schema()), quote_ident(current_database())", (role,))
    ((name, schema, database),) = cursor.fetchall()
    tables = ", ".join([*METADATA.tables, version_table])
    statements = [
        f"REVOKE ALL ON {tables} FROM PUBLIC, {name}",
        f"GRANT USAGE ON SCHEMA {schema} TO {name}",
        f"GRANT CONNECT, TEMPORARY ON DATABASE {database} TO {name}",
        f"GRANT SELECT ON {tables} TO {name}",
    ]
    if may_append:
        statements += [
            f"GRANT INSERT ON {', '.join(METADATA.tables)} TO {name}",
            f"GRANT DELETE ON {IDENTITY_TEXT.name} TO {name}",
        ]
    for statement in statements:
        cursor.execute(statement)


def damaged_pages(connection: sa.Connection) -> Iterator[str]:
    """Tables that do not hold the same number of rows when they are walked through and when their keys are."""
    cursor = bare_cursor(connection)
    for table in METADATA.tables:
        counts = []
        for walked in ("off", "on"):
            by_keys = "on" if walked == "off" else "off"
            cursor.execute(f"SET LOCAL enable_seqscan = {walked}")
            cursor.execute(f"SET LOCAL enable_indexonlyscan = {by_keys}")
            cursor.execute(f"SET LOCAL enable_bitmapscan = {by_keys}")
            cursor.execute(f"SELECT count(*) FROM {table}")  # noqa: S608 the schema's own name
            counts.append(cursor.fetchall()[0][0])
        if counts[0] != counts[1]:
            yield f"{table} holds {counts[1]} rows, and {counts[0]} by its keys"
    for setting in ("enable_seqscan", "enable_indexonlyscan", "enable_bitmapscan"):
        cursor.execute(f"SET LOCAL {setting} = on")


def schema_findings(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    """Tables, columns, keys, indexes and triggers that are missing, changed or added: (name, sentence)."""
    yield from _columns(connection)
    yield from _indexes(connection)
    yield from _triggers(connection)


def _rows(connection: sa.Connection, query: str) -> list[tuple[Any, ...]]:
    cursor = bare_cursor(connection)
    cursor.execute(query)
    return [tuple(row) for row in cursor.fetchall()]


def _columns(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    kinds = dict(_rows(connection, _KINDS))
    stored: dict[str, set[tuple[Any, ...]]] = {}
    for table_name, *column in _rows(connection, _COLUMNS):
        stored.setdefault(table_name, set()).add(tuple(column))
    for name, table in METADATA.tables.items():
        if name not in kinds:
            yield name, "the table is missing"
            continue
        if kinds[name] != _PLAIN:
            yield name, "the table is not a plain one: it is a view, unlogged, inherited, or has rules or row security"
        expected = {
            (column.name, "bigint", not column.nullable, "")
            if isinstance(column.type, sa.BigInteger)
            else (column.name, "text", not column.nullable, "C")
            for column in table.columns
        }
        for odd in sorted(expected ^ stored[name]):
            said = "is missing or changed" if odd in expected else "was not made so by this program"
            yield name, f"the column {odd[0]} {said}"


def _indexes(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    stored: dict[str, set[tuple[Any, ...]]] = {name: set() for name in METADATA.tables}
    for table, name, is_unique, is_sound, is_partial, columns in _rows(connection, _INDEXES):
        if table in stored:
            plain = tuple(column.strip('"') for column in columns.split(","))
            stored[table].add(("" if is_unique else name, is_unique, is_sound, is_partial, plain))
    for table, declared in METADATA.tables.items():
        expected: set[tuple[Any, ...]] = {
            (index.name, False, True, index.dialect_options["sqlite"]["where"] is not None, tuple(index.columns.keys()))
            for index in declared.indexes
        }
        expected |= {
            ("", True, True, False, tuple(constraint.columns.keys()))
            for constraint in declared.constraints
            if isinstance(constraint, sa.PrimaryKeyConstraint | sa.UniqueConstraint)
        }
        for name, is_unique, _, _, columns in sorted(expected ^ stored[table]):
            said = f"the key ({', '.join(columns)})" if is_unique else f"the index {name}"
            is_ours = any(each[0] == name and each[4] == columns for each in expected)
            yield table, f"{said} is missing or broken" if is_ours else f"{said} was not made by this program"


def _triggers(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    found = _rows(connection, _TRIGGERS)
    stored = {(table, name): tuple(rest) for table, name, *rest in found if table in METADATA.tables}
    expected = {}
    for table in METADATA.tables:
        never = _UPDATE | (0 if table == IDENTITY_TEXT.name else _DELETE)
        expected[table, f"{table}_no_change"] = (True, _BEFORE | never | _TRUNCATE, True, POSTGRES_GUARD)
        expected[table, f"{table}_no_row_change"] = (True, _ROW | _BEFORE | never, True, POSTGRES_GUARD)
    for table, name in sorted(expected.keys() | stored.keys()):
        if (table, name) not in stored:
            yield name, "the trigger is missing"
        elif (table, name) not in expected:
            yield name, f"a trigger on {table} that this program did not make"
        elif stored[table, name] != expected[table, name]:
            yield name, "the trigger is off, or not the one that this program made"
