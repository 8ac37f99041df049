"""What names and figures mean."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gpuledger.audit.exporter_words import (
    ENERGY,
    FB_USED,
    Kind,
    blank_of,
    canonical,
    is_exporter_pod,
    is_named,
    is_reservation,
    kind_of,
    number,
)


@pytest.mark.parametrize(
    ("name", "present"),
    [
        ("dcgm_gpu_utilization", "DCGM_FI_DEV_GPU_UTIL"),
        ("dcgm_sm_clock", "DCGM_FI_DEV_SM_CLOCK"),
        ("dcgm_fi_prof_gr_engine_active", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
        ("dcgm_ecc_sbe_volatile_total", "DCGM_FI_DEV_ECC_SBE_VOLATILE_TOTAL"),
        ("dcgm_exporter_build_info", "dcgm_exporter_build_info"),
        ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED"),
        ("go_goroutines", "go_goroutines"),
    ],
)
def test_old_names_have_present_ones(name: str, present: str) -> None:
    """The exporter's metrics about itself keep theirs."""
    assert canonical(name) == present


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", Kind.MAPPED),
        ("DCGM_FI_DEV_FB_USED", Kind.MAPPED),
        ("DCGM_FI_DEV_FB_FREE", Kind.DEVICE),
        ("DCGM_FI_PROF_SM_ACTIVE", Kind.PROFILING),
        ("DCGM_EXP_XID_ERRORS_COUNT", Kind.DEVICE),
        ("up", Kind.OTHER),
    ],
)
def test_what_a_figure_is_about(name: str, kind: Kind) -> None:
    """Two can be of a process; the rest never is."""
    assert kind_of(name) is kind


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("2147483632", "int32"),
        ("2147483635", "int32"),
        ("2147483636", ""),
        ("9223372036854775794", "int64"),
        ("9.223372036854776e+18", "int64"),
        ("140737488355328.0", "fp64"),
        ("140737488355331", "fp64"),
        ("17592186044415", "MiB"),
        ("18446744073709551615", "64 bit"),
        ("1.8446744073709552e+19", "64 bit"),
        ("4294967295", "32 bit"),
        ("81920", ""),
        ("NaN", ""),
        ("+Inf", ""),
    ],
)
def test_blanks_are_known_by_their_figure(value: str, told: str) -> None:
    """DCGM's and NVML's, also where they were rounded on the way."""
    figure = number(value)
    assert figure is not None
    found = blank_of(FB_USED, figure)
    assert (told in found) if told else not found


def test_a_counter_may_pass_the_figure_of_a_blank() -> None:
    """Energy in mJ passes 2^31 after half an hour at full power."""
    assert not blank_of(ENERGY, Decimal(2147483633))
    assert not blank_of("DCGM_FI_PROF_PCIE_TX_BYTES", Decimal(4294967295))
    assert blank_of(ENERGY, Decimal(9223372036854775792))


def test_pods_that_are_not_the_user() -> None:
    """The exporter itself, and pods that hold a device for a scheduler."""
    assert is_exporter_pod("nvidia-dcgm-exporter-x7", "")
    assert is_exporter_pod("any", "exporter")
    assert not is_exporter_pod("train-0", "main")
    assert is_reservation("runai-reservation", "x")
    assert is_reservation("kai-resource-reservation", "gpu-reservation-1")
    assert not is_reservation("team-a", "train-reservation")


def test_masked_uuids_tell_nothing_apart() -> None:
    """All zeros, or none."""
    assert not is_named("GPU-00000000-0000-0000-0000-000000000000")
    assert not is_named("")
    assert is_named("GPU-5a3c1f2e-0000-0000-0000-000000000000")


def test_a_figure_that_is_none() -> None:
    """Absent is absent."""
    assert number("") is None
    assert number("abc") is None
    assert number("0.714") == Decimal("0.714")


@pytest.mark.parametrize("value", ["1e999999999", "-1e-999999999", "9" * 1000])
def test_a_figure_beyond_64_bits_is_none(value: str) -> None:
    """Written out in a message it would take gigabytes."""
    assert number(value) is None
    assert number("1e308") == Decimal("1e308")
