"""Devices, look after look: seen, changed, lost. Keyed by UUID; an index or a PCI slot is no name."""

from __future__ import annotations

from dataclasses import replace

from gpuledger.model.devices import class_name
from gpuledger.model.readings import DeviceReading, Reading
from gpuledger.model.rows import DeviceEvent


def device_rows(device: DeviceReading, reading: Reading, *, host: str, at_us: int) -> list[DeviceEvent]:
    """The GPU of a reading and its MIG instances, each as a ``seen`` event."""
    whole = DeviceEvent(
        host=host,
        device=device.uuid,
        at_us=at_us,
        event="seen",
        class_name=class_name(device.product),
        product=device.product,
        memory_mib=device.memory_mib,
        pci_bus_id=device.pci_bus_id,
        driver_version=reading.driver_version,
        method=reading.method,
    )
    parts = [
        DeviceEvent(
            host=host,
            device=part.uuid,
            at_us=at_us,
            event="seen",
            class_name=class_name(device.product, part.profile),
            product=device.product,
            memory_mib=part.memory_mib,
            parent=device.uuid,
            profile=part.profile,
            driver_version=reading.driver_version,
            method=reading.method,
        )
        for part in device.slices
    ]
    return [whole, *parts]


def changes(known: dict[str, DeviceEvent], seen: list[DeviceEvent]) -> list[DeviceEvent]:
    """Events that say something new; ``known`` is brought up to date."""
    rows: list[DeviceEvent] = []
    for event in seen:
        before = known.get(event.device)
        if before is not None and before.event != "lost":
            if _facts(before) == _facts(event):
                continue
            event = replace(event, event="changed")  # noqa: PLW2901 - the row to keep, not another one
        known[event.device] = event
        rows.append(event)
    return rows


def losses(known: dict[str, DeviceEvent], present: set[str], *, at_us: int) -> list[DeviceEvent]:
    """``lost`` events of devices no longer listed; ``known`` is brought up to date."""
    rows: list[DeviceEvent] = []
    for uuid, event in known.items():
        if uuid not in present and event.event != "lost":
            rows.append(replace(event, event="lost", at_us=at_us, writer="", number=0))
    known.update({row.device: row for row in rows})
    return rows


def _facts(event: DeviceEvent) -> tuple[object, ...]:
    memory = event.memory_mib if isinstance(event.memory_mib, int) else None
    return (event.class_name, memory, event.parent, event.pci_bus_id, event.driver_version)
