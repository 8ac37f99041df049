"""``smi`` as people and programs read it."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from gpuledger.model.meters import Grade
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US, SECOND_US, parse_moment
from gpuledger.model.snapshot import MemoryHeld, Snapshot, SnapshotDevice, SnapshotProcess, SnapshotSlice
from gpuledger.reports.smi_report import to_csv, to_json, to_table

AT = parse_moment("2026-11-29T14:00:00Z", now_us=0)
GPU = "GPU-5a3c1f2e-1111-2222-3333-444455556666"
SLICE = "MIG-aaaaaaaa-1111-2222-3333-444455556666"
NO_SAMPLE = Missing("no memory sample covers this moment")
OLLAMA = SnapshotProcess(
    pid=2_488_996, device=GPU, profile="", program="ollama", service="ollama", team="-", user="ollama",
    subject="unit:ollama.service", cause="", since_us=AT - DAY_US, since_by="looks",
    until_us=Missing("not known to have ended; last seen alive at 2026-11-29T15:00:00Z"), last_seen_us=AT + HOUR_US,
    memory=MemoryHeld(mib=14_249, since_us=AT - SECOND_US, until_us=AT + SECOND_US), peak_memory_mib=20_000,
    grade=Grade.OBSERVED, doubt="", ref="sighting:box.agent/40",
)  # fmt: skip
CLONE = replace(
    OLLAMA, pid=20_862, program="clone", service="unattributed:between-samples", user="-",
    subject="unattributed:between-samples", cause="lived and died between two polls", since_us=AT - SECOND_US,
    since_by="driver", until_us=AT + SECOND_US, memory=NO_SAMPLE, peak_memory_mib=2196, grade=Grade.SETTLED,
    ref="driver:box.agent/73",
)  # fmt: skip
WHISPER = replace(
    OLLAMA, pid=31, program="whisper", service="whisper", memory=NO_SAMPLE, since_by="driver",
    doubt="last seen alive at 2026-11-29T13:59:59Z, and gone at 2026-11-29T14:00:01Z",
)  # fmt: skip
BOX = SnapshotDevice(
    host="box", device=GPU, product="NVIDIA GeForce RTX 4090", class_name="GeForce-RTX-4090",
    driver_version="595.45.04", memory_mib=24_564, slices=(), reason="", meaning="", command="", looked_us=AT,
    processes=(OLLAMA, CLONE),
)  # fmt: skip
GAP = replace(
    BOX, host="far", reason="watch-gap", meaning="no agent was looking", command="leave gpuledger agent running",
    processes=(), looked_us=AT - HOUR_US, memory_mib=Missing("driver: not supported"),
)  # fmt: skip


@pytest.fixture
def report() -> Snapshot:
    """A box that was watched, and one that was not."""
    return Snapshot(at_us=AT, devices=(BOX, GAP))


def test_each_device_is_followed_by_its_processes(printed, report: Snapshot) -> None:
    """As nvidia-smi lays it out: product, memory and driver, then pid by pid."""
    text = printed(to_table(report), width=140)
    lines = text.splitlines()
    assert "box  NVIDIA GeForce RTX 4090  24,564 MiB  driver 595.45.04" in lines
    assert GPU in lines
    (ollama,) = [line for line in lines if "2488996" in line]
    for word in ("ollama", "14,249", "2026-11-28 14:00Z?", "open", "observed", "sighting:box.agent/40"):
        assert word in ollama
    (clone,) = [line for line in lines if "20862" in line]
    for word in ("<= 2,196", "13:59:59Z", "14:00:01Z", "settled", "unattributed:between-samples"):
        assert word in clone
    assert "unattributed:between-samples: lived and died between two polls" in text
    assert "<= : the driver's peak over its whole life" in text


def test_an_unwatched_device_reads_unknown_and_never_empty(printed, report: Snapshot) -> None:
    """With its reason, the last look, and what helps."""
    text = printed(to_table(report))
    far = text[text.index("far  ") :]
    assert "no process" not in text
    for word in ("memory UNKNOWN", "UNKNOWN watch-gap", "2026-11-29T13:00:00Z", "leave gpuledger agent running"):
        assert word in far


def test_a_watched_device_that_nothing_held_says_so(printed) -> None:
    """An answer, and told as one."""
    text = printed(to_table(Snapshot(at_us=AT, devices=(replace(BOX, processes=()),))))
    assert "no process held it" in text
    assert "UNKNOWN" not in text


def test_what_may_have_held_it_stands_apart(printed) -> None:
    """With the sentence that says why nobody knows."""
    text = printed(to_table(Snapshot(at_us=AT, devices=(replace(BOX, processes=(WHISPER,)),))))
    assert "May have held it" in text
    assert "pid 31: last seen alive at 2026-11-29T13:59:59Z, and gone at" in text


def test_memory_of_an_earlier_sample_is_marked_with_its_time(printed) -> None:
    """What goes on is written every few minutes; the figure is of then, and says so."""
    memory = MemoryHeld(mib=14_249, since_us=AT - 3 * SECOND_US, until_us=AT - 2 * SECOND_US)
    device = replace(BOX, processes=(replace(OLLAMA, memory=memory),))
    text = printed(to_table(Snapshot(at_us=AT, devices=(device,))))
    assert "~14,249" in text
    assert "~ : by the last sample written, of 13:59:58Z" in text


def test_absent_memory_says_why_under_the_table(printed) -> None:
    """A dash in the cell, never a zero."""
    one = replace(OLLAMA, memory=NO_SAMPLE)
    text = printed(to_table(Snapshot(at_us=AT, devices=(replace(BOX, processes=(one,)),))))
    assert "- : memory UNKNOWN, no memory sample covers this moment; highest so far 19.5 GiB" in text


def test_instances_are_told_beside_their_gpu(printed) -> None:
    """By profile and the start of the UUID."""
    part = SnapshotSlice(device=SLICE, profile="1g.5gb", memory_mib=4864)
    held = replace(OLLAMA, device=SLICE, profile="1g.5gb")
    text = printed(to_table(Snapshot(at_us=AT, devices=(replace(BOX, slices=(part,), processes=(held,)),))), width=110)
    assert f"  1g.5gb  4,864 MiB  {SLICE}" in text
    assert "1g.5gb MIG-aaaaaaaa" in text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_no_line_is_wider_than_its_room(printed, report: Snapshot, width: int) -> None:
    """And pid, memory and how it is known stand whole."""
    text = printed(to_table(report), width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "2488996" in text
    assert "14,249" in text


def test_a_name_cannot_write_to_the_terminal(printed) -> None:
    """Programs are called what people like."""
    text = printed(
        to_table(Snapshot(at_us=AT, devices=(replace(BOX, processes=(replace(OLLAMA, program="a\x1b[2J"),)),)))
    )
    assert "\x1b" not in text


def test_no_device_is_no_answer(printed) -> None:
    """Nothing is known."""
    assert "UNKNOWN: no device is known" in printed(to_table(Snapshot(at_us=AT, devices=())))


def test_json_is_the_contract(report: Snapshot) -> None:
    """Nulls with their reasons; the reason of an unwatched device; a reference for each process."""
    document = to_json(report)
    assert list(document) == ["at", "devices"]
    box, far = document["devices"]
    assert (box["watched"], box["unknown"]) == (True, None)
    assert (far["watched"], far["unknown"]["reason"], far["memory_mib"]) == (False, "watch-gap", None)
    assert far["missing"] == {"memory_mib": "driver: not supported"}
    ollama, clone = box["processes"]
    assert (ollama["memory_mib"], ollama["peak_memory_mib"], ollama["known"]) == (14_249, 20_000, "observed")
    assert ollama["memory_over"] == {"since": "2026-11-29T13:59:59Z", "until": "2026-11-29T14:00:01Z"}
    assert (ollama["until"], list(ollama["missing"])) == (None, ["until"])
    assert (clone["memory_mib"], clone["memory_over"], clone["ref"]) == (None, None, "driver:box.agent/73")
    assert clone["missing"] == {"memory_mib": "no memory sample covers this moment"}
    assert clone["certain"] is True


def test_csv_has_devices_and_processes(report: Snapshot) -> None:
    """An unwatched device is a line too, so that nobody takes its silence for idleness."""
    rows = list(csv.DictReader(io.StringIO(to_csv(report))))
    assert [(row["kind"], row["host"], row["pid"]) for row in rows] == [
        ("device", "box", ""), ("process", "box", "2488996"), ("process", "box", "20862"), ("device", "far", ""),
    ]  # fmt: skip
    assert [row["unknown"] for row in rows] == ["", "", "", "watch-gap"]
    assert [row["memory_mib"] for row in rows] == ["", "14249", "", ""]
