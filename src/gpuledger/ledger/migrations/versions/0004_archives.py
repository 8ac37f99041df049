"""Archives: what left the ledger, for which file. Guarded as every table of rows."""

from __future__ import annotations

from alembic import op

from gpuledger.ledger.migrations.making import make, sign

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TABLES: dict[str, str] = {
    "archive": """
  writer TEXT NOT NULL,
  number INTEGER NOT NULL,
  archived_at_us INTEGER NOT NULL,
  before_us INTEGER NOT NULL,
  month TEXT NOT NULL,
  rows_of TEXT NOT NULL,
  row_count INTEGER NOT NULL,
  first_us INTEGER NOT NULL,
  last_us INTEGER NOT NULL,
  writers TEXT NOT NULL,
  rows_hash TEXT NOT NULL,
  file_name TEXT NOT NULL,
  file_hash TEXT NOT NULL,
  folder TEXT NOT NULL,
  PRIMARY KEY (writer, number),
  UNIQUE (rows_hash)""",
}


def upgrade() -> None:
    """Add the table, and sign the store as a ledger of version 4."""
    make(op.get_bind(), _TABLES, (), {"archive": (("writer", "number"), ("rows_hash",))})
    sign(op.get_bind(), 4)
