"""The meters: one unit each, and none of the driver's is ever an invoice source."""

from __future__ import annotations

from gpuledger.model.meters import METERS, RESERVED_METERS, Grade


def test_every_meter_has_a_name_of_its_own_and_one_unit() -> None:
    """The name is what --meter takes, the unit what every stored quantity of it is in."""
    assert [(meter.name, meter.unit) for meter in METERS] == [
        ("gpu.reserved", "s"),
        ("cpu.reserved", "s"),
        ("mig.memory", "s"),
        ("gpu.context", "ms"),
        ("gpu.memory", "MiB-seconds"),
        ("gpu.busy", "ms"),
    ]


def test_nothing_that_the_driver_accounts_is_invoiced() -> None:
    """Its buffer overwrites itself, its mode vanishes with the driver: showback only (DESIGN section 5)."""
    assert [meter.name for meter in METERS if meter.invoiced] == [meter.name for meter in RESERVED_METERS]


def test_only_context_time_is_settled() -> None:
    """Memory and activity are samples, and say so."""
    assert {meter.name: meter.grades for meter in METERS if meter not in RESERVED_METERS} == {
        "gpu.context": (Grade.SETTLED, Grade.OBSERVED),
        "gpu.memory": (Grade.SAMPLED,),
        "gpu.busy": (Grade.SAMPLED,),
    }
