"""``gpuledger import slurm``: what came in of a dump, and what must be told."""

from __future__ import annotations

from pathlib import Path

import pytest

HEADER = "JobID|Cluster|User|State|Submit|Start|End|ElapsedRaw|AllocTRES\n"
ROWS = """\
7|c1|ann|COMPLETED|2026-11-01T09:00:00|2026-11-01T10:00:00|2026-11-01T11:00:00|3600|cpu=8,gres/gpu:a100=2,gres/gpu=2
7.batch|c1||COMPLETED|2026-11-01T10:00:00|2026-11-01T10:00:00|2026-11-01T11:00:00|3600|cpu=8,gres/gpu=2
8|c1|bob|RUNNING|2026-11-01T09:00:00|2026-11-01T10:00:00|Unknown|1800|cpu=1,gres/gpu=1
9|c1|eve|COMPLETED|2026-11-01T09:00:00|2026-11-01T10:00:00|2026-11-01T11:00:00|3600|cpu=64
not a row at all
"""
NOW = ("--now", "2026-11-29T12:00:00Z")


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Two jobs with GPUs, one without, and a line that is none."""
    path = tmp_path / "sacct.txt"
    path.write_text(HEADER + ROWS, encoding="utf-8")
    return path


def test_a_dump_comes_in_once(gpuledger, dump: Path) -> None:
    """Jobs without a GPU and broken lines are told, the rest is kept; what runs is known to the dump's own time."""
    words = ("import", "slurm", dump, "--zone", "UTC", *NOW)
    first = gpuledger(*words)
    assert (first.status, "told by slurm:c1" in first.out) == (0, True)
    assert "1 workload still held devices at 2026-11-01T10:30:00Z" in " ".join(first.out.split())
    assert "1 job without a GPU left out; --include-cpu brings them in" in first.err
    assert f"{dump}:6: " in first.err
    again = gpuledger(*words, "--format", "json").json
    assert (again["added"], again["known"]) == (0, 8)


def test_columns_stand_for_a_header(gpuledger, dump: Path) -> None:
    """With blanks or without."""
    dump.write_text(ROWS, encoding="utf-8")
    names = HEADER.strip().replace("|", ", ")
    done = gpuledger("import", "slurm", dump, "--zone", "UTC", "--columns", names, *NOW, "--format", "json")
    assert (done.status, done.json["added"]) == (0, 8)


def test_jobs_without_a_gpu_come_in_as_class_cpu(gpuledger, dump: Path) -> None:
    """On request."""
    done = gpuledger("import", "slurm", dump, "--zone", "UTC", "--include-cpu", *NOW, "--format", "json")
    assert done.json["added"] == 12
    assert "without a GPU" not in done.err


def test_local_times_need_a_zone(gpuledger, dump: Path, tmp_path: Path) -> None:
    """Status 2 with what to type, and no ledger is made."""
    done = gpuledger("import", "slurm", dump, *NOW, "--format", "json")
    assert (done.status, done.error["code"], "--zone" in done.error["hint"]) == (2, "zone-needed", True)
    assert not (tmp_path / "box.db").exists()
