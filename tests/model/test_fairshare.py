"""The answer of ``fairshare``: what it counts of itself."""

from __future__ import annotations

from fractions import Fraction

from gpuledger.model.fairshare import NO_FACTOR, NO_LEVEL, NO_RANK, FairShareReport, ShareLine
from gpuledger.model.shares import Algorithm, Place


def test_only_places_in_line_are_counted() -> None:
    """An account has no rank; its users have."""
    none = Fraction(0)
    lines = tuple(
        ShareLine(
            place=Place(account="vision", user=user), depth=depth, shares=1, level_shares=1, stands_below="",
            norm_shares=none, usage=none, own_usage=none, norm_usage=none, effective_usage=none, level_fs=NO_LEVEL,
            factor=NO_FACTOR, rank=rank,
        )
        for user, depth, rank in (("", 0, NO_RANK), ("alice", 1, 1), ("bob", 1, 1))
    )  # fmt: skip
    report = FairShareReport(
        at_us=0, algorithm=Algorithm.FAIR_TREE, half_life_us=1, class_weights=(), policy=1, policy_ref="", since_us=0,
        total=none, lines=lines, outside=(), waiting=(), poolless=0, pool="", gaps=(), told=True,
    )  # fmt: skip
    assert report.ranked == 2
