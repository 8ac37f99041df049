"""What a controller says of its clock: how far it is ahead of the ledger's, and from when on that is a skew.

The offset is kept as a watch row of the controller: what its clock read, less what the ledger's read at that moment.
"""

from __future__ import annotations

import json

from gpuledger.model.durations import duration_us
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.model.reasons import ReservedReason
from gpuledger.model.rows import Watch

CLOCK = "clock"
"""The method of a watch row that tells of a controller's clock."""


def clock_row(source: str, *, at_us: int, clock_us: int) -> Watch:
    """What a controller's clock read at a moment, as a row.

    Args:
        source: the controller's name.
        at_us: the ledger's own time, microseconds UTC.
        clock_us: what the controller's clock read then.
    """
    offset_us = clock_us - at_us
    return Watch(
        host=source, device="", source="controller", method=CLOCK, interval_ms=0, since_us=at_us, until_us=at_us,
        status=ReservedReason.CLOCK_SKEW if abs(offset_us) > CLOCK_TOLERANCE_US else "ok", readings=0,
        detail=json.dumps({"offset_us": offset_us}),
    )  # fmt: skip


def offset_us(row: Watch) -> int:
    """How far the controller's clock was ahead, microseconds; negative where it was behind."""
    return int(json.loads(row.detail)["offset_us"])


def words(offset: int) -> str:
    """For people: ``7 s ahead``, ``3 s behind``."""
    return f"{duration_us(abs(offset))} {'behind' if offset < 0 else 'ahead'}"
