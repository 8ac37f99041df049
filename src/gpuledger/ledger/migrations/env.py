"""Run by Alembic: every step in the transaction that the caller has already opened, so all or nothing."""

from __future__ import annotations

from alembic import context

from gpuledger.ledger.schema import VERSION_TABLES

_connection = context.config.attributes["connection"]

context.configure(
    connection=_connection, transactional_ddl=False, version_table=VERSION_TABLES[_connection.dialect.name]
)
with context.begin_transaction():
    context.run_migrations()
