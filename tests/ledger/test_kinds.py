"""Each kind of row has its table, and each of its words a column."""

from __future__ import annotations

from dataclasses import fields

from gpuledger.ledger.kinds import KIND_OF, KINDS
from gpuledger.model.row_kinds import ROWS


def test_every_row_kind_has_a_table_in_the_order_of_the_chain() -> None:
    """KINDS lists what ROWS lists, and no field is left without a column."""
    assert tuple(kind.row for kind in KINDS) == ROWS
    for row, kind in KIND_OF.items():
        names = [column.name for column in kind.table.columns]
        assert names[: len(fields(row))] == [field.name for field in fields(row)]
        assert set(kind.key) | set(kind.figures) | {kind.time} <= set(names)
