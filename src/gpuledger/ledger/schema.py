"""The tables of the ledger, in one place: what each is called, what each column means, what makes a row itself.

In: nothing. Out: :data:`METADATA` and its tables for statements, for :mod:`gpuledger.ledger.kinds`, and the
comments from which ``docs/reference/tables.md`` is made. The tables are created by ``migrations/``, which
spells its own DDL out and is frozen; a test holds the two together.

Every table is STRICT and WITHOUT ROWID, holds integers and text only, and never changes, save
``identity_text``, from which text can be deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

SCHEMA_VERSION = 4
"""The version this program reads and writes: the number of migrations, kept in the file's ``user_version``."""

VERSION_TABLES = {"sqlite": "alembic_version", "postgresql": "gpuledger_version"}
"""Where the last step is noted, by engine; a database on a server may hold other applications that use Alembic."""

METADATA = sa.MetaData()

_WHOLE = sa.BigInteger().with_variant(sa.INTEGER(), "sqlite")
_TEXT = sa.Text()


def _whole(name: str, comment: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, _WHOLE, nullable=nullable, comment=comment)


def _text(name: str, comment: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False, comment=comment)


def _table(
    name: str, comment: str, key: Sequence[str], *columns: sa.Column[Any], indexes: Sequence[sa.Index] = ()
) -> sa.Table:
    """A table of rows: (writer, number) first, its columns, and the natural key as a unique constraint."""
    return sa.Table(
        name,
        METADATA,
        _text("writer", "The hash chain the row belongs to, HOST.ROLE."),
        _whole("number", "The row's place in its writer's chain, counted from 1 over all tables without a gap."),
        *columns,
        sa.PrimaryKeyConstraint("writer", "number"),
        *([sa.UniqueConstraint(*key)] if key else []),
        *indexes,
        comment=comment,
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


_HOST = "The machine's name."
_DEVICE = "UUID of the GPU or MIG instance; never an index."
_PID = "Process id in the init pid namespace."
_METHOD_DRIVER = "How it was read: nvml, nvidia-smi, import or simulated."
_RECORDED = "When the metering pass ran, microseconds UTC."
_EVIDENCE_COUNT = "Number of evidence rows that stand behind it."
_EVIDENCE_HASH = "First 16 hex digits of the SHA-256 over the sorted references of those rows."

DEVICE_EVENT = _table(
    "device_event",
    "A device seen, changed or lost.",
    ("host", "device", "event", "at_us"),
    _text("host", _HOST),
    _text("device", _DEVICE),
    _whole("at_us", "When it was read, microseconds UTC."),
    _text("event", "What happened: seen, changed or lost."),
    _text("class_name", "What the device is for accounting, e.g. A100-SXM4-40GB/1g.5gb."),
    _text("product", "The driver's product name as it stands."),
    _whole("memory_mib", "Device memory in MiB; NULL when it could not be read.", nullable=True),
    _text("parent", "For a MIG instance the UUID of its GPU, else empty."),
    _text("profile", "For a MIG instance its profile such as 1g.5gb, else empty."),
    _text("pci_bus_id", "PCI address, may be empty; it moves with slots."),
    _text("driver_version", "Version of the driver, may be empty."),
    _text("method", "How it was read: nvml, nvidia-smi or simulated."),
)

WATCH = _table(
    "watch",
    "A span in which one source looked at one host or device, with its status.",
    ("host", "device", "source", "method", "since_us", "until_us", "status"),
    _text("host", "The machine's name; of a controller its own."),
    _text("device", "UUID of the GPU; empty when the source watches the whole host."),
    _text("source", "What looked: driver (accounting and living lists), process (naming), controller (it is alive)."),
    _text(
        "method", "nvml, nvidia-smi, import or simulated for drivers; ebpf, connector or poll for naming; heartbeat."
    ),
    _whole("interval_ms", "Time between two looks, ms; 0 where it looked once."),
    _whole("since_us", "Start of the span, microseconds UTC; equal to until_us for a single look."),
    _whole("until_us", "End of the span, microseconds UTC."),
    _text("status", "ok; idle when it is proven that nothing ran; or the reason why the whole span is UNKNOWN."),
    _whole("readings", "Number of looks in the span."),
    _whole("new_rows", "Finished processes found in the span that were not known before."),
    _whole("living", "Most contexts seen alive at one look."),
    _text("detail", "One sentence for the journal; may be empty."),
    indexes=(sa.Index("watch_until", "until_us", "since_us"),),
)

PROCESS_IDENTITY = _table(
    "process_identity",
    "One process, as read while it lived.",
    ("host", "pid", "boot_id", "start_ticks", "exec_number", "seen_at_us"),
    _text("host", _HOST),
    _text("boot_id", "The kernel's boot id; empty when the source does not know it (a pid map)."),
    _whole("pid", _PID),
    _whole("start_ticks", "Field 22 of /proc/PID/stat; for a pid map its line number."),
    _whole("exec_number", "0 for the program first seen, then counted up at each exec."),
    _whole(
        "started_at_us", "Wall-clock start, microseconds UTC; NULL when the source does not know it.", nullable=True
    ),
    _whole("seen_at_us", "When it was read, alive, microseconds UTC."),
    _text("method", "How it was read: ebpf, connector, poll, pid-map or nvidia-smi."),
    _text("grade", "kernel (unit, cgroup and uid read from the kernel) or claimed (somebody's word)."),
    _text("text_key", "Key of its text in identity_text, which can be forgotten; empty if it ended unread."),
    indexes=(sa.Index("process_identity_seen", "seen_at_us", "started_at_us"),),
)

DRIVER_RECORD = _table(
    "driver_record",
    "One finished process on one device, as the driver settled it.",
    ("host", "pid", "device", "natural_key"),
    _text("host", _HOST),
    _text("device", "UUID of the GPU; never an index."),
    _whole("pid", "Process id as the driver gives it."),
    _whole(
        "started_at_us", "First open of the device by that pid, microseconds UTC; NULL from CSV and XML.", nullable=True
    ),
    _whole("context_ms", "Time the process held the device, ms, as the driver settled it."),
    _whole(
        "peak_memory_mib", "High-water mark in MiB; 0 is not evidence of no use; NULL when unreadable.", nullable=True
    ),
    _whole(
        "gpu_percent",
        "Mean SM utilisation, whole percent; 0 is not evidence of no use; NULL when unreadable.",
        nullable=True,
    ),
    _whole("memory_percent", "Mean memory-bandwidth utilisation, whole percent; NULL when unreadable.", nullable=True),
    _whole("read_at_us", "When the row was read, microseconds UTC; the process had ended by then."),
    _text("method", _METHOD_DRIVER),
    _text("driver_epoch", "Names one load of the driver where that is known, else empty."),
    _text(
        "natural_key", "What makes the row itself: start:MICROSECONDS, or content:... where the source gives no start."
    ),
    _whole("ended_at_us", "Derived: started_at_us plus context_ms, or read_at_us where there is no start."),
    indexes=(sa.Index("driver_record_ended", "ended_at_us", "context_ms"),),
)

SIGHTING = _table(
    "sighting",
    "One living context over a span of looking.",
    ("host", "pid", "device", "boot_id", "start_ticks", "since_us", "until_us", "samples"),
    _text("host", _HOST),
    _text("device", _DEVICE),
    _whole("pid", _PID),
    _text("boot_id", "Boot id of the process identity; empty when the source does not know it."),
    _whole("start_ticks", "Start of the process identity; 0 when /proc could not be read."),
    _whole(
        "context_started_at_us",
        "The driver's start of this context, microseconds UTC; NULL when not accounted.",
        nullable=True,
    ),
    _whole("since_us", "Start of the span, microseconds UTC."),
    _whole("until_us", "Last look of the span at which the context was alive, microseconds UTC."),
    _text("accounted", "Whether the driver's accounting list holds it: yes, no or unknown."),
    _whole("samples", "Number of looks in the span."),
    _whole("memory_mib_ms", "Memory held, integrated over the span, MiB x ms."),
    _whole("memory_ms", "The part of the span that memory samples cover, ms; 0 when memory was not readable."),
    _whole("peak_memory_mib", "Highest memory sample, MiB; NULL when not readable.", nullable=True),
    _whole("busy_ms", "SM activity, percent integrated over the span, ms."),
    _whole("busy_covered_ms", "Part of the span that utilisation samples cover, ms; 0 when not readable."),
    _whole(
        "gone_at_us", "The look that first missed the context, microseconds UTC; NULL while it is alive.", nullable=True
    ),
    _whole("process_died", "1 when at gone_at_us the process itself was gone too, else 0."),
    _text("method", _METHOD_DRIVER),
    indexes=(sa.Index("sighting_until", "until_us", "since_us", "context_started_at_us"),),
)

PLACEMENT = _table(
    "placement",
    "What a workload is placed on: class, region, machine, devices and share.",
    ("placement",),
    _text("placement", "Key: the first 32 hex digits of the SHA-256 over all of it."),
    _text("class_name", "Accounting class, e.g. H100-80GB, A100-SXM4-40GB/1g.5gb, or cpu."),
    _text("region", "Region, may be empty."),
    _text("machine", "Machine, may be empty."),
    _text("pool", "Pool, may be empty."),
    _text("devices", "JSON list of device UUIDs, sorted; [] where only their number is known."),
    _whole("count", "Number of devices; 0 for class cpu."),
    _whole("share_num", "Numerator of the share of each device."),
    _whole("share_den", "Denominator of the share of each device."),
)

WORKLOAD_EVENT = _table(
    "workload_event",
    "One transition of one workload, as a control plane, batch system or trace tells it.",
    ("workload", "event_id"),
    _text("workload", "The control plane's id of the workload."),
    _text("event_id", "The event's own id; the same id with the same content is the same event."),
    _whole("sequence", "1, 2, ... in the order in which the ledger learned of the workload's events."),
    _text("state", "pending, provisioning, downloading, booting, running, stopping, stopped or failed."),
    _whole("at_us", "When it happened at the runtime, microseconds UTC."),
    _whole("recorded_at_us", "When the ledger learned of it, microseconds UTC."),
    _text("source", "Who says so: a controller's name, slurm, trace or runtime."),
    _whole("is_declared", "1 for the past that an importer declares; 0 for a live control plane."),
    _text("subject", "Key of its owner's text in identity_text."),
    _text("requested_class", "The class asked for, may be empty."),
    _text("placement", "Key of its placement; empty where the event names none."),
    indexes=(
        sa.Index("workload_event_order", "workload", "at_us", "sequence"),
        sa.Index("workload_event_at", "at_us", "workload"),
    ),
)
sa.Index(
    "workload_event_placement",
    WORKLOAD_EVENT.c.placement,
    WORKLOAD_EVENT.c.workload,
    sqlite_where=WORKLOAD_EVENT.c.placement != "",
)

HOLD = _table(
    "hold",
    "A claim of a workload on capacity, or its end.",
    ("workload", "sequence", "change"),
    _text("workload", "Who holds."),
    _whole("sequence", "Sequence of the event that changed it; 0 for a hold taken before any event."),
    _text("change", "taken, confirmed or released."),
    _whole("at_us", "When, microseconds UTC."),
    _text("placement", "Key of what is held; empty for a workload that is not placed yet."),
    _whole("expires_at_us", "When an unconfirmed hold lapses, microseconds UTC; NULL when it does not.", nullable=True),
    indexes=(sa.Index("hold_at", "at_us"),),
)
sa.Index("hold_expiring", HOLD.c.placement, HOLD.c.expires_at_us, sqlite_where=HOLD.c.expires_at_us.is_not(None))

EXPECTED_END = _table(
    "expected_end",
    "When a workload that was admitted said that it will be done.",
    ("workload", "sequence"),
    _text("workload", "Who said so."),
    _whole("sequence", "Sequence of the event by which it was admitted."),
    _whole("at_us", "When it was said, microseconds UTC."),
    _whole("until_us", "The end that it expects, microseconds UTC; nobody is held to it."),
)

USAGE_RECORD = _table(
    "usage_record",
    "What one subject used of one device in one UTC hour, by one meter; immutable.",
    ("hour_us", "meter", "host", "device", "subject", "context"),
    _text("meter", "Name of the meter, e.g. gpu.context; quantity is in its unit."),
    _whole("hour_us", "Start of the UTC hour, microseconds."),
    _text("host", _HOST),
    _text("device", f"{_DEVICE} Of reserved time placement:KEY."),
    _text("subject", "Key of the text in identity_text, or unattributed:CAUSE."),
    _text(
        "context",
        "settled, gone, or PID@START for one context that was still open when the hour was recorded; reserved.",
    ),
    _whole("quantity", "Whole units of the meter."),
    _whole("evidence_count", _EVIDENCE_COUNT),
    _text("evidence_hash", _EVIDENCE_HASH),
    _whole("recorded_at_us", _RECORDED),
)
sa.Index(
    "usage_record_sums",
    *(USAGE_RECORD.c[name] for name in ("meter", "hour_us", "subject", "host", "device", "context", "quantity")),
)
sa.Index(
    "usage_record_open",
    USAGE_RECORD.c.meter,
    USAGE_RECORD.c.hour_us,
    sqlite_where=USAGE_RECORD.c.context.like("%@%"),  # to name another engine here loads all of it at every start
)

USAGE_CORRECTION = _table(
    "usage_correction",
    "A signed delta to a recorded hour, with its reason.",
    ("hour_us", "meter", "host", "device", "subject", "correction_number"),
    _text("meter", "Name of the meter; delta is in its unit."),
    _whole("hour_us", "Start of the UTC hour it corrects, microseconds."),
    _text("host", _HOST),
    _text("device", _DEVICE),
    _text("subject", "Key of the text in identity_text, or unattributed:CAUSE."),
    _whole("correction_number", "1, 2, ... within the hour, meter, host, device and subject."),
    _whole("delta", "Whole units of the meter, may be negative, never 0."),
    _text("reason", "Why: late-evidence, late-name or clock-step; of a final hour also in whose words, and who."),
    _whole("evidence_count", "Number of evidence rows that now stand behind the hour."),
    _text("evidence_hash", _EVIDENCE_HASH),
    _whole("recorded_at_us", _RECORDED),
)

PASS = _table(
    "pass",
    "One metering pass and what it covered.",
    (),
    _whole("at_us", "The time it was run for, microseconds UTC."),
    _whole("covered_from_us", "Start of the first hour it closed; equal to covered_until_us when none was new."),
    _whole("covered_until_us", "End of the last hour it closed, microseconds UTC."),
    _text("evidence_marks", "JSON object: writer to the highest number the pass had seen."),
    _whole("records_added", "Number of records inserted."),
    _whole("corrections_added", "Number of corrections booked."),
)

POLICY = _table(
    "policy",
    "An applied policy document.",
    ("version",),
    _whole("version", "1, 2, ... in order of application."),
    _whole("effective_from_us", "From when its owners hold, microseconds UTC."),
    _whole("applied_at_us", "When it was applied, microseconds UTC."),
    _text("document", "The YAML text as given."),
    _text("document_hash", "SHA-256 of the text, hex."),
)

ARCHIVE = _table(
    "archive",
    "The rows of one kind and month that left the ledger for a file.",
    ("rows_hash",),
    _whole("archived_at_us", "When they left, microseconds UTC."),
    _whole("before_us", "Hours before this are closed for good, microseconds UTC."),
    _text("month", "The UTC month in which they end, e.g. 2026-07."),
    _text("rows_of", "Their kind, the first word of their references: driver, sighting, event, hold or expected."),
    _whole("row_count", "How many rows."),
    _whole("first_us", "Earliest start of what they tell, microseconds UTC."),
    _whole("last_us", "Latest end of what they tell, microseconds UTC."),
    _text("writers", "JSON object: writer to [lowest number, highest number, rows]."),
    _text("rows_hash", "SHA-256, hex, over the rows in the order of writer and number, as a link hashes them."),
    _text("file_name", "The file inside the archive's folder."),
    _text("file_hash", "SHA-256, hex, of the file's bytes."),
    _text("folder", "Where the folder lay when it was written; it may have moved since."),
)

SEAL = _table(
    "seal",
    "The heads of all hash chains at one moment, chained to the seal before.",
    ("previous_root",),
    _whole("at_us", "When it was made, microseconds UTC."),
    _text("heads", "JSON object: writer to [last number, link hash]."),
    _text("previous_root", "Root of the seal before, or 64 zeros."),
    _text("root", "SHA-256, hex, over previous root, time and heads."),
)

LINK = sa.Table(
    "link",
    METADATA,
    _text("writer", "The hash chain, HOST.ROLE."),
    _whole("first_number", "Number of the transaction's first row."),
    _whole("last_number", "Number of the transaction's last row."),
    _whole("committed_at_us", "When the transaction was written, microseconds UTC, by the writer's clock."),
    _text("previous_hash", "Hash of the writer's link before, or 64 zeros."),
    _text("hash", "SHA-256, hex, over previous hash, this link's numbers and time, and its rows in order."),
    sa.PrimaryKeyConstraint("writer", "first_number"),
    sa.UniqueConstraint("writer", "last_number"),
    sa.UniqueConstraint("writer", "previous_hash"),
    comment="One transaction of one writer: a link of its hash chain.",
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

IDENTITY_TEXT = sa.Table(
    "identity_text",
    METADATA,
    _text("text_key", "SHA-256, hex, over the salt's bytes and json: what identities and records refer to."),
    _text("salt", "32 random hex digits of this row alone, so that a key tells nothing once the row is deleted."),
    _text("digest", "SHA-256 of json, hex, by which a text already stored is found."),
    _text(
        "json", "What was read of the process, secrets redacted: JSON object with sorted keys, empty fields left out."
    ),
    sa.PrimaryKeyConstraint("text_key"),
    sa.Index("identity_text_digest", "digest"),
    comment="What was read of a process; the one table that allows deletion, and no other change.",
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
