"""From any older ledger, or an empty file, to today's tables; and what today's tables must look like.

In: a connection with an open transaction, of either engine. Out: the schema, all of it or none. Imported only when
there is something to do, because Alembic costs start-up time and memory that an agent does not get back.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from gpuledger.ledger import migrations

_STEPS = Path(migrations.__file__).parent


def migrate(connection: sa.Connection) -> None:
    """Run every step that the ledger behind ``connection`` has not seen.

    The caller holds the transaction: DDL is transactional in both engines, and so is SQLite's ``user_version``.
    """
    if not connection.in_transaction():
        connection.begin()  # so that Alembic knows of the caller's: else it would commit each step by itself
    config = Config()
    config.set_main_option("script_location", str(_STEPS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


@cache
def expected_objects() -> dict[tuple[str, str], tuple[str, str]]:
    """What ``sqlite_master`` holds after all steps: (type, name) to (table, SQL), from an empty database."""
    engine = sa.create_engine("sqlite://", poolclass=sa.NullPool)
    with engine.connect() as connection:
        migrate(connection)
        rows = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        connection.rollback()
    return {(str(row[0]), str(row[1])): (str(row[2]), str(row[3] or "")) for row in rows}
