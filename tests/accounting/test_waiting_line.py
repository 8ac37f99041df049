"""The order of those who wait, and the pools that each can run in."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from gpuledger.accounting.fairshare import standings
from gpuledger.accounting.waiting_line import Pools, Request, in_line
from gpuledger.model.fairshare import NOT_IN_TREE
from gpuledger.model.missing import Missing
from gpuledger.model.shares import Account, Place, Shares

POOLS = Pools(
    of_host={"n1": "big"},
    of_class={"H100": frozenset({"big"}), "L4": frozenset({"small", "edge"}), "A10": frozenset({"small"})},
)


@pytest.mark.parametrize(
    ("asked", "pools"),
    [
        ({"pool": "named"}, ("named",)),
        ({"machine": "n1", "labels": {"pool": "x"}}, ("big",)),
        ({"machine": "n9", "labels": {"partition": "gpu"}}, ("gpu",)),
        ({"labels": {"partition": "gpu", "pool": "x"}}, ("x",)),
        ({"requested_class": "L4"}, ("edge", "small")),
        ({"requested_class": "A10|H100"}, ("big", "small")),
        ({"requested_class": "gpu"}, ("big", "edge", "small")),
        ({"requested_class": "B200"}, ()),
        ({}, ()),
    ],
)
def test_a_request_belongs_to_the_pools_that_something_tells(asked: dict, pools: tuple[str, ...]) -> None:
    """Placement, machine, label, then the class; nothing is guessed."""
    words = {"pool": "", "machine": "", "labels": {}, "requested_class": ""} | asked
    assert POOLS.of_request(**words) == pools


REQUEST = Request(
    workload="", user="", team="", project="", place=Missing("nobody"), since_us=0, known_until_us=0,
    requested_class="", pools=(), ref="",
)  # fmt: skip


def asks(workload: str, user: str, since_us: int) -> Request:
    place = Place(account="a", user=user) if user in "xyz" else Missing("not listed")
    return replace(REQUEST, workload=workload, user=user, place=place, since_us=since_us)


def test_first_the_lowest_rank_then_the_longest_wait_then_who_has_no_place() -> None:
    """Of two who waited equally long the name decides, so that the order is one."""
    tree = Shares(half_life_us=1, accounts=(Account(name="a", shares=1, users={"x": 1, "y": 1, "z": 1}),))
    usage = {Place(account="a", user="x"): Fraction(9), Place(account="a", user="y"): Fraction(3)}
    lines = standings(tree, {**usage, Place(account="a", user="z"): Fraction(3)})
    asked = [("w1", "x", 1), ("w2", "stranger", 0), ("w3", "z", 5), ("w4", "y", 4), ("w6", "y", 9), ("w5", "y", 9)]
    found = in_line([asks(*each) for each in asked], lines)
    assert [one.workload for one in found] == ["w4", "w3", "w5", "w6", "w1", "w2"]
    assert [one.rank for one in found] == [1, 1, 1, 1, 3, NOT_IN_TREE]
    assert found[-1].factor == NOT_IN_TREE
