"""Reserved time: transitions of workloads, their placements, holds on capacity. Guarded as every table of rows."""

from __future__ import annotations

from alembic import op

from gpuledger.ledger.migrations.making import make, sign

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ROW = "writer TEXT NOT NULL,\n  number INTEGER NOT NULL"
_END = "PRIMARY KEY (writer, number)"

_TABLES: dict[str, str] = {
    "placement": f"""
  {_ROW},
  placement TEXT NOT NULL,
  class_name TEXT NOT NULL,
  region TEXT NOT NULL,
  machine TEXT NOT NULL,
  pool TEXT NOT NULL,
  devices TEXT NOT NULL,
  count INTEGER NOT NULL,
  share_num INTEGER NOT NULL,
  share_den INTEGER NOT NULL,
  {_END},
  UNIQUE (placement)""",
    "workload_event": f"""
  {_ROW},
  workload TEXT NOT NULL,
  event_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  state TEXT NOT NULL,
  at_us INTEGER NOT NULL,
  recorded_at_us INTEGER NOT NULL,
  source TEXT NOT NULL,
  is_declared INTEGER NOT NULL,
  subject TEXT NOT NULL,
  requested_class TEXT NOT NULL,
  placement TEXT NOT NULL,
  {_END},
  UNIQUE (workload, event_id)""",
    "hold": f"""
  {_ROW},
  workload TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  change TEXT NOT NULL,
  at_us INTEGER NOT NULL,
  placement TEXT NOT NULL,
  expires_at_us INTEGER,
  {_END},
  UNIQUE (workload, sequence, change)""",
}

_INDEXES = (
    "CREATE INDEX workload_event_order ON workload_event (workload, at_us, sequence)",
    "CREATE INDEX workload_event_at ON workload_event (at_us, workload)",
    "CREATE INDEX workload_event_placement ON workload_event (placement, workload) WHERE placement <> ''",
    "CREATE INDEX hold_at ON hold (at_us)",
    "CREATE INDEX hold_expiring ON hold (placement, expires_at_us) WHERE expires_at_us IS NOT NULL",
)

_KEYS: dict[str, tuple[str, ...]] = {
    "placement": ("placement",),
    "workload_event": ("workload", "event_id"),
    "hold": ("workload", "sequence", "change"),
}


def upgrade() -> None:
    """Add the tables, and sign the store as a ledger of version 2."""
    make(op.get_bind(), _TABLES, _INDEXES, {table: (("writer", "number"), key) for table, key in _KEYS.items()})
    sign(op.get_bind(), 2)
