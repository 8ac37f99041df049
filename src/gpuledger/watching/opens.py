"""Who opened which device, look after look, and what that proves. An open by itself is no use.

In: what a watcher tells of opens, and what the driver lists. Out: whether a device was idle or its list lost
rows, sightings of contexts whose rows the driver is known to have lost, and spans of which that is not known.
``nvidia-smi`` and this agent open the nodes too; watchers leave such opens out.

Each program of a process can hold a device anew: an exec closes what its program had open. The driver keeps
one finished row a pid, so the row of a later holding frees that of an earlier one. Of a holding that no look
saw, that left no row, and that was followed by one that did:

1. a look read the list between the two, without a row: there was none, so it only had the device open;
2. an earlier holding of the same process is known to have been a context: it is booked from open to exec;
3. else it may have been a context or a mere open: its time is ``row-freed``, and no amount.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US, MINUTE_US
from gpuledger.model.readings import DeviceReading, FinishedRow, LivingContext, NamesLook
from gpuledger.model.reasons import IDLE, IDLE_MEANING, UnknownReason
from gpuledger.model.rows import Sighting
from gpuledger.watching.accounting import ListLook
from gpuledger.watching.holding import STAMP_US, Holding, Process, maker, where

LOOKS_TO_SETTLE = 2
"""The kernel tells an exit before the process's files are closed, and the driver settles at the last close: a row
can be one look late."""

KEPT_UNREAD_US = 10 * MINUTE_US
"""Ended openers of a device that is not read are kept so long: it may be left out of a look or two, or not be ours."""

MOST_USERS = 4096
"""Processes known to have used a device, remembered at most."""

_READ = ("ok", UnknownReason.EMPTY_LEDGER)
_UNSAMPLED = Missing("seen by events, not by a look")
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a look at a device's list says once the opens are known.

    Args:
        status, loss, detail: as in a :class:`ListLook`; the status can also be ``idle``.
        sightings: contexts from open to exit, or exec, of those whose rows are lost.
        freed: spans in which the device was held, and it is not known whether a row was lost: since, until, a sentence.
    """

    status: str
    loss: str
    detail: str
    sightings: tuple[Sighting, ...]
    freed: tuple[tuple[int, int, str], ...] = ()


