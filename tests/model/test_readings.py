"""What one look finds: the seam between sources and the agent."""

from __future__ import annotations

from gpuledger.model.missing import Missing
from gpuledger.model.readings import DeviceReading, FinishedRow, NamesLook, Reading
from gpuledger.model.rows import DriverRecord


def test_a_finished_row_and_its_ledger_row_have_the_same_content() -> None:
    """Else the same process from NVML and from a dump would be two."""
    figures = {"context_ms": 679, "peak_memory_mib": 184, "gpu_percent": 0, "memory_percent": Missing("N/A")}
    found = FinishedRow(pid=7, started_at_us=Missing("CSV"), **figures)
    row = DriverRecord(
        host="box", device="GPU-0", pid=7, started_at_us=Missing("CSV"), read_at_us=1, method="import", **figures
    )
    assert found.content == row.content == ("679", "184", "0", "-")


def test_a_device_of_which_nothing_is_told_claims_nothing() -> None:
    """Accounting is ``unknown`` until a source has read it: neither on nor off."""
    bare = DeviceReading(uuid="GPU-0", product="NVIDIA L4", memory_mib=Missing("not told"))
    assert (bare.accounting, bare.listed, bare.finished, bare.living) == ("unknown", 0, (), ())


def test_a_look_at_nothing_is_no_look_at_an_idle_machine() -> None:
    """No device read is an empty mapping: there is no device in it that could be read as idle."""
    assert dict(Reading(at_us=1, method="nvml").devices) == {}
    assert not NamesLook(method="poll").current
