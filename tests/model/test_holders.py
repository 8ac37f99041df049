"""The words of ``top``."""

from __future__ import annotations

from typing import Any

import pytest

from gpuledger.model.holders import UNNAMED_MEANING, HeldDevice, HoldersLook, Holding, Unnamed
from gpuledger.model.missing import Missing
from gpuledger.model.reasons import Cause

NOT_TOLD = Missing("driver: not available")


def device(silence: str = "") -> HeldDevice:
    return HeldDevice(uuid="GPU-1", class_name="L4", memory_mib=23034, silence=silence)


def holding() -> Holding:
    return Holding(
        device="GPU-1", pid=7, service="ollama", user="al", team="-", held_us=NOT_TOLD, memory_mib=184, busy_percent=0
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "answered"),
    [
        ({"devices": ()}, True),
        ({"devices": (device(),)}, True),
        ({"devices": (device("the GPU is lost"), device())}, True),
        ({"devices": (device("the GPU is lost"),)}, False),
        ({"devices": (device("no list of processes"),), "holdings": (holding(),)}, True),
    ],
    ids=["no device", "idle", "one of two", "silent", "by the accounting list"],
)
def test_a_look_that_tells_nothing_is_no_answer(words: dict[str, Any], answered: bool) -> None:
    """A machine without a device is one, a silent device is none."""
    fields: dict[str, Any] = {
        "at_us": 0, "host": "box", "method": "nvml", "driver_version": "", "holdings": (), "ledger": NOT_TOLD,
    }  # fmt: skip
    assert HoldersLook(**fields | words).answered is answered


def test_every_reason_says_what_helps() -> None:
    """And the one that a ledger has too is spelled as there."""
    assert set(UNNAMED_MEANING) == set(Unnamed)
    assert all(meaning and helps.startswith(("sudo ", "gpuledger ")) for meaning, helps in UNNAMED_MEANING.values())
    assert Unnamed.UNREADABLE.value == Cause.IDENTITY_UNREADABLE.value
