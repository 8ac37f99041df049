"""The first tables: evidence, records, passes, policies, seals, the hash chain, and identity text.

Triggers refuse every change. On SQLite WITHOUT ROWID leaves no rowid to play tricks with.
"""

from __future__ import annotations

from alembic import op

from gpuledger.ledger.migrations.making import make, sign

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ROW = "writer TEXT NOT NULL,\n  number INTEGER NOT NULL"
_END = "PRIMARY KEY (writer, number)"

_TABLES: dict[str, str] = {
    "device_event": f"""
  {_ROW},
  host TEXT NOT NULL,
  device TEXT NOT NULL,
  at_us INTEGER NOT NULL,
  event TEXT NOT NULL,
  class_name TEXT NOT NULL,
  product TEXT NOT NULL,
  memory_mib INTEGER,
  parent TEXT NOT NULL,
  profile TEXT NOT NULL,
  pci_bus_id TEXT NOT NULL,
  driver_version TEXT NOT NULL,
  method TEXT NOT NULL,
  {_END},
  UNIQUE (host, device, event, at_us)""",
    "watch": f"""
  {_ROW},
  host TEXT NOT NULL,
  device TEXT NOT NULL,
  source TEXT NOT NULL,
  method TEXT NOT NULL,
  interval_ms INTEGER NOT NULL,
  since_us INTEGER NOT NULL,
  until_us INTEGER NOT NULL,
  status TEXT NOT NULL,
  readings INTEGER NOT NULL,
  new_rows INTEGER NOT NULL,
  living INTEGER NOT NULL,
  detail TEXT NOT NULL,
  {_END},
  UNIQUE (host, device, source, method, since_us, until_us, status)""",
    "process_identity": f"""
  {_ROW},
  host TEXT NOT NULL,
  boot_id TEXT NOT NULL,
  pid INTEGER NOT NULL,
  start_ticks INTEGER NOT NULL,
  exec_number INTEGER NOT NULL,
  started_at_us INTEGER,
  seen_at_us INTEGER NOT NULL,
  method TEXT NOT NULL,
  grade TEXT NOT NULL,
  text_key TEXT NOT NULL,
  {_END},
  UNIQUE (host, pid, boot_id, start_ticks, exec_number, seen_at_us)""",
    "driver_record": f"""
  {_ROW},
  host TEXT NOT NULL,
  device TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at_us INTEGER,
  context_ms INTEGER NOT NULL,
  peak_memory_mib INTEGER,
  gpu_percent INTEGER,
  memory_percent INTEGER,
  read_at_us INTEGER NOT NULL,
  method TEXT NOT NULL,
  driver_epoch TEXT NOT NULL,
  natural_key TEXT NOT NULL,
  ended_at_us INTEGER NOT NULL,
  {_END},
  UNIQUE (host, pid, device, natural_key)""",
    "sighting": f"""
  {_ROW},
  host TEXT NOT NULL,
  device TEXT NOT NULL,
  pid INTEGER NOT NULL,
  boot_id TEXT NOT NULL,
  start_ticks INTEGER NOT NULL,
  context_started_at_us INTEGER,
  since_us INTEGER NOT NULL,
  until_us INTEGER NOT NULL,
  accounted TEXT NOT NULL,
  samples INTEGER NOT NULL,
  memory_mib_ms INTEGER NOT NULL,
  memory_ms INTEGER NOT NULL,
  peak_memory_mib INTEGER,
  busy_ms INTEGER NOT NULL,
  busy_covered_ms INTEGER NOT NULL,
  gone_at_us INTEGER,
  process_died INTEGER NOT NULL,
  method TEXT NOT NULL,
  {_END},
  UNIQUE (host, pid, device, boot_id, start_ticks, since_us, until_us, samples)""",
    "usage_record": f"""
  {_ROW},
  meter TEXT NOT NULL,
  hour_us INTEGER NOT NULL,
  host TEXT NOT NULL,
  device TEXT NOT NULL,
  subject TEXT NOT NULL,
  context TEXT NOT NULL,
  quantity INTEGER NOT NULL,
  evidence_count INTEGER NOT NULL,
  evidence_hash TEXT NOT NULL,
  recorded_at_us INTEGER NOT NULL,
  {_END},
  UNIQUE (hour_us, meter, host, device, subject, context)""",
    "usage_correction": f"""
  {_ROW},
  meter TEXT NOT NULL,
  hour_us INTEGER NOT NULL,
  host TEXT NOT NULL,
  device TEXT NOT NULL,
  subject TEXT NOT NULL,
  correction_number INTEGER NOT NULL,
  delta INTEGER NOT NULL,
  reason TEXT NOT NULL,
  evidence_count INTEGER NOT NULL,
  evidence_hash TEXT NOT NULL,
  recorded_at_us INTEGER NOT NULL,
  {_END},
  UNIQUE (hour_us, meter, host, device, subject, correction_number)""",
    "pass": f"""
  {_ROW},
  at_us INTEGER NOT NULL,
  covered_from_us INTEGER NOT NULL,
  covered_until_us INTEGER NOT NULL,
  evidence_marks TEXT NOT NULL,
  records_added INTEGER NOT NULL,
  corrections_added INTEGER NOT NULL,
  {_END}""",
    "policy": f"""
  {_ROW},
  version INTEGER NOT NULL,
  effective_from_us INTEGER NOT NULL,
  applied_at_us INTEGER NOT NULL,
  document TEXT NOT NULL,
  document_hash TEXT NOT NULL,
  {_END},
  UNIQUE (version)""",
    "seal": f"""
  {_ROW},
  at_us INTEGER NOT NULL,
  heads TEXT NOT NULL,
  previous_root TEXT NOT NULL,
  root TEXT NOT NULL,
  {_END},
  UNIQUE (previous_root)""",
    "link": """
  writer TEXT NOT NULL,
  first_number INTEGER NOT NULL,
  last_number INTEGER NOT NULL,
  committed_at_us INTEGER NOT NULL,
  previous_hash TEXT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (writer, first_number),
  UNIQUE (writer, last_number),
  UNIQUE (writer, previous_hash)""",
    "identity_text": """
  text_key TEXT NOT NULL,
  salt TEXT NOT NULL,
  digest TEXT NOT NULL,
  json TEXT NOT NULL,
  PRIMARY KEY (text_key)""",
}

