"""Every kind of row stands in the one list, once."""

from __future__ import annotations

from gpuledger.model import archive, rows, workload_rows
from gpuledger.model.row_kinds import EVIDENCE, ROWS
from gpuledger.model.rows import Row


def test_every_row_class_is_listed_once() -> None:
    """Those of all three modules; a row that is forgotten here could not be written."""
    defined = {
        each
        for module in (archive, rows, workload_rows)
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Row) and each is not Row
    }
    assert defined == set(ROWS)
    assert len(ROWS) == len(defined) == len({row.kind for row in ROWS})


def test_reserved_time_is_evidence() -> None:
    """Placements come before the events and holds that name them, and these before expected ends."""
    kinds = [row.kind for row in EVIDENCE]
    assert kinds[-4:] == ["placement", "event", "hold", "expected"]
