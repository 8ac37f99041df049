"""Amounts of quotas that add up, and holders with why a value is missing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from gpuledger.model.missing import Missing
from gpuledger.model.quotas import NO_END, Bound, Holder, Per, Quota, QuotaUse, Scope
from gpuledger.reports.quota_cells import (
    amounts,
    asked_words,
    holder_columns,
    holder_to_json,
    holder_words,
    use_to_json,
)

HOLDER = Holder(
    workload="w", user="al", team="vision", class_name="L4", amount=Fraction(1, 4), since_us=1_500_000,
    ends_us=NO_END, lapses_us=600_000_000, is_confirmed=False, devices=("GPU-a",),
)  # fmt: skip


def used(per: Per, used: str, promised: str = "0", limit: str = "10", asked: Fraction | Missing = NO_END) -> QuotaUse:
    """A quota of which something is used."""
    quota = Quota(scope=Scope.TEAM, name="vision", per=per, limit=Fraction(limit), class_glob="H*")
    return QuotaUse(
        bound=Bound(quota=quota, name="vision"), since_us=0, until_us=0, used=Fraction(used),
        promised=Fraction(promised), asked=asked, fits=True, holders=(HOLDER,), frees_us=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("use", "shown"),
    [
        (used(Per.AT_ONCE, "7/3"), ("7/3", "0", "23/3")),
        (used(Per.AT_ONCE, "12"), ("12", "0", "-2")),
        (used(Per.DAY, "1"), ("1.000", "0.000", "9.000")),
        (used(Per.DAY, "10/3", "10/3"), ("3.334", "3.333", "3.333")),
        (used(Per.DAY, "31/3"), ("10.333", "0.000", "-0.333")),
    ],
)
def test_used_promised_and_left_add_up_to_the_limit(use: QuotaUse, shown: tuple[str, str, str]) -> None:
    """Devices exactly; hours to three decimals, by largest remainder."""
    assert amounts(use) == shown
    if use.bound.quota.per is not Per.AT_ONCE:
        assert sum(Fraction(each) for each in shown) == use.bound.quota.limit


def test_what_was_asked_for() -> None:
    """UNKNOWN for hours of who gave no end."""
    assert asked_words(used(Per.DAY, "1")) == "UNKNOWN"
    assert asked_words(used(Per.DAY, "1", asked=Fraction(1, 3))) == "0.333"
    assert asked_words(used(Per.AT_ONCE, "1", asked=Fraction(1, 3))) == "1/3"


def test_json_says_why_a_value_is_null() -> None:
    """Of a holder, and of a quota where nobody told anything."""
    found = holder_to_json(HOLDER)
    assert (found["amount"], found["ends"], found["lapses"]) == ("1/4", None, "1970-01-01T00:10:00Z")
    assert found["missing"] == {"ends": "nobody said when it will be done"}
    odd = holder_to_json(replace(HOLDER, amount=Missing("not placed"), ends_us=0))
    assert (odd["amount"], odd["missing"]) == (None, {"amount": "not placed"})
    assert "missing" not in holder_to_json(replace(HOLDER, ends_us=0))
    use = used(Per.DAY, "1")
    assert (use_to_json(use)["used"], use_to_json(use, told=False)["used"]) == ("1.000", None)
    assert use_to_json(use)["limit"] == "10"


def test_json_lists_the_longest_holders_first() -> None:
    """Also of a quota with room left, whose holders come in any order."""
    several = [replace(HOLDER, workload=name, since_us=at_us) for name, at_us in (("c", 1), ("a", 2), ("b", 1))]
    use = replace(used(Per.AT_ONCE, "3"), holders=tuple(several))
    assert [each["workload"] for each in use_to_json(use)["holders"]] == ["b", "c", "a"]


def test_holders_in_a_table() -> None:
    """Whole seconds, and whether it is confirmed."""
    columns = {column.head: str(column.cells[0]) for column in holder_columns([HOLDER])}
    assert columns["since"] == "1970-01-01T00:00:01Z"
    assert columns[""] == "admitted"
    assert columns["ends"] == "did not say"
    assert holder_words(replace(HOLDER, amount=Missing("not placed"))) == "w (UNKNOWN)"
