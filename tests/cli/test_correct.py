"""``gpuledger correct``, and reserved time in the other verbs."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane import ControlPlane


@pytest.fixture
def plane(tmp_path: Path) -> ControlPlane:
    """Its ledger lies where the command line looks; a stop came 57 hours late."""
    made = ControlPlane(tmp_path / "box.db")
    made.run("train", 0, 3, made.placement(share="1/3"), labels='{"qos": "LS"}')
    made.meter(4)
    made.tell("train", "stopped", 1)
    made.meter(60)
    made.ledger.close()
    return made


LATE = ("--now", "2026-07-29T13:00:00Z")


def test_it_asks_before_it_books(gpuledger, plane) -> None:
    """Shown, booked, gone from blind."""
    words = ("correct", "--reason", "the log", "--by", "al", *LATE)
    assert "--yes books them" in gpuledger(*words).out
    done = gpuledger(*words, "--yes", "--format", "json")
    assert [row["delta"] for row in done.json["corrections"]] == [-3600, -3600]
    assert all(row["ref"] for row in done.json["corrections"])
    assert gpuledger("blind", *LATE, "--format", "json").json["reserved"] == []
    assert gpuledger("verify", *LATE).status == 0


def test_usage_of_reserved_time_in_three_formats(gpuledger, plane) -> None:
    """By class unless told otherwise; findings stand below, and make it strict."""
    words = ("usage", "--meter", "gpu.reserved", *LATE)
    done = gpuledger(*words)
    assert done.status == 0
    for word in ("H100-80GB", "3,600.000", "late-evidence"):
        assert word in done.out
    assert gpuledger(*words, "--strict").status == 1
    answer = gpuledger(*words, "--by", "label:qos,team", "--format", "json").json
    assert [(row["label:qos"], row["team"], row["quantity"]) for row in answer["rows"]] == [
        ("LS", "vision", "3600.000")
    ]
    assert gpuledger(*words, "--format", "csv").out.splitlines()[0] == "class,quantity,unit,seconds,provisional,owned"
    assert gpuledger(*words, "--by", "planet", "--format", "json").error["code"] == "bad-grouping"


def test_a_ledger_without_transitions_has_no_answer(gpuledger, morning) -> None:
    """UNKNOWN is 3."""
    done = gpuledger("usage", "--meter", "gpu.reserved")
    assert done.status == 3
    assert "UNKNOWN" in done.out


def test_explain_takes_the_line(gpuledger, plane) -> None:
    """With the meter that printed it."""
    done = gpuledger("explain", "user:al", "--meter", "gpu.reserved", *LATE)
    assert "event:box.transition/" in done.out
