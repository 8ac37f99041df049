"""Quotas: when those who were admitted said that they will be done. Guarded as every table of rows."""

from __future__ import annotations

from alembic import op

from gpuledger.ledger.migrations.making import make, sign

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


def upgrade() -> None:
    """Add the table, and sign the store as a ledger of version 3."""
    make(op.get_bind(), _TABLES, (), {table: (("writer", "number"), key) for table, key in _KEYS.items()})
    sign(op.get_bind(), 3)
