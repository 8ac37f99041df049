"""Who holds which device from when to when, as far as anybody asked; remembered for as long as a ledger is open.

In: events and unconfirmed holds, through :mod:`gpuledger.ledger.workloads`. Out: the shares of a device that others
hold at once. What other processes wrote meanwhile is looked at first, by each writer's mark: the work of one
transition does not grow with history.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from gpuledger.ledger import workloads
from gpuledger.ledger.appending import ask_last_numbers
from gpuledger.ledger.engine import together
from gpuledger.ledger.news import News, ask_ahead, news
from gpuledger.ledger.store import Ledger
from gpuledger.metering.lifecycles import Stay, holdings
from gpuledger.model.lifecycle import Placement
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.quickly import quickly_made
from gpuledger.model.rows import Row
from gpuledger.model.workload_rows import Hold, PlacementRow, WorkloadEvent


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a share of a device.

    Args:
        workload: its id.
        share: of the device.
        since_us: from when on.
    """

    workload: str
    share: Fraction
    since_us: int


@dataclass(slots=True)
class _Device:
    """One device: who holds it with an open end, and who let it go, by when."""

    since_us: int
    open: dict[str, tuple[int, Fraction]] = field(default_factory=dict)
    ended: list[tuple[int, int, str, Fraction]] = field(default_factory=list)


