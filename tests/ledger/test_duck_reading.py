"""A reading whose rule runs elsewhere gives what any reading gives."""

from __future__ import annotations

from pathlib import Path

from gpuledger.ledger.duck import Duck
from gpuledger.ledger.duck_reading import DuckReading
from gpuledger.ledger.reserved import Reading, make_relations
from gpuledger.model.moments import HOUR_US
from lakes import told


def test_the_same_intervals_and_amounts(tmp_path: Path) -> None:
    """Numbers, events and all."""
    plane = told(tmp_path / "a.db")
    marks = plane.ledger.marks()
    hours = [(plane.at(hour), plane.at(hour) + HOUR_US) for hour in range(160)]
    found = []
    with Duck(tmp_path) as duck:
        for make in (Reading, lambda ledger, marks: DuckReading(ledger, marks, duck)):
            make_relations(plane.ledger)
            with plane.ledger.snapshot():
                read = make(plane.ledger, marks)
                read.want_living(plane.at(0), plane.at(160))
                read.derive(hours, until_us=plane.at(160))
                rows = []
                for name in ("metered_run", "metered_amount"):
                    read.cursor.execute(f"SELECT * FROM {name} ORDER BY 1, 2")
                    rows.append(read.cursor.fetchall())
                found.append(rows)
    assert found[0] == found[1]
    assert len(found[0][0]) == 3
    plane.ledger.close()
