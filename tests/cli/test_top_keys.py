"""A key and a view give a view."""

from __future__ import annotations

from itertools import accumulate

import pytest

from gpuledger.cli.top_keys import View, pressed
from gpuledger.model.holders import Arrangement, Grouping, Order


def after(keys: str, view: View | None = None) -> View:
    """The view after these keys."""
    return list(accumulate(keys, lambda before, key: pressed(key, before), initial=view or View()))[-1]


def test_g_goes_through_every_grouping_and_comes_back() -> None:
    """In the order of the help."""
    seen = [after("g" * times).arrangement.by for times in range(len(Grouping) + 1)]
    assert seen == [*Grouping, Grouping.SERVICE]


@pytest.mark.parametrize(
    ("key", "order"), [("m", Order.MEMORY), ("t", Order.HELD), ("b", Order.BUSY), ("n", Order.NAME)]
)
def test_each_order_has_its_key_and_begins_with_the_most(key: str, order: Order) -> None:
    """Whatever was turned around before."""
    assert after(f"r{key}").arrangement == Arrangement(order=order)
    assert after(f"{key}r").arrangement == Arrangement(order=order, is_reversed=True)
    assert after(f"{key}rr").arrangement == Arrangement(order=order)


def test_grouping_keeps_the_order() -> None:
    """They are two questions."""
    assert after("brg").arrangement == Arrangement(by=Grouping.USER, order=Order.BUSY, is_reversed=True)


def test_space_pauses_and_goes_on_and_the_question_mark_helps_and_hides() -> None:
    """Both are switches."""
    assert (after(" ").is_paused, after("  ").is_paused) == (True, False)
    assert (after("?").is_helping, after("?h").is_helping) == (True, False)


def test_q_ends_and_other_keys_mean_nothing() -> None:
    """A stray key changes nothing."""
    assert after("q").is_over
    assert after("Q").is_over
    assert after("xyz\n\t[A1é") == View()
