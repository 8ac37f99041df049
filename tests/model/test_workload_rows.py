"""The rows of reserved time say what a placement is, and give it back."""

from __future__ import annotations

from fractions import Fraction

import pytest

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
