"""``gpuledger capacity``: what is queued and held, and nothing where nothing is known."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

TRACE = """\
job,asked,from,to,wanted,got
1,0,60,3660,L4,L4
2,0,600,4200,L4|A10,A10
3,0,1200,4800,L4,A100
"""
MAP = """\
columns: {id: job, pending: asked, start: from, end: to, requested_class: wanted, class: got}
constants: {devices: 1}
origin: 2026-11-01
"""
NOW = ("--now", "2026-11-29T12:00:00Z")


@pytest.fixture
def queue(gpuledger, tmp_path: Path):
    """Three jobs that waited 1, 10 and 20 minutes; the last was given something else."""
    trace, trace_map = tmp_path / "queue.csv", tmp_path / "queue.yaml"
    trace.write_text(TRACE, encoding="utf-8")
    trace_map.write_text(MAP, encoding="utf-8")
    assert gpuledger("import", "trace", trace, "--map", trace_map, *NOW).status == 0
    return gpuledger


def test_by_class(queue) -> None:
    """Waits, fallbacks, and how many are held."""
    found = queue("capacity", *NOW, "--format", "json").json
    lines = {line["class"]: line for line in found["classes"]}
    assert sorted(lines) == ["A10", "A100", "L4", "L4|A10"]
    assert (lines["L4"]["wait_p50_us"], lines["L4"]["wait_p95_us"]) == (60_000_000, 1_200_000_000)
    assert (lines["L4"]["fallbacks"], lines["L4"]["instead"]) == (1, {"A100": 1})
    assert lines["L4|A10"]["fallbacks"] == 0
    assert (lines["A10"]["peak"], found["all"]["peak"], found["all"]["mean"]) == ("1", "3", "9/4")
    assert (found["since"], found["until"]) == ("2026-11-01T00:00:00Z", "2026-11-01T01:20:00Z")


def test_table_and_csv(queue) -> None:
    """For eyes, and for sheets; one class alone."""
    table = queue("capacity", *NOW)
    assert (table.status, "L4: given A100 1 time" in table.out) == (0, True)
    rows = list(csv.DictReader(io.StringIO(queue("capacity", "--class", "A10", *NOW, "--format", "csv").out)))
    assert [row["class"] for row in rows] == ["A10", "L4|A10"]


def test_nothing_known_is_unknown(queue) -> None:
    """Status 3, not a table of zeros."""
    done = queue("capacity", "--since", "2026-11-02", *NOW)
    assert (done.status, "UNKNOWN" in done.out) == (3, True)


def test_an_empty_window_is_refused(queue) -> None:
    """Status 2."""
    done = queue("capacity", "--since", "2026-11-02", "--until", "2026-11-01", *NOW, "--format", "json")
    assert (done.status, done.error["code"]) == (2, "empty-window")
