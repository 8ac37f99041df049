"""Which outputs are one look at the machine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.readings import Reading
from gpuledger.sources.nvidia_smi_looks import group, read_look
from gpuledger.sources.nvidia_smi_names import DeviceNames
from gpuledger.sources.nvidia_smi_outputs import NO_TIME, DevicePart, Kind, Output

NOON = datetime(2026, 3, 2, 12)  # noqa: DTZ001 - local by nature


def output(kind: Kind, *, seconds: int | None = None, device: str = "GPU-1", section: str = "") -> Output:
    part = DevicePart(uuid=device, accounting="enabled" if kind in (Kind.GPU, Kind.LOG, Kind.XML) else "", accounted=())
    at = NO_TIME if seconds is None else NOON + timedelta(seconds=seconds)
    return Output(kind=kind, line=1, section=section, at=at, parts=(part,))


def sizes(*outputs: Output) -> list[int]:
    return [len(look.outputs) for look in group(outputs)]


def test_different_outputs_of_one_moment_are_one_look() -> None:
    """Mode, rows and processes come from three commands, with or without times."""
    assert sizes(output(Kind.GPU), output(Kind.ACCOUNTED), output(Kind.COMPUTE)) == [3]
    assert sizes(output(Kind.LOG, seconds=0), output(Kind.ACCOUNTED, seconds=2), output(Kind.COMPUTE)) == [3]


def test_the_same_output_again_is_a_later_look() -> None:
    """Unless it is of another device, as a command for each GPU gives it."""
    assert sizes(output(Kind.ACCOUNTED), output(Kind.GPU), output(Kind.ACCOUNTED)) == [2, 1]
    assert sizes(output(Kind.ACCOUNTED), output(Kind.ACCOUNTED, device="GPU-2")) == [2]
    assert sizes(output(Kind.XML), output(Kind.XML)) == [1, 1]


def test_a_capture_names_its_moments() -> None:
    """Idle is not load, however near."""
    assert sizes(output(Kind.LOG, section="idle"), output(Kind.ACCOUNTED, section="load")) == [1, 1]


def test_outputs_far_apart_are_not_one_look() -> None:
    """Half a minute is more than any capture took."""
    assert sizes(output(Kind.GPU, seconds=0), output(Kind.ACCOUNTED, seconds=31)) == [1, 1]
    assert sizes(output(Kind.GPU, seconds=0), output(Kind.ACCOUNTED, seconds=30)) == [2]


def test_names_alone_are_no_look() -> None:
    """``-L`` helps to name, and a list of GPUs without a mode tells nothing."""
    assert sizes(replace(output(Kind.LIST), parts=())) == []
    assert sizes(Output(kind=Kind.GPU, line=1, parts=(DevicePart(uuid="GPU-1", product="L4"),))) == []


def test_a_full_query_without_accounting_still_shows_its_devices() -> None:
    """A driver too old for accounting: its devices are UNKNOWN, which is not an error; beside others it is left out."""
    bare = Output(kind=Kind.XML, line=1, at=NOON, parts=(DevicePart(uuid="GPU-1", product="K20"),))
    assert sizes(bare) == [1]
    assert read(bare).devices["GPU-1"].accounting == "unknown"
    assert sizes(bare, output(Kind.XML, seconds=60)) == [1]


def read(*outputs: Output, zone: str | None = "UTC") -> Reading:
    [look] = group(outputs)
    names = DeviceNames.of(outputs, given="", path="dump")
    return read_look(look, names, path="dump", zone=ZoneInfo(zone) if zone else None, taken_at_us=7, method="import")


def test_the_time_of_a_look_is_its_latest() -> None:
    """So that every finished row had ended by then; without times it is when the person says."""
    reading = read(output(Kind.GPU, seconds=0), output(Kind.ACCOUNTED, seconds=2), zone="Europe/Berlin")
    assert not isinstance(reading.at_us, Missing)
    assert iso(reading.at_us) == "2026-03-02T11:00:02Z"
    assert read(output(Kind.GPU), zone=None).at_us == 7
    with pytest.raises(Misconfigured):
        read(output(Kind.GPU, seconds=0), zone=None)


def test_an_hour_that_happens_twice_is_told() -> None:
    """The end of summer time: the first of the two is taken, and a problem says so."""
    twice = replace(output(Kind.GPU), at=datetime(2026, 10, 25, 2, 30))  # noqa: DTZ001 - local by nature
    reading = read(twice, zone="Europe/Berlin")
    assert not isinstance(reading.at_us, Missing)
    assert iso(reading.at_us) == "2026-10-25T00:30:00Z"
    assert [problem.code for problem in reading.problems] == ["ambiguous-local-time"]
    [look] = group([twice])
    plain = read_look(look, DeviceNames(), path="dump", zone=UTC, taken_at_us=7, method="import")
    assert not plain.problems
