"""The words of reserved time: which meters count a class, and what a second of it is."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpuledger.model.missing import Missing
from gpuledger.model.reserved import ReservedReport, ReservedTime, factor, meters_of
from gpuledger.model.workload_rows import PlacementRow


def placed(class_name: str, count: int = 1, share: str = "1") -> PlacementRow:
    of = Fraction(share)
    return PlacementRow(
        placement="p", class_name=class_name, region="", machine="n1", pool="", devices="[]", count=count,
        share_num=of.numerator, share_den=of.denominator,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("class_name", "names"),
    [
        ("H100-80GB", ["gpu.reserved"]),
        ("cpu", ["cpu.reserved"]),
        ("A100-SXM4-40GB/1g.5gb", ["gpu.reserved", "mig.memory"]),
        ("H100-80GB/1g.10gb+me", ["gpu.reserved", "mig.memory"]),
        ("H100-80GB/1c.3g.40gb", ["gpu.reserved", "mig.memory"]),
        ("weird/name", ["gpu.reserved"]),
    ],
)
def test_a_class_decides_its_meters(class_name, names) -> None:
    """The memory of a MIG slice is counted beside its time: one of the two is priced."""
    assert [meter.name for meter in meters_of(class_name)] == names


def test_a_second_counts_devices_and_share() -> None:
    """Exactly, as a fraction; on cpu a second is a second, and of a slice its memory counts."""
    assert factor("gpu.reserved", placed("H100-80GB", 2, "1/3")) == Fraction(2, 3)
    assert factor("cpu.reserved", placed("cpu", 0)) == 1
    assert factor("mig.memory", placed("A100-SXM4-40GB/3g.20gb", 1, "1/2")) == 10
    assert factor("mig.memory", placed("H100-80GB")) == 0


def test_seconds_are_rounded_down_once() -> None:
    """1.999999 s is one second."""
    time = ReservedTime(
        workload="a", hour_us=0, placement="p", subject="s", source="cp", is_declared=False, amount_us=1_999_999,
        evidence=(),
    )  # fmt: skip
    assert time.seconds == 1


def test_without_one_transition_there_is_no_figure() -> None:
    """Nothing held is no zero where nobody tells."""
    report = ReservedReport(
        meter="gpu.reserved", unit="device-seconds", note="", since_us=0, until_us=1, by=(), rows=(), gaps=(),
        told=False,
    )  # fmt: skip
    assert isinstance(report.total, Missing)
    assert not report.answered
