"""``gpuledger meter``: closes what is over, once."""

from __future__ import annotations

import csv
import io


def test_a_pass_says_what_it_closed(gpuledger, morning, now: str) -> None:
    """And a second one that nothing was new."""
    first = gpuledger("meter", "--now", now, "--format", "json").json
    assert (first["covered_from"], first["covered_until"], first["records_added"]) == (
        "2026-07-27T00:00:00Z", "2026-07-27T02:00:00Z", 5,
    )  # fmt: skip
    again = gpuledger("meter", "--now", now)
    assert (again.status, "no hour was new" in again.out) == (0, True)


def test_csv_lists_what_was_booked(gpuledger, morning, now: str) -> None:
    """One row each, with its reference."""
    rows = list(csv.DictReader(io.StringIO(gpuledger("meter", "--now", now, "--format", "csv").out)))
    assert sum(int(row["quantity"]) for row in rows if row["meter"] == "gpu.context") == 5_400_600
    assert all(row["ref"].startswith("record:box.meter/") for row in rows)


def test_now_decides_what_is_over(gpuledger, morning) -> None:
    """Four minutes after the hour it is still open."""
    assert gpuledger("meter", "--now", "2026-07-27T01:04:59Z", "--format", "json").json["records_added"] == 0
    assert gpuledger("meter", "--now", "2026-07-27T01:05:00Z", "--format", "json").json["records_added"] == 2
