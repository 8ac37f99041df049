"""Decayed seconds at their places: shares of devices exact, classes weighted, nothing spread."""

from __future__ import annotations

from fractions import Fraction

from gpuledger.accounting.answering import Answering
from gpuledger.accounting.decay import ONE
from gpuledger.accounting.share_places import Places
from gpuledger.accounting.share_usage import class_weight, weigh
from gpuledger.model.fairshare import Outside
from gpuledger.model.lifecycle import Placement
from gpuledger.model.reserved import PLACED
from gpuledger.model.shares import Account, Place, Shares
from gpuledger.model.workload_rows import PlacementRow

TREE = Shares(
    half_life_us=1, accounts=(Account(name="a", shares=1, users={"x": 1}), Account(name="b", shares=1)),
    class_weights=(("H100*", Fraction(2)), ("H*", Fraction(9)), ("*/1g.*", Fraction(1, 7))),
)  # fmt: skip
THIRD = PlacementRow.of(Placement(class_name="L4", share=Fraction(1, 3)))
TWO = PlacementRow.of(Placement(class_name="H100-80GB", count=2))
X, B = Place(account="a", user="x"), Place(account="b")


def usage_of(*rows: tuple[str, PlacementRow, int, int]):
    """Of (subject, placement, seconds, decayed seconds)."""
    values = {"x": {"user": "x", "team": "a"}, "y": {"user": "y", "team": "b"}, "z": {"user": "z", "team": "a"}}
    sums = {(subject, PLACED + row.placement, 0): (plain, weighted * ONE) for subject, row, plain, weighted in rows}
    return weigh(
        sums,
        placements={row.placement: row for row in (THIRD, TWO)},
        answering=Answering(values=values, versions=[]),
        places=Places(TREE),
        weights=TREE.class_weights,
    )


def test_the_first_pattern_that_fits_counts() -> None:
    """Else every device-second counts once."""
    weights = [class_weight(name, TREE.class_weights) for name in ("H100-80GB", "H200", "A100/1g.10gb", "L4", "h100")]
    assert weights == [2, 9, Fraction(1, 7), 1, 1]


def test_seconds_times_devices_times_share_times_weight() -> None:
    """Exact; and by class, the largest first."""
    found = usage_of(("x", THIRD, 100, 50), ("x", TWO, 100, 50), ("y", THIRD, 9, 9))
    assert found.by_place == {X: Fraction(50, 3) + 50 * 2 * 2, B: 3}
    parts = [(part.class_name, part.weight, part.device_seconds, part.usage) for part in found.parts(X)]
    assert parts == [("H100-80GB", 2, 200, 200), ("L4", 1, Fraction(100, 3), Fraction(50, 3))]
    assert found.parts(Place(account="a")) == ()
    assert found.outside == ()


def test_who_is_not_listed_counts_for_the_account_alone() -> None:
    """And is told; whom nobody names counts nowhere."""
    found = usage_of(("x", THIRD, 30, 30), ("z", THIRD, 60, 60), ("ghost", TWO, 5, 5))
    assert found.by_place == {X: 10, Place(account="a"): 20}
    assert found.outside == (
        Outside(team="-", project="-", user="-", account="", usage=Fraction(20), why="it names no account"),
        Outside(team="a", project="-", user="z", account="a", usage=Fraction(20), why="a does not list z"),
    )
