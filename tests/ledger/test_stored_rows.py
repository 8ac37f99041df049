"""Rows that were appended, read when somebody looks."""

from __future__ import annotations

import pytest

from control_plane import ControlPlane
from gpuledger.ledger.stored_rows import StoredRows
from gpuledger.model.rows import UsageRecord

EVERY_STORE = True


def test_a_sequence_of_the_rows_under_these_numbers(new_place) -> None:
    """Its length is known; rows come in the order of the chain, and no other writer's."""
    plane = ControlPlane(new_place("plane.db"))
    plane.run("a", 0, 4, plane.placement())
    plane.meter(2.2)
    plane.meter(5, writer="far.meter")
    rows = StoredRows(plane.ledger, UsageRecord, "box.meter", [range(1, 2), range(2, 3), range(3, 3)])
    assert len(rows) == 2
    assert [row.number for row in rows] == [1, 2]
    assert (rows[0].number, rows[-1].number, [row.number for row in rows[1:]]) == (1, 2, [2])
    assert rows == tuple(rows)
    assert rows != ()
    assert hash(rows) == hash(rows)
    assert StoredRows(plane.ledger, UsageRecord, "box.meter", []) == ()
    with pytest.raises(IndexError):
        rows[2]
    with pytest.raises(IndexError):
        rows[-3]
    plane.ledger.close()