class Opens:
    """What is remembered of openers until it is decided what they did.

    Args:
        host, boot_id: as in a :class:`Sighting`.
    """

    def __init__(self, *, host: str, boot_id: str) -> None:
        self._host = host
        self._boot_id = boot_id
        self._openers: dict[int, dict[tuple[int, int, int], Holding]] = {}
        self._users: dict[tuple[int, int, int], int] = {}
        self._execs: dict[tuple[int, int, int], list[int]] = {}
        self._taken_us = 0
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
        # an exec that was read after the driver belongs to what the next look finds
        kept = {key: [one for one in execs if one >= self._taken_us] for key, execs in self._execs.items()}
        self._execs = {key: execs for key, execs in kept.items() if execs}
        self._taken_us = at_us
        for told in names.opened:
            if told.minor in known:
                touched.add((told.pid, told.start_ticks))
            exited_us = None if isinstance(told.exited_at_us, Missing) else told.exited_at_us
            if exited_us is not None and told.became:
                self._execs.setdefault((told.minor, told.pid, told.start_ticks), []).append(exited_us)
            openers = self._openers.setdefault(told.minor, {})
            key = (told.pid, told.start_ticks, told.number)
            opener = openers.get(key)
            if opener is None:
                openers[key] = Holding(
                    number=told.number, opened_us=told.opened_at_us, exited_us=exited_us, is_found=told.is_found,
                    became=told.became,
                )  # fmt: skip
            else:
                opener.exited_us, opener.became = exited_us, told.became
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
        """When the first context of a program can have begun, by its first open; None where no event said, or later.

        Asked once a context: between two contexts of one program its device may be open and unused.
        """
        mine = [one for (of, ticks, _), one in self._of(device).items() if (of, ticks) == (pid, start_ticks)]
        opener = next((one for one in mine if one.exited_us is None), mine[-1] if mine else None)
        if opener is None or opener.begun:
            return None
        opener.begun = True
        return opener.opened_us

    def lets_go(self, device: str, pid: int, start_ticks: int, *, since_us: int, until_us: int) -> int | None:
        """The exec by which a process first let go of a device between two looks; None where none was."""
        execs = self._execs.get((self._minors.get(device, -1), pid, start_ticks), ())
        return min((at_us for at_us in execs if since_us <= at_us <= until_us), default=None)

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
        self._list(device, found.fresh, at_us, is_read=found.status in _READ and not loss)
        sightings, freed = self._settle(device.uuid, lost_since_us, at_us, names.method)
        (self._living.add if living else self._living.discard)(device.uuid)
        return Verdict(status=status, loss=loss, detail=detail, sightings=tuple(sightings), freed=tuple(freed))

    def _of(self, device: str) -> dict[tuple[int, int, int], Holding]:
        return self._openers.get(self._minors.get(device, -1), {})

    def _idle(self, device: str, since_us: int) -> tuple[str, str]:
        """An empty list, no event lost, no driver let go: idle, unless somebody had the device open."""
        pids = sorted({pid for (pid, _, _), opener in self._of(device).items() if opener.held_since(since_us)})
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
        for (pid, _, _), opener in self._of(device.uuid).items():
            if not opener.held_since(since_us - CLOCK_TOLERANCE_US) or (opener.exited_us is None and pid in living):
                continue
            row = rows.pop(pid, None)
            if row is None or not opener.can_have_made(row):
                return False
        return not rows

    def _list(self, device: DeviceReading, fresh: Iterable[FinishedRow], at_us: int, *, is_read: bool) -> None:
        """Note whose contexts the driver lists, alive or finished, and whose it would list and does not."""
        openers = self._of(device.uuid)
        if not openers:
            return
        by_pid: dict[int, list[Holding]] = {}
        for (pid, _, _), opener in openers.items():
            by_pid.setdefault(pid, []).append(opener)
        for context in device.living:
            if (alive := _alive(by_pid.get(context.pid, ()), context, at_us)) is not None:
                alive.listed = True
        rows: dict[int, list[int]] = {}
        for row in fresh:
            started_us = row.started_at_us
            if isinstance(started_us, Missing):
                for opener in by_pid.get(row.pid, ()):
                    opener.listed = True
                continue
            rows.setdefault(row.pid, []).append(started_us)
            if (made := maker(by_pid.get(row.pid, ()), started_us)) is not None:
                made.listed = True
        for (pid, ticks, _), opener in openers.items():
            if opener.listed:
                process = (self._minors[device.uuid], pid, ticks)
                self._users[process] = min(opener.number, self._users.get(process, opener.number))
        for pid, mine in by_pid.items():
            if len(mine) > 1 or pid in rows:
                _follow(sorted(mine, key=where), rows.get(pid, ()), at_us, is_read=is_read)
        while len(self._users) > MOST_USERS:
            del self._users[next(iter(self._users))]

    def _settle(
        self, device: str, lost_since_us: int | None, at_us: int, method: str
    ) -> tuple[list[Sighting], list[tuple[int, int, str]]]:
        """Let go of holdings of which it is decided what they were.

        Returns:
            The contexts of those whose rows are lost; and where a row may have been lost.
        """
        found: list[Sighting] = []
        freed: list[tuple[int, int, int]] = []
        openers = self._of(device)
        for key, opener in list(openers.items()):
            pid, ticks, number = key
            if opener.exited_us is None:
                continue
            opener.looks += 1
            opener.lost |= lost_since_us is not None and opener.exited_us >= lost_since_us - CLOCK_TOLERANCE_US
            if opener.listed:
                del openers[key]
            elif (opener.became and opener.followed) or (
                opener.looks >= LOOKS_TO_SETTLE and abs(at_us - opener.exited_us) >= CLOCK_TOLERANCE_US
            ):  # no row comes late of what has been followed in the same process
                del openers[key]
                is_user = self._users.get((self._minors[device], pid, ticks), number) < number
                # a second stint of a pid frees its older row (gpu_acct.c)
                is_freed = opener.followed and (not opener.became or is_user)
                if opener.lost or is_freed:
                    found.append(self._sighting(device, (pid, ticks), opener, method))
                elif opener.followed:
                    freed.append((min(opener.opened_us, opener.exited_us), opener.exited_us, pid))
        return found, _together(freed)

    def _sighting(self, device: str, process: Process, opener: Holding, method: str) -> Sighting:
        ended_us = opener.opened_us if opener.exited_us is None else opener.exited_us
        return Sighting(
            host=self._host,
            device=device,
            pid=process[0],
            boot_id=self._boot_id,
            start_ticks=process[1],
            context_started_at_us=Missing("the driver lost its row"),
            since_us=min(opener.opened_us, ended_us),
            until_us=ended_us,
            accounted="unknown",
            samples=0,
            peak_memory_mib=_UNSAMPLED,
            gone_at_us=ended_us,
            process_died=int(not opener.became),
            method=method,
        )


def _alive(openers: Iterable[Holding], context: LivingContext, at_us: int) -> Holding | None:
    """The holding of a context that a look saw alive, of those of its pid."""
    ordered = sorted(openers, key=where)
    if not isinstance(context.started_at_us, Missing):
        return maker(ordered, context.started_at_us)
    # events are read after the driver: the first that had not ended when it was read is the one that was seen
    return next((one for one in ordered if one.held_since(at_us)), None)


def _follow(openers: Sequence[Holding], rows: Iterable[int], at_us: int, *, is_read: bool) -> None:
    """Whether holdings that left no row were followed, on their pid, by a context that freed it.

    Args:
        openers: of one pid, in order.
        rows: starts of the new rows of that pid.
        is_read: the list was read, and told what it holds.
    """
    last_us = max(rows, default=None)
    for place, opener in enumerate(openers):
        if opener.exited_us is None or opener.listed or opener.cleared:
            continue
        if last_us is not None and last_us >= opener.exited_us - STAMP_US:
            opener.followed = True
        elif is_read and any(at_us >= later.opened_us for later in openers[place + 1 :]) and not opener.followed:
            opener.cleared = True  # its close came before the next open, so its row would be there


def _together(spans: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, str]]:
    """Spans that touch as one, each with who held the device."""
    joined: list[tuple[int, int, list[int]]] = []
    for since_us, until_us, pid in sorted(spans):
        if joined and since_us <= joined[-1][1] + CLOCK_TOLERANCE_US:
            low, high, pids = joined[-1]
            joined[-1] = (low, max(high, until_us), [*pids, pid])
        else:
            joined.append((since_us, until_us, [pid]))
    return [(low, high, _told(pids)) for low, high, pids in joined]


def _told(pids: Sequence[int]) -> str:
    each = sorted(set(pids))
    more = f" and {len(each) - _SHOWN} more" if len(each) > _SHOWN else ""
    shown = ", ".join(str(pid) for pid in each[:_SHOWN])
    times = "once" if len(pids) == 1 else f"{len(pids)} times"
    return f"pid {shown}{more} let go of the device {times} by exec and held it anew before its row could be read"
