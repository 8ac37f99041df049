"""Rules in the order in which they can be followed."""

from __future__ import annotations

from gpuledger.audit.rule_order import ordered


def test_what_is_read_stands_before_who_reads_it() -> None:
    """However they are written."""
    order, rings = ordered({"a": ["b", "c"], "b": ["c"], "c": []})
    assert order == ["c", "b", "a"]
    assert rings == []


def test_rings_are_told_and_do_not_hold_up_the_others() -> None:
    """A ring of three, one of itself, and what reads them."""
    order, rings = ordered({"x": ["a"], "a": ["b"], "b": ["c"], "c": ["a"], "s": ["s"]})
    assert sorted(order) == ["a", "b", "c", "s", "x"]
    assert rings == [("a", "b", "c", "a"), ("s", "s")]


def test_a_long_chain_takes_no_stack() -> None:
    """Twenty thousand rules one behind the other."""
    order, _ = ordered({f"r{n}": [f"r{n + 1}"] if n < 19_999 else [] for n in range(20_000)})
    assert order[0] == "r19999"
