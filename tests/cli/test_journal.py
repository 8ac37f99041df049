"""``gpuledger journal``: what each reading found, oldest to newest."""

from __future__ import annotations

import csv
import io


def test_lines_are_in_the_order_of_time(gpuledger, morning, now: str) -> None:
    """In JSON and CSV, with the reference that explain takes."""
    rows = list(csv.DictReader(io.StringIO(gpuledger("journal", "--now", now, "--format", "csv").out)))
    assert len(rows) == 3
    lines = gpuledger("journal", "--now", now, "--format", "json").json
    lines = lines["lines"] if isinstance(lines, dict) else lines
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    assert gpuledger("explain", lines[0]["ref"], "--now", now).status == 0


def test_a_span_that_says_nothing_counts_when_strict(gpuledger, box, now: str) -> None:
    """Accounting off for an hour."""
    box.append(box.device(0), box.looking(0, 60, status="accounting-disabled"))
    box.ledger.close()
    assert gpuledger("journal", "--now", now).status == 0
    assert gpuledger("journal", "--now", now, "--strict").status == 1
    assert "accounting" in gpuledger("journal", "--now", now).out


def test_a_journal_without_a_line_is_status_3(gpuledger, box, now: str) -> None:
    """Nothing was ever read."""
    box.ledger.close()
    assert gpuledger("journal", "--now", now).status == 3
