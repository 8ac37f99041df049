"""Who opened which device, look after look, and what that proves. An open by itself is no use.

In: what a watcher tells of opens, and what the driver lists. Out: whether a device was idle or its list lost
rows, and sightings of contexts whose rows the driver is known to have lost. ``nvidia-smi`` and this agent
open the nodes too; watchers leave such opens out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gpuledger.model.missing import Missing
from gpuledger.model.moments import MINUTE_US
from gpuledger.model.readings import DeviceReading, FinishedRow, NamesLook
from gpuledger.model.reasons import IDLE, IDLE_MEANING, UnknownReason
from gpuledger.model.rows import Sighting
from gpuledger.watching.accounting import ListLook
from gpuledger.watching.contexts import START_TOLERANCE_US

LOOKS_TO_SETTLE = 2
"""The kernel tells an exit before the process's files are closed, and the driver settles at the last close: a row
can be one look late."""

KEPT_UNREAD_US = 10 * MINUTE_US
"""Ended openers of a device that is not read are kept so long: it may be left out of a look or two, or not be ours."""

_UNSAMPLED = Missing("seen by events, not by a look")
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a look at a device's list says once the opens are known.

    Args:
        status, loss, detail: as in a :class:`ListLook`; the status can also be ``idle``.
        sightings: contexts from open to exit of those whose rows are lost.
    """

    status: str
    loss: str
    detail: str
    sightings: tuple[Sighting, ...]


@dataclass(slots=True, kw_only=True)
class _Opener:
    """One process that opened a device.

    Args:
        opened_us, exited_us: first open, or when it was found holding it, and exit; None while it lives.
        is_found: it was found holding the device: it opened it earlier.
        begun: its first context was dated by its open; a later one is not.
        listed: the driver has listed a context of it, alive or finished.
        lost: the driver is known to have lost rows when this one's would have been written.
        looks: looks since its exit.
    """

    opened_us: int
    exited_us: int | None
    is_found: bool
    begun: bool = False
    listed: bool = False
    lost: bool = False
    looks: int = 0

    def can_have_made(self, row: FinishedRow) -> bool:
        """Whether a finished row of its pid is a context of it."""
        if isinstance(row.started_at_us, Missing):
            return True
        ended_us = row.started_at_us if self.exited_us is None else self.exited_us
        is_late_enough = self.is_found or self.opened_us - START_TOLERANCE_US <= row.started_at_us
        return is_late_enough and row.started_at_us <= ended_us + START_TOLERANCE_US

    def held_since(self, at_us: int) -> bool:
        """Whether it can have had the device open at that moment or later."""
        return self.exited_us is None or self.exited_us >= at_us


