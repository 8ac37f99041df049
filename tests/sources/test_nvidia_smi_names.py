"""Which device the parts of a file speak of."""

from __future__ import annotations

import pytest

from gpuledger.errors import BadInput
from gpuledger.sources.nvidia_smi_names import UNIDENTIFIED, DeviceNames, naming_problem
from gpuledger.sources.nvidia_smi_outputs import DevicePart, Kind, Output, Slice

ZEROS = "GPU-00000000-0000-0000-0000-000000000000"


def names(*parts: DevicePart, given: str = "", kind: Kind = Kind.XML) -> DeviceNames:
    return DeviceNames.of([Output(kind=kind, line=1, parts=parts)], given=given, path="dump")


def test_the_file_itself_knows_which_uuid_a_bus_id_is() -> None:
    """One output names both, another the bus id or serial alone."""
    known = names(DevicePart(uuid="GPU-1", bus_id="A", serial="165"), DevicePart(uuid="GPU-2", bus_id="B"))
    assert known.name(DevicePart(bus_id="B")) == "GPU-2"
    assert known.name(DevicePart(serial="165")) == "GPU-1"
    assert known.name(DevicePart(uuid="GPU-2", bus_id="A")) == "GPU-2"


def test_a_nameless_part_is_of_the_only_device_there_is() -> None:
    """Where the file knows one GPU its rows are of that; where it knows two, of an unidentified one."""
    assert names(DevicePart(uuid="GPU-1")).name(DevicePart()) == "GPU-1"
    assert names(DevicePart(uuid="GPU-1"), DevicePart(uuid="GPU-2")).name(DevicePart()) == UNIDENTIFIED
    assert names().default == UNIDENTIFIED


def test_the_name_given_is_for_one_nameless_device() -> None:
    """Two bus ids cannot both be the UUID that a person gave."""
    one, two = DevicePart(bus_id="A"), DevicePart(bus_id="B")
    assert names(one, given="GPU-9").name(one) == "GPU-9"
    assert names(one, two, given="GPU-9").name(one) == "PCI-A"
    assert names(one, DevicePart(serial="165"), given="GPU-9").name(DevicePart(serial="165")) == "SERIAL-165"
    assert names(DevicePart(), given="GPU-9").name(DevicePart()) == "GPU-9"


def test_a_mask_over_several_gpus_does_not_merge_them() -> None:
    """Eight zeroed UUIDs are eight GPUs; a single one keeps its mask as its name."""
    first, second = DevicePart(uuid=ZEROS, bus_id="A"), DevicePart(uuid=ZEROS, bus_id="B")
    assert names(first).name(first) == ZEROS
    assert {names(first, second).name(part) for part in (first, second)} == {"PCI-A", "PCI-B"}


def test_instances_are_named_by_the_list() -> None:
    """Only ``-L`` gives them."""
    part = DevicePart(uuid="GPU-1", slices=(Slice(place=0, uuid="MIG-1", profile="1g.5gb"),))
    assert names(part, kind=Kind.LIST).slices == {"GPU-1": part.slices}


def test_two_products_or_hosts_are_two_machines() -> None:
    """Their rows must not merge under one host."""
    with pytest.raises(BadInput, match="more than one machine"):
        names(DevicePart(uuid=ZEROS, product="NVIDIA H100"), DevicePart(uuid=ZEROS, product="NVIDIA H200"))
    hosts = [Output(kind=Kind.GPU, line=line, host_name=host) for line, host in ((1, "a"), (5, "b"))]
    with pytest.raises(BadInput) as caught:
        DeviceNames.of(hosts, given="", path="dump")
    assert (caught.value.code, caught.value.line) == ("two-machines", 5)


@pytest.mark.parametrize(
    ("device", "code"),
    [(UNIDENTIFIED, "no-device-uuid"), ("PCI-00000000:0C:00.0", "no-device-uuid"), (ZEROS, "masked-device")],
)
def test_a_weak_name_is_told(device: str, code: str) -> None:
    """The person decides what to do about it."""
    problem = naming_problem(device, where="dump:1")
    assert problem is not None
    assert problem.code == code
    assert naming_problem("GPU-513536b6-7d19-9063-b049-1e69664bb298", where="dump:1") is None
