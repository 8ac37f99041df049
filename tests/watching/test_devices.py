"""Devices, look after look: seen, changed, lost, and found again."""

from __future__ import annotations

from gpuledger.model.missing import Missing
from gpuledger.model.readings import DeviceReading, Reading, SliceReading
from gpuledger.model.rows import DeviceEvent
from gpuledger.watching.devices import changes, device_rows, losses


def rows(
    at_us: int = 1, memory_mib: int | Missing = 81559, slot: str = "00:01", profile: str = ""
) -> list[DeviceEvent]:
    slices = (
        (SliceReading(uuid="MIG-1", gpu_instance=7, compute_instance=0, profile=profile, memory_mib=9856),)
        if profile
        else ()
    )
    device = DeviceReading(
        uuid="GPU-0", product="NVIDIA H100 80GB HBM3", memory_mib=memory_mib, pci_bus_id=slot, mig=bool(slices),
        slices=slices,
    )  # fmt: skip
    reading = Reading(at_us=at_us, method="nvml", driver_version="610", devices={"GPU-0": device})
    return device_rows(device, reading, host="box", at_us=at_us)


def test_a_gpu_and_its_instances_are_rows_of_their_own() -> None:
    """An instance names its GPU, and its class names the profile."""
    whole, part = rows(profile="1g.10gb")
    assert (whole.class_name, whole.parent) == ("H100-80GB-HBM3", "")
    assert (part.device, part.class_name, part.parent, part.memory_mib) == (
        "MIG-1", "H100-80GB-HBM3/1g.10gb", "GPU-0", 9856,
    )  # fmt: skip


def test_a_device_that_stays_as_it_is_is_told_once() -> None:
    """A month of looks is one row."""
    known: dict[str, DeviceEvent] = {}
    assert [row.event for row in changes(known, rows(1))] == ["seen"]
    assert changes(known, rows(2)) == []


def test_a_device_that_moves_to_another_slot_has_changed() -> None:
    """It is the same UUID: an index or a slot is no name."""
    known: dict[str, DeviceEvent] = {}
    changes(known, rows(1))
    assert [(row.event, row.at_us, row.pci_bus_id) for row in changes(known, rows(2, slot="00:02"))] == [
        ("changed", 2, "00:02")
    ]


def test_memory_that_is_missing_for_two_reasons_is_no_change() -> None:
    """Another wording of absence is not another device."""
    known: dict[str, DeviceEvent] = {}
    changes(known, rows(1, memory_mib=Missing("a")))
    assert changes(known, rows(2, memory_mib=Missing("b"))) == []


def test_a_device_no_longer_listed_is_lost_once_and_can_come_back() -> None:
    """Lost, silence, seen."""
    known: dict[str, DeviceEvent] = {}
    changes(known, rows(1))
    assert [(row.event, row.at_us) for row in losses(known, set(), at_us=2)] == [("lost", 2)]
    assert losses(known, set(), at_us=3) == []
    assert [row.event for row in changes(known, rows(4))] == ["seen"]
