"""The answer of smi: when anything is known, and when something is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuledger.model.meters import Grade
from gpuledger.model.missing import Missing
from gpuledger.model.snapshot import Snapshot, SnapshotDevice, SnapshotProcess

ABSENT = Missing("test: not given")
CHAT = SnapshotProcess(
    pid=7, device="GPU-0", profile="", program="chat", service="chat", team="-", user="al", subject="unit:chat.service",
    cause="", since_us=0, since_by="driver", until_us=ABSENT, last_seen_us=9, memory=ABSENT, peak_memory_mib=ABSENT,
    grade=Grade.OBSERVED, doubt="", ref="sighting:box.agent/1",
)  # fmt: skip
WATCHED = SnapshotDevice(
    host="box", device="GPU-0", product="NVIDIA L4", class_name="L4", driver_version="", memory_mib=ABSENT, slices=(),
    reason="", meaning="", command="", looked_us=9, processes=(),
)  # fmt: skip
GAP = replace(WATCHED, reason="watch-gap")


@pytest.mark.parametrize(
    ("devices", "answered", "unknown"),
    [
        ((), False, True),
        ((WATCHED,), True, False),
        ((replace(WATCHED, processes=(CHAT,)),), True, False),
        ((GAP,), False, True),
        ((replace(GAP, processes=(CHAT,)),), True, True),
        ((replace(GAP, processes=(replace(CHAT, doubt="nobody looked"),)),), False, True),
        ((WATCHED, GAP), True, True),
        ((replace(WATCHED, processes=(replace(CHAT, cause="lived between two polls"),)),), True, True),
    ],
)
def test_what_is_known(devices: tuple[SnapshotDevice, ...], answered: bool, unknown: bool) -> None:
    """A watched device answers, also when nothing held it; what only may have held one does not."""
    report = Snapshot(at_us=9, devices=devices)
    assert (report.answered, report.has_unknown_parts) == (answered, unknown)
