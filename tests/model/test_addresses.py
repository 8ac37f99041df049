"""Devices without a UUID: one name for each, whoever spells it, and never one name for two."""

from __future__ import annotations

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.model.addresses import device_named, host_of, is_address, lacks_host
from gpuledger.model.lifecycle import Placement


@pytest.mark.parametrize(
    ("text", "machine", "name"),
    [
        ("0000:65:00.0", "lab-3", "lab-3/0000:65:00.0"),
        ("65:00.0", "lab-3", "lab-3/0000:65:00.0"),
        ("00000000:65:00.0", "lab-3", "lab-3/0000:65:00.0"),
        ("lab-4/0000:AF:00.1", "lab-3", "lab-4/0000:af:00.1"),
        ("00010000:01:00.0", "azure", "azure/10000:01:00.0"),
        ("gpu0", "mac-1", "mac-1/gpu0"),
    ],
)
def test_an_address_has_one_spelling(text: str, machine: str, name: str) -> None:
    """With its host, a domain of four digits or as many as it needs, small letters."""
    assert device_named(text, machine) == name
    assert is_address(name)


@pytest.mark.parametrize("uuid", ["GPU-8c1f5e2a", "MIG-GPU-8c1f/1/0", "MIG-8c1f", "nvidia0", "n1/0"])
def test_a_uuid_stays_as_it_is(uuid: str) -> None:
    """Also one with slashes in it, as MIG had before R470, and a name of somebody's own."""
    assert device_named(uuid, "n1") == uuid
    assert not is_address(uuid)


@pytest.mark.parametrize(
    ("device", "lacks", "stands"),
    [("65:00.0", True, False), ("gpu0", True, False), ("lab-3/0000:65:00.0", False, True), ("GPU-1", False, False)],
)
def test_which_names_are_addresses(device: str, lacks: bool, stands: bool) -> None:
    """With a host, without one, and not at all."""
    assert (lacks_host(device), is_address(device)) == (lacks, stands)


def test_no_placement_holds_an_address_alone() -> None:
    """Whoever makes it: it would be the same device on every machine."""
    with pytest.raises(Misconfigured, match="on which machine"):
        Placement(class_name="L40S", devices=("0000:65:00.0",))
    assert Placement(class_name="L40S", devices=("lab-3/0000:65:00.0",)).count == 1


def test_the_host_of_an_address_is_what_stands_before_it() -> None:
    """Where the device sits."""
    assert host_of(device_named("65:00.0", "lab-3")) == "lab-3"


def test_an_address_without_a_host_is_refused() -> None:
    """It would be one device on every machine."""
    with pytest.raises(Misconfigured, match="on which machine") as refused:
        device_named("0000:65:00.0", "")
    assert refused.value.hint == "--machine HOST --devices 0000:65:00.0"
