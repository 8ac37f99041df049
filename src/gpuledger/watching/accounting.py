"""The driver's accounting list, look after look: which finished rows are new, and what was lost.

The driver keeps the last 128 finished rows of a GPU and one row a pid; a second stint of a pid frees
its older row (NVIDIA open kernel modules, ``gpu_acct.c``, 515 to 595). So a list in which no row known
from the last look survives means one of two things: the ring went round (it is full), or the driver
was reloaded (it is not).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuledger.model.missing import Missing
from gpuledger.model.readings import DeviceReading, FinishedRow, Reading
from gpuledger.model.reasons import UnknownReason
from gpuledger.model.rows import DriverRecord

RING_ROWS = 128
"""Finished rows that the driver keeps for each GPU, whatever "buffer size 4000" suggests."""

_Key = tuple[int, int | str]


def row_key(row: FinishedRow) -> _Key:
    """What makes a finished row itself within one load of the driver: pid and start, or pid and content."""
    if isinstance(row.started_at_us, Missing):
        return (row.pid, ":".join(row.content))
    return (row.pid, row.started_at_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLook:
    """What one look at one device's accounting list says.

    Args:
        status: ``ok``, or why the list says nothing now: an ``UnknownReason``.
        loss: what was lost since the look before, an ``UnknownReason``; empty when nothing was.
        fresh: finished rows not known from the look before.
        detail: a sentence for the journal, or empty.
    """

    status: str
    loss: str
    fresh: tuple[FinishedRow, ...]
    detail: str = ""


@dataclass(slots=True)
class AccountingList:
    """What is remembered of one device's list: the rows of the last look, and its mode.

    Args:
        known: keys of the finished rows at the last look (after a restart: the last ones written).
        mode: ``enabled``, ``disabled``, ``unsupported`` or ``unknown`` at the last look; empty before.
    """

    known: set[_Key] = field(default_factory=set)
    mode: str = ""
    _finished: tuple[FinishedRow, ...] | None = None

    def look(self, device: DeviceReading) -> ListLook:
        """Compare a reading with the last one and remember it."""
        if device.finished is self._finished and device.accounting == self.mode:
            return ListLook(status=device_status(device), loss="", fresh=())  # the source's own word for: unchanged
        present = {row_key(row) for row in device.finished}
        fresh = tuple(row for row in device.finished if row_key(row) not in self.known)
        loss, detail = self._loss(device, len(fresh), lost_all=bool(self.known) and not (self.known & present))
        self.known = present
        self.mode = device.accounting
        self._finished = device.finished
        return ListLook(status=device_status(device), loss=loss, fresh=fresh, detail=detail)

    def unknown_pids(self, device: DeviceReading) -> set[int]:
        """Pids of finished rows that were not known at the last look; one of them may have an older row that was."""
        if device.finished is self._finished:
            return set()
        return {row.pid for row in device.finished if row_key(row) not in self.known}

    def has(self, pid: int, started_us: int | Missing) -> bool:
        """Whether the context of a pid with this start has its finished row in the list."""
        return not isinstance(started_us, Missing) and (pid, started_us) in self.known

    def _loss(self, device: DeviceReading, fresh: int, *, lost_all: bool) -> tuple[str, str]:
        # rows that were pushed out between the list and their own reading were listed all the same
        full = len(device.finished) >= RING_ROWS or (
            not isinstance(device.listed, Missing) and device.listed >= RING_ROWS
        )
        if (fresh >= RING_ROWS and self.mode) or (lost_all and full):
            return (
                UnknownReason.RING_OVERFLOW,
                f"{fresh} new finished rows in one look: the ring of {RING_ROWS} lost the oldest",
            )
        if self.mode == "enabled" and device.accounting == "disabled":
            return UnknownReason.ACCOUNTING_RESET, "accounting was found off after it was on: the driver was reloaded"
        if lost_all and not self._freed_by_second_stint(device):
            return UnknownReason.ACCOUNTING_RESET, "every known row vanished: the driver was reloaded"
        return "", ""

    def _freed_by_second_stint(self, device: DeviceReading) -> bool:
        """Whether each vanished row is explained by its own pid being back."""
        back: set[int] = {row.pid for row in device.finished} | pids(device)
        return all(pid in back for pid, _ in self.known)


def device_status(device: DeviceReading) -> str:
    """``ok``, or why a device's accounting list says nothing at this look: an ``UnknownReason``."""
    if device.accounting == "unsupported":
        return UnknownReason.ACCOUNTING_UNSUPPORTED
    if device.accounting == "disabled":
        return UnknownReason.ACCOUNTING_DISABLED
    if isinstance(device.listed, Missing):
        return UnknownReason.ACCOUNTING_UNREAD
    return "ok" if device.listed or device.finished else UnknownReason.EMPTY_LEDGER


def pids(device: DeviceReading) -> set[int]:
    """Pids of the contexts alive on a device."""
    return {context.pid for context in device.living}


def remembered(rows: Iterable[FinishedRow]) -> set[_Key]:
    """The keys of rows read back from a ledger after a restart."""
    return {row_key(row) for row in rows}


def driver_record(
    row: FinishedRow, *, host: str, device: str, reading: Reading, at_us: int, driver_epoch: str
) -> DriverRecord:
    """The ledger's row of a finished row. The driver's load only matters where there is no start time."""
    return DriverRecord(
        host=host,
        device=device,
        pid=row.pid,
        started_at_us=row.started_at_us,
        context_ms=row.context_ms,
        peak_memory_mib=row.peak_memory_mib,
        gpu_percent=row.gpu_percent,
        memory_percent=row.memory_percent,
        read_at_us=at_us,
        method=reading.method,
        driver_epoch=driver_epoch if isinstance(row.started_at_us, Missing) else "",
    )
