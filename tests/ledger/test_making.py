"""How steps make tables: frozen, so that each version is the same on every ledger of it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from gpuledger.ledger import migrations
from gpuledger.ledger.migrations.making import in_postgres, postgres_guards

SQLITE = {
    1: "1dd4da6556b72f779a93f2e34c9e22db79c8d8a7aff780ab46c0c4776814a6e1",
    2: "dbf1f753ffb14bdf0b6325ad12308a27efa1ec33f4dd3360f4a4702522e08c52",
}
"""SHA-256 over what ``sqlite_master`` holds at each version. Never change one: add the next."""


@pytest.mark.parametrize("version", SQLITE)
def test_a_version_is_made_as_it_always_was(version: int) -> None:
    """To the letter: `verify` compares ledgers that are years old with what a step makes today."""
    with sa.create_engine("sqlite://", poolclass=sa.NullPool).connect() as connection:
        connection.begin()
        config = Config()
        config.set_main_option("script_location", str(Path(migrations.__file__).parent))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, f"{version:04}")
        rows = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    made = {(str(row[0]), str(row[1])): (str(row[2]), str(row[3] or "")) for row in rows}
    assert hashlib.sha256(repr(sorted(made.items())).encode()).hexdigest() == SQLITE[version]


def test_a_spelling_for_both() -> None:
    """Integers of 64 bits, texts ordered by their bytes."""
    assert in_postgres("CREATE TABLE t (a TEXT NOT NULL, b INTEGER)") == (
        'CREATE TABLE t (a TEXT COLLATE "C" NOT NULL, b BIGINT)'
    )


def test_the_guards_of_a_table() -> None:
    """Of statements and of rows, for everybody; text alone can be deleted."""
    whole = "\n".join(postgres_guards("watch"))
    assert "BEFORE UPDATE OR DELETE OR TRUNCATE ON watch FOR EACH STATEMENT" in whole
    assert "BEFORE UPDATE OR DELETE ON watch FOR EACH ROW" in whole
    assert whole.count("ENABLE ALWAYS") == 2
    assert "DELETE" not in "\n".join(postgres_guards("identity_text"))
