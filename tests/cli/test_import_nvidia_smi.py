"""``gpuledger import nvidia-smi``: what came in, what it cannot say, and what must be told."""

from __future__ import annotations

from pathlib import Path

import pytest

GPU = "GPU-5a3c1f2e-1111-2222-3333-444455556666"
DUMP = f"""\
timestamp, gpu_uuid, pid, gpu_utilization [%], mem_utilization [%], max_memory_usage [MiB], time [ms]
2026/07/27 01:00:00.000, {GPU}, 764032, 67 %, 33 %, 328 MiB, 4115 ms
"""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """One finished process."""
    path = tmp_path / "dump.csv"
    path.write_text(DUMP, encoding="utf-8")
    return path


def test_a_dump_and_a_map_answer_who(gpuledger, dump: Path, tmp_path: Path, now: str) -> None:
    """Counts on stdout, then usage names it; the second time nothing is added."""
    pids = tmp_path / "pids.tsv"
    pids.write_text("764032\tollama\t1785113000\n", encoding="utf-8")
    words = ("import", "nvidia-smi", dump, "--pid-map", pids, "--zone", "UTC", "--now", now, "--format", "json")
    first = gpuledger(*words)
    assert (first.status, first.json["finished"], first.json["claims"], first.json["host"]) == (0, 1, 1, "box")
    assert "host-assumed" in first.err
    assert gpuledger(*words).json["added"] == 0
    rows = gpuledger("usage", "--now", now, "--format", "json").json["rows"]
    assert [(row["service"], row["quantity"]) for row in rows] == [("ollama", 4115)]


def test_local_times_need_a_zone(gpuledger, dump: Path, tmp_path: Path) -> None:
    """Status 2 with what to type, and no ledger is made."""
    done = gpuledger("import", "nvidia-smi", dump, "--host", "box", "--format", "json")
    assert (done.status, done.error["code"], "--zone" in done.error["hint"]) == (2, "zone-needed", True)
    assert not (tmp_path / "box.db").exists()


def test_a_map_with_letters_names_its_line(gpuledger, dump: Path, tmp_path: Path) -> None:
    """And imports nothing."""
    pids = tmp_path / "pids.tsv"
    pids.write_text("764032\tollama\t1785113000\nabc\tx\t1785113000\n", encoding="utf-8")
    done = gpuledger("import", "nvidia-smi", dump, "--pid-map", pids, "--zone", "UTC")
    assert (done.status, f"{pids}:2" in done.err) == (2, True)
    assert not (tmp_path / "box.db").exists()


def test_table_and_csv(gpuledger, dump: Path, now: str) -> None:
    """A sentence for eyes, one row of counts for scripts."""
    words = ("import", "nvidia-smi", dump, "--host", "box", "--zone", "UTC", "--now", now)
    assert "1 finished process" in gpuledger(*words).out
    assert gpuledger(*words, "--format", "csv").out.splitlines()[0].startswith("path,host,readings,finished")
