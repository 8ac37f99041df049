"""The rows of the ledger: frozen, equal by what they say, referred to by who wrote them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from gpuledger.model.missing import Missing
from gpuledger.model.row_kinds import EVIDENCE, ROWS
from gpuledger.model.rows import DriverRecord


def driver(**words: Any) -> DriverRecord:
    row: dict[str, Any] = {
        "host": "box", "device": "GPU-0", "pid": 7, "started_at_us": 1000, "context_ms": 679, "peak_memory_mib": 184,
        "gpu_percent": 0, "memory_percent": 0, "read_at_us": 9000, "method": "nvml",
    }  # fmt: skip
    return DriverRecord(**row | words)


def test_a_reference_names_the_kind_the_writer_and_the_number() -> None:
    """What ``explain`` takes."""
    assert driver(writer="box.agent", number=12).ref == "driver:box.agent/12"


def test_the_same_evidence_read_twice_is_equal() -> None:
    """Who wrote it down, and where, takes no part in equality."""
    assert driver(writer="box.agent", number=12) == driver(writer="box.import", number=3)
    assert driver() != driver(context_ms=680)


def test_a_row_cannot_be_changed() -> None:
    """Records are final, in memory too."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        driver().context_ms = 0  # type: ignore[misc]


def test_a_start_makes_a_drivers_row_itself() -> None:
    """Read again later it is the same row; no figure takes part."""
    assert driver().natural_key == driver(read_at_us=99_000, context_ms=1).natural_key == "start:1000"


def test_without_a_start_the_content_and_the_reading_make_the_row() -> None:
    """An earlier reading is a tighter bound, so it is a row of its own; another load of the driver too."""
    bare = driver(started_at_us=Missing("CSV gives none"), gpu_percent=Missing("N/A"))
    keys = {
        bare.natural_key,
        dataclasses.replace(bare, read_at_us=8000).natural_key,
        dataclasses.replace(bare, driver_epoch="boot-2").natural_key,
        dataclasses.replace(bare, peak_memory_mib=0).natural_key,
    }
    assert len(keys) == 4
    assert bare.content == ("679", "184", "-", "0")


def test_kinds_are_one_word_each_and_evidence_comes_first() -> None:
    """The order is the order of chaining: it can never change for a written ledger."""
    assert [row.kind for row in ROWS] == [
        "device", "watch", "identity", "driver", "sighting", "placement", "event", "hold", "expected", "record",
        "correction", "pass", "policy", "archive", "seal",
    ]  # fmt: skip
    assert ROWS[: len(EVIDENCE)] == EVIDENCE
