"""What a starting agent reads back of the run before: devices, the driver's list, open contexts, last looks."""

from __future__ import annotations

from collections.abc import Mapping

from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US
from gpuledger.model.readings import FinishedRow
from gpuledger.model.reasons import IDLE, UnknownReason
from gpuledger.model.rows import DeviceEvent, DriverRecord, Sighting, Watch
from gpuledger.watching.accounting import RING_ROWS, AccountingList, remembered
from gpuledger.watching.contexts import LiveContext
from gpuledger.watching.memory import Memory

_MODES = {
    "ok": "enabled",
    IDLE: "enabled",
    UnknownReason.EMPTY_LEDGER: "enabled",
    UnknownReason.RING_OVERFLOW: "enabled",
    UnknownReason.ACCOUNTING_DISABLED: "disabled",
    UnknownReason.ACCOUNTING_UNSUPPORTED: "unsupported",
}


def recall(ledger: Ledger, *, host: str, now_us: int) -> Memory:
    """The memory of an observer on ``host`` as of ``now_us``. Imports of dumps are no looks of this agent."""
    memory = Memory()
    for event in ledger.scan(DeviceEvent, hosts=[host], order="time"):
        if event.method != "import":
            memory.devices[event.device] = event
    watches = [
        row
        for row in ledger.scan(Watch, hosts=[host], order="time", descending=True, limit=_recent_rows(memory))
        if row.method not in ("import", "clock") and row.until_us <= now_us
    ]
    for watch in watches:
        if watch.readings:
            key = (watch.source, watch.device)
            memory.looked_us[key] = max(watch.until_us, memory.looked_us.get(key, 0))
    for device in memory.devices.values():
        if not device.parent:
            memory.lists[device.device] = _list(ledger, host, device.device, watches)
    looked_us = max(memory.looked_us.values(), default=None)
    if looked_us is not None:
        memory.contexts = _open_contexts(ledger, host, looked_us, memory.lists)
    return memory


def _recent_rows(memory: Memory) -> int:
    return 50 * (len(memory.devices) + 1)


def _list(ledger: Ledger, host: str, device: str, watches: list[Watch]) -> AccountingList:
    """The rows that the driver may still list: the newest 128 read since accounting was last known to be lost."""
    own = [row for row in watches if row.device == device and row.source == "driver"]
    lost_us = max((row.until_us for row in own if row.status == UnknownReason.ACCOUNTING_RESET), default=0)
    mode = next((_MODES[row.status] for row in own if row.status in _MODES), "")
    newest = ledger.scan(DriverRecord, hosts=[host], devices=[device], descending=True, limit=RING_ROWS)
    rows = [
        FinishedRow(
            pid=row.pid,
            started_at_us=row.started_at_us,
            context_ms=row.context_ms,
            peak_memory_mib=row.peak_memory_mib,
            gpu_percent=row.gpu_percent,
            memory_percent=row.memory_percent,
        )
        for row in newest
        if row.method != "import" and row.read_at_us >= lost_us
    ]
    return AccountingList(known=remembered(rows), mode=mode)


def _open_contexts(
    ledger: Ledger, host: str, looked_us: int, lists: Mapping[str, AccountingList]
) -> dict[tuple[str, int], LiveContext]:
    latest: dict[tuple[str, int], Sighting] = {}
    # an agent that was killed wrote its contexts at once and its watch not yet: no upper bound
    rows = ledger.scan(Sighting, hosts=[host], since_us=looked_us - DAY_US, order="time")
    for row in rows:
        if row.method != "import":
            latest[row.device, row.pid] = row
    return {
        key: LiveContext(
            device=row.device,
            pid=row.pid,
            boot_id=row.boot_id,
            start_ticks=row.start_ticks,
            started_at_us=row.context_started_at_us,
            seen_from_us=row.since_us,
            since_us=row.until_us,
            last_look_us=row.until_us,
            accounted=row.accounted,
            absent_readings=_absent_readings(row, lists.get(row.device)),
        )
        for key, row in latest.items()
        if isinstance(row.gone_at_us, Missing)
    }


def _absent_readings(row: Sighting, found: AccountingList | None) -> int:
    """Looks in a row that did not find the context in the accounting list; two make it ``never-accounted``.

    A list that was read and said nothing of it is one: else an agent that looks once a run would never get to two.
    """
    if row.accounted == "no":
        return 2
    return int(row.accounted == "unknown" and found is not None and found.mode == "enabled")
