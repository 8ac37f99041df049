"""Slurm's accounting, read from a file: who says so, and each run begun anew."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gpuledger.errors import BadInput, Misconfigured
from gpuledger.model.lifecycle import State
from gpuledger.operations.import_slurm import read_slurm

HEADER = "JobID|Cluster|User|State|Submit|Start|End|ElapsedRaw|AllocTRES\n"
ROWS = (
    "7|c1|ann|COMPLETED|2026-11-01T09:00:00|2026-11-01T10:00:00|2026-11-01T11:00:00|3600|gres/gpu:a100=2\n"
    "8||bob|RUNNING|2026-11-01T09:00:00|2026-11-01T10:00:00|Unknown|1800|gres/gpu=1\n"
)


def write(folder: Path, text: str) -> Path:
    path = folder / "sacct.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_each_row_is_told_by_its_own_cluster(tmp_path: Path) -> None:
    """So the same row of another dump has the same source; one name for all stands where it is given."""
    path = write(tmp_path, HEADER + ROWS)
    found = read_slurm(path, zone="UTC").history
    assert {(each.user, each.source) for each in found.transitions} == {("ann", "slurm:c1"), ("bob", "slurm")}
    assert found.source == "slurm"
    named = read_slurm(path, zone="UTC", cluster="c1").history
    assert {each.source for each in (named, *named.transitions)} == {"slurm:c1"}
    assert read_slurm(path, zone="UTC", source="hpc").history.transitions[0].source == "hpc"


def test_each_run_begins_with_its_devices(tmp_path: Path) -> None:
    """Pending, then provisioning and running at one moment."""
    found = read_slurm(write(tmp_path, HEADER + ROWS), zone="UTC").history
    assert [each.state for each in found.transitions if each.user == "ann"] == [
        State.PENDING, State.PROVISIONING, State.RUNNING, State.STOPPED,
    ]  # fmt: skip


def test_columns_stand_for_a_header_and_json_is_seen(tmp_path: Path) -> None:
    """The three spellings of a dump."""
    columns = HEADER.strip().split("|")
    assert len(read_slurm(write(tmp_path, ROWS), zone="UTC", columns=columns).history.transitions) == 7
    job = {
        "job_id": 7, "cluster": "c1", "user": "ann", "state": {"current": ["COMPLETED"]},
        "time": {"submission": 100, "start": 3600, "end": 7200, "elapsed": 3600},
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 2}]},
    }  # fmt: skip
    found = read_slurm(write(tmp_path, json.dumps({"jobs": [job]}))).history
    assert [each.at_us for each in found.transitions if each.state is State.RUNNING] == [3600 * 1_000_000]


@pytest.mark.parametrize(("zone", "code"), [(None, "zone-needed"), ("Mars/Olympus", "unknown-zone")])
def test_local_times_need_a_zone_there_is(tmp_path: Path, zone: str | None, code: str) -> None:
    """Refused whole."""
    with pytest.raises(Misconfigured) as refused:
        read_slurm(write(tmp_path, HEADER + ROWS), zone=zone)
    assert refused.value.code == code


def test_a_packed_dump_is_told_with_what_unpacks_it(tmp_path: Path) -> None:
    """As traces and transitions are; a NUL byte in line 1 helps nobody."""
    path = tmp_path / "dump.txt.gz"
    path.write_bytes(gzip.compress((HEADER + ROWS).encode()))
    with pytest.raises(BadInput, match="packed by gzip") as refused:
        read_slurm(path, zone="UTC")
    assert (refused.value.code, refused.value.hint) == ("not-text", f"gunzip -c {path} | gpuledger ... -")
