"""The rows of reserved time say what a placement is, and give it back."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.model.lifecycle import Placement
from gpuledger.model.workload_rows import PlacementRow


@pytest.mark.parametrize(
    "placement",
    [
        Placement(class_name="L4"),
        Placement(class_name="cpu", count=0),
        Placement(class_name="A100/1g.5gb", region="eu", machine="m", pool="p", devices=("GPU-a", "MIG-b"), count=2,
                  share=Fraction(3, 7)),
    ],
)  # fmt: skip
def test_a_placement_comes_back_from_its_row(placement: Placement) -> None:
    """Exactly, under its key."""
    row = PlacementRow.of(placement)
    assert row.read() == placement
    assert row.placement == placement.key


def test_no_row_is_made_of_names_that_no_ledger_should_hold() -> None:
    """A row that an older version wrote is read all the same."""
    with pytest.raises(Misconfigured, match="printable"):
        PlacementRow.of(Placement(class_name="L\t4"))
    old = PlacementRow(
        placement="k", class_name="L\t4", region="", machine="", pool="", devices="[]", count=1, share_num=1,
        share_den=1,
    )  # fmt: skip
    assert old.read().class_name == "L\t4"
