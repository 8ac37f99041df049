"""What a table holds by month, and its rows in the order of a file."""

from __future__ import annotations

from pathlib import Path

from gpuledger.ledger.months import TABLES, held, rows_of
from gpuledger.ledger.schema import METADATA
from lakes import told


def test_every_table_can_be_exported() -> None:
    """The schema's own list."""
    assert set(TABLES) == set(METADATA.tables)


def test_months_are_counted_and_streamed_alike(tmp_path: Path) -> None:
    """Every row is in one month, in batches of any size, events by workload."""
    plane = told(tmp_path / "a.db")
    plane.meter(200)
    for table in TABLES:
        months = held(plane.ledger, table)
        for month, found in months.items():
            rows = [row for batch in rows_of(plane.ledger, table, month, batch=2) for row in batch]
            assert len(rows) == found.rows
    events = held(plane.ledger, "workload_event")
    assert {month: found.rows for month, found in events.items()} == {"2026-07": 5, "2026-08": 2}
    place = list(METADATA.tables["workload_event"].c.keys()).index("workload")
    july = [row[place] for batch in rows_of(plane.ledger, "workload_event", "2026-07") for row in batch]
    assert july == sorted(july)
    plane.ledger.close()
