"""Which table keeps which row, what makes two rows the same, and what may not differ between them.

In: the row kinds of :mod:`gpuledger.model.rows` and the tables of :mod:`gpuledger.ledger.schema`. Out:
:data:`KINDS` and :data:`KIND_OF` for everything that reads or writes rows without knowing their kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from gpuledger.ledger.schema import (
    ARCHIVE,
    DEVICE_EVENT,
    DRIVER_RECORD,
    EXPECTED_END,
    HOLD,
    PASS,
    PLACEMENT,
    POLICY,
    PROCESS_IDENTITY,
    SEAL,
    SIGHTING,
    USAGE_CORRECTION,
    USAGE_RECORD,
    WATCH,
    WORKLOAD_EVENT,
)
from gpuledger.model.archive import Archive
from gpuledger.model.row_kinds import ROWS
from gpuledger.model.rows import (
    DeviceEvent,
    DriverRecord,
    Pass,
    PolicyVersion,
    ProcessIdentity,
    Row,
    Seal,
    Sighting,
    UsageCorrection,
    UsageRecord,
    Watch,
)
from gpuledger.model.workload_rows import ExpectedEnd, Hold, PlacementRow, WorkloadEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of row and its table.

    Args:
        row: the row class.
        table: its table; its columns are the row's fields, then the derived ones.
        key: natural key, as columns; empty where only (writer, number) is unique.
        figures: columns that must not differ between two rows of the same key; a difference is a conflict.
        starts, ends: the span a row covers, in microseconds UTC; equal for a moment.
        time: the column that orders rows by time.
    """

    row: type[Row]
    table: sa.Table
    key: tuple[str, ...]
    figures: tuple[str, ...]
    starts: sa.ColumnElement[int]
    ends: sa.ColumnElement[int]
    time: str


def _unique(table: sa.Table) -> tuple[str, ...]:
    for constraint in table.constraints:
        if isinstance(constraint, sa.UniqueConstraint):
            return tuple(column.name for column in constraint.columns)
    return ()


def _kind(row: type[Row], table: sa.Table, *, time: str, figures: tuple[str, ...],
          starts: sa.ColumnElement[int] | None = None, ends: sa.ColumnElement[int] | None = None) -> Kind:  # fmt: skip
    moment = table.c[time]
    return Kind(
        row=row,
        table=table,
        key=_unique(table),
        figures=figures,
        starts=moment if starts is None else starts,
        ends=moment if ends is None else ends,
        time=time,
    )


KINDS: tuple[Kind, ...] = (
    _kind(
        DeviceEvent,
        DEVICE_EVENT,
        time="at_us",
        figures=("class_name", "product", "memory_mib", "parent", "profile"),
    ),
    _kind(
        Watch,
        WATCH,
        time="since_us",
        figures=("interval_ms", "readings", "new_rows", "living"),
        starts=WATCH.c.since_us,
        ends=WATCH.c.until_us,
    ),
    _kind(
        ProcessIdentity,
        PROCESS_IDENTITY,
        time="seen_at_us",
        figures=("started_at_us", "grade", "text_key"),
        starts=sa.func.coalesce(PROCESS_IDENTITY.c.started_at_us, PROCESS_IDENTITY.c.seen_at_us),
        ends=PROCESS_IDENTITY.c.seen_at_us,
    ),
    _kind(
        DriverRecord,
        DRIVER_RECORD,
        time="ended_at_us",
        figures=("context_ms", "peak_memory_mib", "gpu_percent", "memory_percent"),
        starts=DRIVER_RECORD.c.ended_at_us - DRIVER_RECORD.c.context_ms * 1000,
        ends=DRIVER_RECORD.c.ended_at_us,
    ),
    _kind(
        Sighting,
        SIGHTING,
        time="since_us",
        figures=("context_started_at_us", "accounted", "samples", "memory_mib_ms", "memory_ms", "peak_memory_mib",
                 "busy_ms", "busy_covered_ms", "gone_at_us", "process_died"),
        starts=sa.case(
            (SIGHTING.c.context_started_at_us < SIGHTING.c.since_us, SIGHTING.c.context_started_at_us),
            else_=SIGHTING.c.since_us,
        ),
        ends=SIGHTING.c.until_us,
    ),
    _kind(
        PlacementRow,
        PLACEMENT,
        time="placement",
        figures=("class_name", "region", "machine", "pool", "devices", "count", "share_num", "share_den"),
    ),
    _kind(
        WorkloadEvent,
        WORKLOAD_EVENT,
        time="at_us",
        figures=("state", "at_us", "source", "requested_class", "placement"),
    ),
    _kind(Hold, HOLD, time="at_us", figures=("at_us", "placement", "expires_at_us")),
    _kind(ExpectedEnd, EXPECTED_END, time="at_us", figures=("until_us",)),
    _kind(UsageRecord, USAGE_RECORD, time="hour_us", figures=("quantity",)),
    _kind(UsageCorrection, USAGE_CORRECTION, time="hour_us", figures=("delta", "reason")),
    _kind(Pass, PASS, time="at_us", figures=()),
    _kind(PolicyVersion, POLICY, time="applied_at_us", figures=("effective_from_us", "document_hash")),
    _kind(Archive, ARCHIVE, time="archived_at_us", figures=("file_hash",)),
    _kind(Seal, SEAL, time="at_us", figures=("heads", "root")),
)  # fmt: skip
"""Every kind, in the order of :data:`gpuledger.model.row_kinds.ROWS`: the order in which a transaction chains them."""

KIND_OF: dict[type[Row], Kind] = {kind.row: kind for kind in KINDS}
"""The table of a row class."""

assert tuple(kind.row for kind in KINDS) == ROWS, "kinds.KINDS and model.row_kinds.ROWS must list the same kinds"