class Opens:
    """What is remembered of openers until it is decided what they did.

    Args:
        host, boot_id: as in a :class:`Sighting`.
    """

    def __init__(self, *, host: str, boot_id: str) -> None:
        self._host = host
        self._boot_id = boot_id
        self._openers: dict[int, dict[tuple[int, int], _Opener]] = {}
        self._minors: dict[str, int] = {}
        self._living: set[str] = set()

    def take(self, names: NamesLook, devices: Iterable[DeviceReading], *, at_us: int) -> set[tuple[int, int]]:
        """Remember what a look of the watcher told.

        Returns:
            (pid, start_ticks) of the processes that opened a device that is, or was once, read.
        """
        read = {device.uuid: device.minor for device in devices if not isinstance(device.minor, Missing)}
        self._minors |= read
        known = set(self._minors.values())
        touched: set[tuple[int, int]] = set()
        for told in names.opened:
            process = (told.pid, told.start_ticks)
            if told.minor in known:
                touched.add(process)
            exited_us = None if isinstance(told.exited_at_us, Missing) else told.exited_at_us
            openers = self._openers.setdefault(told.minor, {})
            opener = openers.get(process)
            if opener is None:
                openers[process] = _Opener(opened_us=told.opened_at_us, exited_us=exited_us, is_found=told.is_found)
            else:
                opener.exited_us = exited_us
        for minor in self._openers.keys() - set(read.values()):
            openers = self._openers[minor]
            for process, opener in list(openers.items()):
                if opener.exited_us is not None and abs(at_us - opener.exited_us) > KEPT_UNREAD_US:
                    del openers[process]
        return touched

    def step(self, at_us: int) -> None:
        """The wall clock was set: what was opened before counts from there."""
        for openers in self._openers.values():
            for opener in openers.values():
                if opener.exited_us is None:
                    opener.opened_us, opener.is_found = at_us, True

    def begins(self, device: str, pid: int, start_ticks: int) -> int | None:
        """When the first context of a process can have begun, by its first open; None where no event said, or later.

        Asked once a context: between two contexts of one process its device may be open and unused.
        """
        opener = self._of(device).get((pid, start_ticks))
        if opener is None or opener.begun:
            return None
        opener.begun = True
        return opener.opened_us

    def judge(
        self,
        device: DeviceReading,
        found: ListLook,
        names: NamesLook,
        *,
        since_us: int | None,
        before: str,
        is_same_load: bool,
        at_us: int,
        last_look_us: int | None = None,
    ) -> Verdict:
        """One look at a device's lists.

        Args:
            found: what its accounting list says by itself.
            names: what the watcher tells; its opens were taken.
            since_us: the look before, where watching went on from there; None where it did not.
            before: the status at that look.
            is_same_load: the driver was not let go in between.
            last_look_us: the look before, however long ago: a list that went round lost rows since then.

        Returns:
            The verdict. Who left no row although none was lost has opened the device and not used it.
        """
        status, loss, detail = found.status, found.loss, found.detail
        living = {context.pid for context in device.living}
        sees_all = names.sees_opens and not names.lost and not isinstance(device.minor, Missing)
        from_us = at_us if since_us is None else since_us
        overflowed = loss == UnknownReason.RING_OVERFLOW
        if overflowed and sees_all and since_us is not None and self._disproves(device, found.fresh, living, since_us):
            loss, detail = "", f"{len(found.fresh)} new rows in one look, and events tell of no other"
        is_empty = status == UnknownReason.EMPTY_LEDGER and not loss and not living and device.uuid not in self._living
        is_unbroken = since_us is not None and is_same_load and before in (UnknownReason.EMPTY_LEDGER, IDLE)
        if is_empty and is_unbroken and sees_all:
            status, detail = self._idle(device.uuid, from_us)
        is_round = loss == UnknownReason.RING_OVERFLOW
        lost_since_us = (from_us if last_look_us is None else last_look_us) if is_round else None
        sightings = self._settle(device.uuid, found.fresh, living, lost_since_us, at_us, names.method)
        (self._living.add if living else self._living.discard)(device.uuid)
        return Verdict(status=status, loss=loss, detail=detail, sightings=tuple(sightings))

    def _of(self, device: str) -> dict[tuple[int, int], _Opener]:
        return self._openers.get(self._minors.get(device, -1), {})

    def _idle(self, device: str, since_us: int) -> tuple[str, str]:
        """An empty list, no event lost, no driver let go: idle, unless somebody had the device open."""
        pids = sorted(pid for (pid, _), opener in self._of(device).items() if opener.held_since(since_us))
        if not pids:
            return IDLE, f"proven idle: {IDLE_MEANING}"
        shown = ", ".join(str(pid) for pid in pids[:_SHOWN])
        more = f" and {len(pids) - _SHOWN} more" if len(pids) > _SHOWN else ""
        return UnknownReason.EMPTY_LEDGER, f"opened by pid {shown}{more}, of which the driver lists nothing"

    def _disproves(
        self, device: DeviceReading, fresh: Collection[FinishedRow], living: Collection[int], since_us: int
    ) -> bool:
        """Whether everyone who had the device open since then is alive on it or has a new row: then none is missing."""
        rows = {row.pid: row for row in fresh}
        if len(rows) < len(fresh):
            return False
        for (pid, _), opener in self._of(device.uuid).items():
            if not opener.held_since(since_us - START_TOLERANCE_US) or (opener.exited_us is None and pid in living):
                continue
            row = rows.pop(pid, None)
            if row is None or not opener.can_have_made(row):
                return False
        return not rows

    def _settle(
        self,
        device: str,
        fresh: Iterable[FinishedRow],
        living: Collection[int],
        lost_since_us: int | None,
        at_us: int,
        method: str,
    ) -> list[Sighting]:
        """Let go of openers of whom it is decided what they did; the contexts of those whose rows are lost."""
        rows: dict[int, list[FinishedRow]] = {}
        for row in fresh:
            rows.setdefault(row.pid, []).append(row)
        found: list[Sighting] = []
        openers = self._of(device)
        for process, opener in list(openers.items()):
            pid = process[0]
            own = rows.get(pid, ())
            if opener.exited_us is None:
                opener.listed |= pid in living or any(opener.can_have_made(row) for row in own)
                continue
            opener.listed |= any(opener.can_have_made(row) for row in own)
            opener.looks += 1
            in_loss = lost_since_us is not None and opener.exited_us >= lost_since_us - START_TOLERANCE_US
            # a second stint of a pid frees its older row (gpu_acct.c)
            freed = any(_began_after(row, opener.exited_us + START_TOLERANCE_US) for row in own)
            opener.lost |= in_loss or freed
            if opener.listed:
                del openers[process]
            elif opener.looks >= LOOKS_TO_SETTLE and abs(at_us - opener.exited_us) >= START_TOLERANCE_US:
                del openers[process]
                if opener.lost:
                    found.append(self._sighting(device, process, opener.opened_us, opener.exited_us, method))
        return found

    def _sighting(self, device: str, process: tuple[int, int], opened_us: int, exited_us: int, method: str) -> Sighting:
        return Sighting(
            host=self._host,
            device=device,
            pid=process[0],
            boot_id=self._boot_id,
            start_ticks=process[1],
            context_started_at_us=Missing("the driver lost its row"),
            since_us=min(opened_us, exited_us),
            until_us=exited_us,
            accounted="unknown",
            samples=0,
            peak_memory_mib=_UNSAMPLED,
            gone_at_us=exited_us,
            process_died=1,
            method=method,
        )


def _began_after(row: FinishedRow, at_us: int) -> bool:
    return not isinstance(row.started_at_us, Missing) and row.started_at_us > at_us
