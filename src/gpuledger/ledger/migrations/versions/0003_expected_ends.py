"""Quotas: when those who were admitted said that they will be done. Guarded as every table of rows."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_TABLES: dict[str, str] = {
    "expected_end": """
  writer TEXT NOT NULL,
  number INTEGER NOT NULL,
  workload TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  at_us INTEGER NOT NULL,
  until_us INTEGER NOT NULL,
  PRIMARY KEY (writer, number),
  UNIQUE (workload, sequence)""",
}

_KEYS: dict[str, tuple[str, ...]] = {"expected_end": ("workload", "sequence")}


def _guards(table: str, key: tuple[str, ...]) -> list[str]:
    same = [" AND ".join(f"{name} = NEW.{name}" for name in each) for each in (("writer", "number"), key)]
    present = "\n  OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {each})" for each in same)  # noqa: S608 names from above
    refusal = f"SELECT RAISE(ABORT, 'gpuledger: rows of {table} never change');"
    return [
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}\nWHEN {present}\nBEGIN\n  {refusal}\nEND",
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table}\nBEGIN\n  {refusal}\nEND",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}\nBEGIN\n  {refusal}\nEND",
    ]


def upgrade() -> None:
    """Add the table, and sign the file as a ledger of version 3."""
    run = op.get_bind().exec_driver_sql
    for table, columns in _TABLES.items():
        run(f"CREATE TABLE {table} ({columns}\n) STRICT, WITHOUT ROWID")
    for table, key in _KEYS.items():
        for trigger in _guards(table, key):
            run(trigger)
    run("PRAGMA user_version = 3")
