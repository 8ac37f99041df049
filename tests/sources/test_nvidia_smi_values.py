"""Cells of nvidia-smi: figures, words for absence, names, local times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.model.missing import Missing
from gpuledger.sources import nvidia_smi_values as values


@pytest.mark.parametrize(
    "token",
    ["[N/A]", "N/A", "[Not Supported]", "[Insufficient Permissions]", "[Unknown Error]", "[Function Not Found]",
     "[Requested functionality has been deprecated]", "-", "Not available in WDDM driver model", "", "[GPU is lost]",
     "Requested functionality has been deprecated", " [N/A] ", "ERR!"],
)  # fmt: skip
def test_tokens_of_absence_are_never_a_number(token: str) -> None:
    """Each is Missing, with the driver's own word as the reason, in every kind of cell."""
    for read in (
        values.memory_mib,
        values.percent,
        values.milliseconds,
        values.process_id,
        values.local_time,
        values.switch,
    ):
        found = read(token)
        assert isinstance(found, Missing)
        assert token.strip(" []") in found.reason
    assert values.name(token) == ""


def test_zero_stays_zero() -> None:
    """0 MiB and 0 % are figures that the driver gave."""
    assert values.memory_mib("0 MiB") == 0
    assert values.percent("0 %") == 0
    assert values.milliseconds("0 ms") == 0


@pytest.mark.parametrize(
    ("text", "unit", "mib"),
    [("5378 MiB", "", 5378), ("5378", "MiB", 5378), ("5378", "", 5378), ("1 GiB", "", 1024), ("2048 KiB", "MiB", 2),
     ("3 MB", "", 3), ("1073741824 B", "", 1024), ("7.9 MiB", "", 7)],
)  # fmt: skip
def test_memory_has_its_unit_in_the_cell_the_header_or_nowhere(text: str, unit: str, mib: int) -> None:
    """The cell's own unit wins; without any it is MiB, as ``nounits`` prints it."""
    assert values.memory_mib(text, unit) == mib


@pytest.mark.parametrize("text", ["4294967295 %", "37100 %", "101"])
def test_impossible_percentages_are_absent(text: str) -> None:
    """NVML's sentinel and the garbage that drivers gave are not utilisation."""
    assert isinstance(values.percent(text), Missing)


def test_sentinels_of_memory_and_time_are_absent() -> None:
    """All ones, also divided by MiB, is NVML's word for not available."""
    assert isinstance(values.memory_mib("17592186044415 MiB"), Missing)
    assert isinstance(values.milliseconds("18446744073709551615 ms"), Missing)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (values.memory_mib, "many"), (values.memory_mib, "5 ms"), (values.percent, "5 MiB"),
        (values.milliseconds, "-5 ms"), (values.milliseconds, "5 %"), (values.process_id, "0"),
        (values.process_id, "-3"), (values.process_id, "\u0663"), (values.process_id, "99999999999"),
        (values.local_time, "yesterday"), (values.local_time, "2026/13/01 00:00:00"),
        (values.local_time, "0001/01/01 00:00:00"), (values.switch, "maybe"),
    ],
)  # fmt: skip
def test_anything_else_is_refused(read: Callable[[str], object], text: str) -> None:
    """A cell that is neither a figure nor absence breaks its line, and does not become a number."""
    with pytest.raises(ValueError, match=r"is n|lies in|must be in"):
        read(text)


def test_both_spellings_of_a_local_time_are_read() -> None:
    """CSV prints milliseconds, the log a date in words; neither carries a zone."""
    assert values.local_time("2026/07/03 22:22:01.444") == datetime(2026, 7, 3, 22, 22, 1, 444_000)  # noqa: DTZ001
    assert values.local_time("Fri Jul  3 22:22:00 2026") == datetime(2026, 7, 3, 22, 22)  # noqa: DTZ001


def test_bus_ids_have_one_spelling() -> None:
    """Old drivers print four digits of domain, tools small letters."""
    assert values.bus_id("0000:0c:00.0") == values.bus_id("00000000:0C:00.0") == "00000000:0C:00.0"
    assert values.bus_id("[N/A]") == values.bus_id("nonsense") == ""


@pytest.mark.parametrize(
    ("uuid", "masked"),
    [("GPU-00000000-0000-0000-0000-000000000000", True), ("GPU-00000001-0000-0000-0000-000000000001", True),
     ("GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", True), ("REDACTED", True), ("0000000000000", True), ("GPU-***", True),
     ("GPU-513536b6-7d19-9063-b049-1e69664bb298", False), ("1562220007789", False), ("GPU-1", False), ("", False)],
)  # fmt: skip
def test_masked_identifiers_are_seen(uuid: str, masked: bool) -> None:
    """What was zeroed, starred or renamed identifies nothing; a real UUID is random."""
    assert values.is_masked(uuid) is masked


@settings(max_examples=200)
@given(st.text(max_size=60))
def test_any_cell_gives_a_value_or_a_value_error(text: str) -> None:
    """Nothing else is ever raised."""
    for read in (
        values.memory_mib,
        values.percent,
        values.milliseconds,
        values.process_id,
        values.local_time,
        values.switch,
    ):
        try:
            read(text)
        except ValueError:
            continue
    values.name(text)
    values.bus_id(text)
    values.is_masked(text)