class Occupancy:
    """The holders of devices.

    Args:
        ledger: open, and in the transaction that is to be judged whenever a method is called.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._devices: dict[str, _Device] = {}
        self._ended_of: dict[str, list[tuple[str, tuple[int, int, str, Fraction]]]] = {}
        self._marks: dict[str, int] | None = None
        self.news: News | None = None
        """What the last look found; None before the second."""
        self.placements: dict[str, Placement] = {}
        """Every placement met, by key: what a key stands for never changes."""
        self.stored: set[str] = set()
        """Keys of placements that stand in the ledger."""
        self._keys: dict[tuple[object, ...], str] = {}
        self._met_devices = 0
        self._on_device: dict[str, list[str]] | None = None
        """Keys of the placements in the ledger by device; None while few were asked for."""

    @property
    def marks(self) -> dict[str, int]:
        """Up to where of each writer all is known, as of the last look."""
        return self._marks or {}

    def catch_up(self) -> Collection[str]:
        """Take in what was written since the last call, by whomever. Returns the workloads that it is about."""
        connection = self._ledger.connection
        with together(connection):
            asked = ask_last_numbers(connection)
            likely = () if self.news is None else self.news.writers
            ahead = ask_ahead(connection, self._marks or {}, likely)
            marks = dict(asked)
            if self._marks is not None:
                self.news = news(connection, self._marks, marks, ahead)
        if self.news is not None and self._on_device is not None:
            self.need(self.news.placements)
        changed: Collection[str] = () if self.news is None else self.news.workloads
        if self._devices and changed:
            self._load(changed, min(device.since_us for device in self._devices.values()), self._devices)
        self._marks = marks
        return changed

    def wrote(self, writer: str, rows: Sequence[Row]) -> None:
        """What this process has just written is known, unless others of its name wrote between: then all is new."""
        if self._marks is not None and follows(self._marks, writer, rows):
            self._marks[writer] = rows[-1].number
        self._learn(row for row in rows if isinstance(row, PlacementRow))

    def key_of(self, placement: Placement) -> str:
        """The key of a placement: one that was met before is not hashed again."""
        share = placement.share
        words = (placement.devices, placement.class_name, placement.machine, placement.region, placement.pool,
                 placement.count, share.numerator, share.denominator)  # fmt: skip
        key = self._keys.get(words)
        if key is None:
            key = self._keys[words] = placement.key
        return key

    def tell(self, placements: Mapping[str, Placement]) -> None:
        """Make these placements, which a transition names, known by key, and whether they stand in the ledger."""
        self.placements.update(placements)
        if self._on_device is None:  # else all that stand there are known
            self.need(placements)

    def need(self, keys: Collection[str]) -> None:
        """Make these placements known by key, if they stand in the ledger."""
        missing = {key for key in keys if key and key not in self.stored}
        if missing:
            self._learn(workloads.placement_rows(self._ledger.connection, missing))

    def _learn(self, rows: Iterable[PlacementRow]) -> None:
        for row in rows:
            if row.placement not in self.placements:
                self.placements[row.placement] = row.read()
            if row.placement not in self.stored:
                self.stored.add(row.placement)
                if self._on_device is not None:
                    self._index(row.placement)

    def _index(self, key: str) -> None:
        assert self._on_device is not None
        for device in self.placements[key].devices:
            self._on_device.setdefault(device, []).append(key)

    def _placed_on(self, devices: Collection[str]) -> set[str]:
        """The placements in the ledger that hold one of these devices; after a few devices all are read, and known."""
        self._met_devices += len(devices)
        if self._on_device is None and self._met_devices <= workloads.FEW:
            rows = workloads.placements_on(self._ledger.connection, devices)
            self._learn(rows)
            return {row.placement for row in rows}
        if self._on_device is None:
            self._learn(workloads.every_placement(self._ledger.connection))
            self._on_device = {}
            for key in self.stored:
                self._index(key)
        known = self._on_device
        return {key for device in devices for key in known.get(device, ())}

    def watch(self, devices: Collection[str], since_us: int) -> set[str]:
        """Make sure that the holders of devices at a moment and after it are known. Returns the devices read anew."""
        fresh = {name for name in devices if name not in self._devices or self._devices[name].since_us > since_us}
        if not fresh:
            return fresh
        placed = self._placed_on(fresh)
        for name in fresh:
            self._forget(name)
            self._devices[name] = _Device(since_us)
        if placed:
            self._load(workloads.may_hold(self._ledger.connection, placed, since_us), since_us, fresh)
        return fresh

    def knows(self, device: str) -> bool:
        """Whether the holders of a device were read."""
        return device in self._devices

    def begin(self, workload: str, placement: str, since_us: int) -> None:
        """A workload holds a placement from now on, until told otherwise."""
        where = self.placements.get(placement)
        for device in where.devices if where else ():
            if device in self._devices:
                self._devices[device].open[workload] = (since_us, _share(where))

    def end(self, workload: str, placement: str, until_us: int) -> None:
        """A workload lets go of a placement."""
        where = self.placements.get(placement)
        for device in where.devices if where else ():
            known = self._devices.get(device)
            if known is not None and (stay := known.open.pop(workload, None)) is not None:
                self._add_ended(device, known, workload, stay[0], until_us, stay[1])

    def claim(self, hold: Hold) -> None:
        """A hold that nothing has confirmed yet counts until it lapses."""
        for device, known, share in self._claimed(hold):
            assert not isinstance(hold.expires_at_us, Missing)
            self._add_ended(device, known, hold.workload, hold.at_us, hold.expires_at_us, share)

    def unclaim(self, hold: Hold) -> None:
        """An unconfirmed hold counts no longer: it was confirmed, or let go."""
        for device, known, share in self._claimed(hold):
            assert not isinstance(hold.expires_at_us, Missing)
            ended = (hold.expires_at_us, hold.at_us, hold.workload, share)
            if (device, ended) in self._ended_of.get(hold.workload, ()):
                known.ended.remove(ended)
                self._ended_of[hold.workload].remove((device, ended))

    def _claimed(self, hold: Hold) -> Iterator[tuple[str, _Device, Fraction]]:
        where = self.placements.get(hold.placement)
        if hold.change == "taken" and not isinstance(hold.expires_at_us, Missing):
            for device in where.devices if where else ():
                if device in self._devices:
                    yield device, self._devices[device], _share(where)

    def replace(self, workload: str, stays: Iterable[Stay], *, on: Collection[str] | None = None) -> None:
        """All that a workload holds is this, on all devices that are known or on some of them."""
        chosen = self._devices if on is None else on
        for device, ended in list(self._ended_of.get(workload, ())):
            if device in chosen:
                self._devices[device].ended.remove(ended)
                self._ended_of[workload].remove((device, ended))
        for device in chosen:
            self._devices[device].open.pop(workload, None)
        for stay in stays:
            where = self.placements.get(stay.placement)
            for device in where.devices if where else ():
                if device not in chosen:
                    continue
                known = self._devices[device]
                if isinstance(stay.until_us, Missing):
                    known.open[workload] = (stay.since_us, _share(where))
                elif stay.until_us > known.since_us:
                    self._add_ended(device, known, workload, stay.since_us, stay.until_us, _share(where))

    def beside(self, workload: str, device: str, since_us: int, until_us: int | Missing) -> tuple[Holder, ...]:
        """Those other workloads that hold most of a device at once within a span, the longest there first."""
        known = self._devices[device]
        if not known.open and (not known.ended or known.ended[-1][0] <= since_us):
            return ()
        found: list[tuple[int, int, Holder]] = [
            (stay_since, _NEVER, Holder(workload=name, share=share, since_us=stay_since))
            for name, (stay_since, share) in known.open.items()
            if name != workload and _before(stay_since, until_us)
        ]
        found += [
            (stay_since, stay_until, Holder(workload=name, share=share, since_us=stay_since))
            for stay_until, stay_since, name, share in known.ended[bisect_right(known.ended, (since_us, _NEVER)) :]
            if name != workload and stay_until > since_us and _before(stay_since, until_us)
        ]
        if not found:
            return ()
        worst: tuple[Holder, ...] = ()
        for moment in {max(begin, since_us) for begin, _, _ in found}:
            at_once = tuple(who for begin, end, who in found if begin <= moment < end)
            worst = max(worst, at_once, key=lambda holders: sum(holder.share for holder in holders))
        return tuple(sorted(worst, key=lambda holder: (holder.since_us, holder.workload)))

    def _load(self, names: Collection[str], since_us: int, devices: Collection[str]) -> None:
        if not names:
            return
        connection = self._ledger.connection
        found = workloads.events_since_begin(connection, dict.fromkeys(names, since_us))
        holds = workloads.claims(connection, names)
        self.need({event.placement for events in found.values() for event in events})
        self.need({hold.placement for hold in holds.values()})
        for name in names:
            self.replace(name, stays_of(found.get(name, ()), holds.get(name)), on=devices)

    def _add_ended(
        self, device: str, known: _Device, workload: str, since_us: int, until_us: int, share: Fraction
    ) -> None:
        if until_us > since_us:
            ended = (until_us, since_us, workload, share)
            insort(known.ended, ended)
            self._ended_of.setdefault(workload, []).append((device, ended))

    def _forget(self, device: str) -> None:
        known = self._devices.pop(device, None)
        for ended in known.ended if known else ():
            self._ended_of[ended[2]].remove((device, ended))


def follows(marks: Mapping[str, int], writer: str, rows: Sequence[Row]) -> bool:
    """Whether rows of a writer are the next ones after its mark: several processes may write to one chain."""
    return rows[0].number == marks.get(writer, 0) + 1


_NEVER = 1 << 63
_SHOWN = 3
"""Later than any moment."""


def stays_of(events: Iterable[WorkloadEvent], claim: Hold | None) -> list[Stay]:
    """What a workload holds by its events, and by an unconfirmed hold."""
    found = holdings(events)
    if claim is not None and claim.change == "taken" and not isinstance(claim.expires_at_us, Missing):
        found.append(Stay(since_us=claim.at_us, until_us=claim.expires_at_us, placement=claim.placement))
    return found


def _share(where: Placement | None) -> Fraction:
    assert where is not None
    share = where.share
    return share if type(share) is Fraction else Fraction(share)


def _before(since_us: int, until_us: int | Missing) -> bool:
    return isinstance(until_us, Missing) or since_us < until_us


def listed(holders: Sequence[Holder]) -> str:
    """Some of them in words."""
    shown = ", ".join(f"{each.workload} ({each.share}, since {iso(each.since_us)})" for each in holders[:_SHOWN])
    return f"{shown} and {len(holders) - _SHOWN} more" if len(holders) > _SHOWN else shown
