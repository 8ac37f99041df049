"""Every kind of row there is, in the order of the river: the explicit list."""

from __future__ import annotations

from gpuledger.model.archive import Archive
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

EVIDENCE: tuple[type[Row], ...] = (
    DeviceEvent,
    Watch,
    ProcessIdentity,
    DriverRecord,
    Sighting,
    PlacementRow,
    WorkloadEvent,
    Hold,
    ExpectedEnd,
)
"""What sources write, in the order of the river."""

ROWS: tuple[type[Row], ...] = (*EVIDENCE, UsageRecord, UsageCorrection, Pass, PolicyVersion, Archive, Seal)
"""Every kind of row, in the order in which one transaction chains them."""
