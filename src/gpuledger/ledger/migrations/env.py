"""Run by Alembic: every step in the transaction that the caller has already opened, so all or nothing."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
with context.begin_transaction():
    context.run_migrations()
