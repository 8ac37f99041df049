"""Who holds a device now: processes to rows, by service or otherwise, sorted. Pure.

In: one look and how to arrange it. Out: the rows of ``top``. The unnamed are rows of their own, after the
named whatever they are sorted by, and never spread over them; what is not known is sorted last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuledger.model.holders import (
    Arrangement,
    Figure,
    Grouping,
    HeldDevice,
    HoldersLook,
    HoldersReport,
    HoldersRow,
    Holding,
    Order,
)
from gpuledger.model.missing import Missing
from gpuledger.model.reasons import UNATTRIBUTED

_NOTHING_HELD = Missing("nobody holds it")


def arrange(look: HoldersLook, arrangement: Arrangement) -> HoldersReport:
    """The rows of one look."""
    devices = {device.uuid: device for device in look.devices}
    if arrangement.by is Grouping.DEVICE:
        rows, unnamed = _by_device(look.holdings, devices), []
    else:
        rows = _grouped((one for one in look.holdings if not one.cause), arrangement.by, devices)
        unnamed = _grouped((one for one in look.holdings if one.cause), arrangement.by, devices)
    without = [one for one in look.holdings if one.cause]
    return HoldersReport(
        look=look,
        arrangement=arrangement,
        rows=_sorted(rows, arrangement),
        unnamed=_sorted(unnamed, arrangement),
        contexts=len(look.holdings),
        unnamed_contexts=len(without),
        memory=_sum([one.memory_mib for one in look.holdings], empty=0),
        unnamed_memory=_sum([one.memory_mib for one in without], empty=0),
    )


def _grouped(holdings: Iterable[Holding], by: Grouping, devices: dict[str, HeldDevice]) -> list[HoldersRow]:
    groups: dict[tuple[str, int], list[Holding]] = {}
    for one in holdings:
        groups.setdefault(_key(one, by), []).append(one)
    return [
        _row(label, same, devices, is_process=by is Grouping.PROCESS, cause=same[0].cause)
        for (label, _), same in groups.items()
    ]


def _key(one: Holding, by: Grouping) -> tuple[str, int]:
    """What a row is made of; the number keeps processes apart."""
    pid = one.pid if by is Grouping.PROCESS else 0
    if one.cause:
        return f"{UNATTRIBUTED}{one.cause}", pid
    return {Grouping.USER: one.user, Grouping.TEAM: one.team}.get(by, one.service), pid


def _by_device(holdings: Sequence[Holding], devices: dict[str, HeldDevice]) -> list[HoldersRow]:
    on: dict[str, list[Holding]] = {uuid: [] for uuid in devices}
    for one in holdings:
        on.setdefault(one.device, []).append(one)
    return [_device_row(uuid, same, devices.get(uuid), devices) for uuid, same in on.items()]


def _device_row(
    uuid: str, same: Sequence[Holding], device: HeldDevice | None, devices: dict[str, HeldDevice]
) -> HoldersRow:
    if same or device is None:
        return _row(uuid, same, devices, detail=device.class_name if device else "")
    unknown = Missing(device.silence) if device.silence else None
    nothing = Figure(value=0 if unknown is None else unknown)
    return HoldersRow(
        label=uuid,
        detail=device.class_name,
        pids=(),
        devices=(uuid,),
        contexts=0 if unknown is None else unknown,
        held_us=_NOTHING_HELD if unknown is None else unknown,
        memory=nothing,
        busy=nothing,
        capacity_mib=device.memory_mib,
    )


def _row(
    label: str,
    same: Sequence[Holding],
    devices: dict[str, HeldDevice],
    *,
    is_process: bool = False,
    detail: str = "",
    cause: str = "",
) -> HoldersRow:
    first = same[0]
    places = tuple(sorted({one.device for one in same}))
    held = [one.held_us for one in same if not isinstance(one.held_us, Missing)]
    return HoldersRow(
        label=label,
        detail=first.program if is_process else detail,
        user=first.user if is_process else "",
        cause=cause,
        pids=tuple(sorted({one.pid for one in same})),
        devices=places,
        contexts=len(same),
        unnamed=sum(1 for one in same if one.cause),
        held_us=max(held) if held else first.held_us,
        is_at_least=bool(held) and (len(held) < len(same) or any(one.is_at_least for one in same)),
        memory=_sum([one.memory_mib for one in same]),
        busy=_sum([one.busy_percent for one in same]),
        capacity_mib=_capacity(places, devices),
    )


def _sum(values: Sequence[int | Missing], *, empty: int | None = None) -> Figure:
    """What is known of them, added up; ``empty`` is what no value at all means."""
    known = [value for value in values if not isinstance(value, Missing)]
    why = tuple(dict.fromkeys(value.reason for value in values if isinstance(value, Missing)))
    if not known and (values or empty is None):
        return Figure(value=Missing("; ".join(why)), left_out=len(values), why=why)
    return Figure(value=sum(known), left_out=len(values) - len(known), why=why)


def _capacity(places: Iterable[str], devices: dict[str, HeldDevice]) -> int | Missing:
    total = 0
    for place in places:
        memory = devices[place].memory_mib if place in devices else Missing("driver: the device is not listed")
        if isinstance(memory, Missing):
            return memory
        total += memory
    return total


def _sorted(rows: Iterable[HoldersRow], arrangement: Arrangement) -> tuple[HoldersRow, ...]:
    by_name = sorted(rows, key=lambda row: (row.label, row.pids, row.devices))
    if arrangement.order is Order.NAME:
        return tuple(reversed(by_name) if arrangement.is_reversed else by_name)
    known: list[tuple[int, HoldersRow]] = []
    unknown: list[HoldersRow] = []
    for row in by_name:
        value = _value(row, arrangement.order)
        if isinstance(value, Missing):
            unknown.append(row)
        else:
            known.append((value, row))
    known.sort(key=lambda pair: pair[0] if arrangement.is_reversed else -pair[0])
    return (*(row for _, row in known), *unknown)


def _value(row: HoldersRow, order: Order) -> int | Missing:
    match order:
        case Order.HELD:
            return row.held_us
        case Order.BUSY:
            return row.busy.value
        case _:
            return row.memory.value