_INDEXES = (
    "CREATE INDEX watch_until ON watch (until_us, since_us)",
    "CREATE INDEX process_identity_seen ON process_identity (seen_at_us, started_at_us)",
    "CREATE INDEX driver_record_ended ON driver_record (ended_at_us, context_ms)",
    "CREATE INDEX sighting_until ON sighting (until_us, since_us, context_started_at_us)",
    "CREATE INDEX usage_record_sums ON usage_record (meter, hour_us, subject, host, device, context, quantity)",
    "CREATE INDEX usage_record_open ON usage_record (meter, hour_us) WHERE context LIKE '%@%'",
    "CREATE INDEX identity_text_digest ON identity_text (digest)",
)

_ROW_KEY = ("writer", "number")
_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "device_event": (_ROW_KEY, ("host", "device", "event", "at_us")),
    "watch": (_ROW_KEY, ("host", "device", "source", "method", "since_us", "until_us", "status")),
    "process_identity": (_ROW_KEY, ("host", "pid", "boot_id", "start_ticks", "exec_number", "seen_at_us")),
    "driver_record": (_ROW_KEY, ("host", "pid", "device", "natural_key")),
    "sighting": (_ROW_KEY, ("host", "pid", "device", "boot_id", "start_ticks", "since_us", "until_us", "samples")),
    "usage_record": (_ROW_KEY, ("hour_us", "meter", "host", "device", "subject", "context")),
    "usage_correction": (_ROW_KEY, ("hour_us", "meter", "host", "device", "subject", "correction_number")),
    "pass": (_ROW_KEY,),
    "policy": (_ROW_KEY, ("version",)),
    "seal": (_ROW_KEY, ("previous_root",)),
    "link": (("writer", "first_number"), ("writer", "last_number"), ("writer", "previous_hash")),
    "identity_text": (("text_key",),),
}


def upgrade() -> None:
    """Create every table, index and trigger, and sign the store as a ledger of version 1."""
    bind = op.get_bind()
    make(bind, _TABLES, _INDEXES, _KEYS)
    if bind.dialect.name == "sqlite":
        bind.exec_driver_sql("PRAGMA application_id = 1196444743")  # the letters GPLG
    sign(bind, 1)
