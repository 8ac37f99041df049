"""The rules of quotas: which apply, and whether a request fits."""

from __future__ import annotations

from datetime import UTC
from fractions import Fraction

import pytest

from gpuledger.accounting.quota import bounds, counts, full_device, use_of
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, parse_moment
from gpuledger.model.quotas import NO_END, Bound, Holder, Per, Quota, QuotaUse, Scope

NOW_US = parse_moment("2026-07-27T10:00Z", now_us=0)
STAYS = Missing("nothing ends it")


def quota(scope: str = "team", name: str = "vision", limit: str = "3", per: Per = Per.AT_ONCE, of: str = "") -> Quota:
    """One entry."""
    return Quota(scope=Scope(scope), name=name, per=per, limit=Fraction(limit), class_glob=of)


def holder(
    workload: str, amount: str | Missing = "1", ends: float | None = None, *, since: float = -1, of: str = "H100-80GB",
    lapses: float | None = None, confirmed: bool = True,
) -> Holder:  # fmt: skip
    """Somebody who holds; times are hours from now."""
    return Holder(
        workload=workload, user="al", team="vision", class_name=of,
        amount=amount if isinstance(amount, Missing) else Fraction(amount), since_us=at(since),
        ends_us=NO_END if ends is None else at(ends), lapses_us=STAYS if lapses is None else at(lapses),
        is_confirmed=confirmed,
    )  # fmt: skip


def at(hour: float) -> int:
    """Microseconds of an hour from now."""
    return NOW_US + round(Fraction(hour) * HOUR_US)


def use(
    entry: Quota, holders: list[Holder], asked: str = "1", ends: float | None = None, spent: str = "0", **words: bool
) -> QuotaUse:
    """The verdict; ``spent`` in device-hours."""
    return use_of(
        Bound(quota=entry, name="vision"), holders, asked=Fraction(asked), at_us=NOW_US,
        ends_us=NO_END if ends is None else at(ends), zone=UTC, spent=lambda _, __: Fraction(spent) * 3600, **words,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "binds"),
    [
        (quota("user", "al"), ["user al"]),
        (quota("user", "*"), ["user al"]),
        (quota("user", "bo"), []),
        (quota("team", "vision"), ["team vision"]),
        (quota("team", "*"), ["team vision"]),
        (quota("team", "nlp"), []),
        (quota("role", "student"), ["role student of al"]),
        (quota("role", "*"), ["role guest of al", "role student of al"]),
        (quota("role", "prof"), []),
        (quota("team", of="H100*"), ["team vision"]),
        (quota("team", of="*80GB"), ["team vision"]),
        (quota("team", of="H100"), []),
        (quota("team", of="[no end"), []),
    ],
)
def test_a_quota_binds_whom_it_names(entry: Quota, binds: list[str]) -> None:
    """By name, or each; by a pattern of classes, and one that fits none does no harm."""
    found = bounds([entry], user="al", team="vision", roles=["student", "guest"], class_name="H100-80GB")
    assert [bound.scope_words for bound in found] == binds


def test_who_has_no_name_is_bound_by_no_quota_of_users() -> None:
    """Nor by one of a role; what the policy names a team is still the team's."""
    entries = [quota("user", "*"), quota("role", "*"), quota("team", "*")]
    assert not bounds(entries, user="-", team="-", roles=["student"], class_name="L4")
    assert [each.words for each in bounds(entries, user="", team="nlp", roles=[], class_name="L4")] == [
        "team nlp: 3 devices at once"
    ]


def test_patterns_mind_capitals_and_slices() -> None:
    """A pattern is matched as written; a slice is a class of its own."""
    assert counts(quota(of="A100*"), "A100-SXM4-40GB/1g.5gb")
    assert not counts(quota(of="a100*"), "A100-SXM4-40GB")


@pytest.mark.parametrize(
    ("held", "asked", "fits"),
    [
        ([], "3", True),
        ([], "7/2", False),
        (["1", "1"], "1", True),
        (["1", "1"], "5/4", False),
        (["1/3", "1/3", "1/3"], "2", True),
        (["1/7"] * 7, "2", True),
        (["1/7"] * 8, "2", False),
        (["4"], "1/4", False),
        (["4"], "0", True),
    ],
)
def test_devices_at_once_are_exact_sums_of_shares(held: list[str], asked: str, fits: bool) -> None:
    """Thirds and sevenths add up; what asks for none of them always fits."""
    assert use(quota(), [holder(str(n), amount) for n, amount in enumerate(held)], asked).fits is fits


def test_lapsed_other_and_uncounted_holders() -> None:
    """A hold that lapsed counts no more, another class never, and who holds nobody knows how much is told apart."""
    verdict = use(
        quota(of="H100*"),
        [
            holder("lapsed", lapses=0, confirmed=False),
            holder("held", lapses=0.1, confirmed=False),
            holder("other", of="L4"),
            holder("odd", Missing("nothing says")),
        ],
    )
    assert [each.workload for each in verdict.holders] == ["held"]
    assert [each.workload for each in verdict.unknown] == ["odd"]
    assert (verdict.used, verdict.left) == (1, 2)


@pytest.mark.parametrize(("of", "unknown"), [("H100*", ["any"]), ("c*", ["any"]), ("cpu", []), ("", [])])
def test_any_card_is_no_cpu(of: str, unknown: list[str]) -> None:
    """Who holds a card of whatever class may count in a quota of cards, and in none of class cpu."""
    verdict = use(quota(of=of), [holder("any", of="gpu")])
    assert [each.workload for each in verdict.unknown] == unknown
    assert [each.workload for each in verdict.holders] == ([] if of else ["any"])


@pytest.mark.parametrize(
    ("limit", "spent", "holders", "asked", "ends", "fits"),
    [
        ("10", "4", [], "1", 6, True),
        ("10", "4", [], "1", 6.01, False),
        ("10", "4", [holder("a", "2", 2)], "1", 2, True),
        ("10", "4", [holder("a", "2", 2)], "1", 2.01, False),
        ("10", "4", [holder("a", "2", -1)], "1", 6, True),
        ("10", "4", [holder("a", "2")], "1", 6, True),
        ("10", "9.999", [], "1", None, True),
        ("10", "10", [], "1", None, False),
        ("10", "9", [holder("a", "1", 1)], "1", None, False),
        ("0", "0", [], "1", None, False),
        ("336", "0", [], "1", 10_000, True),
        ("100", "0", [], "1", 10_000, False),
        ("0", "7", [], "0", None, True),
    ],
)
def test_device_hours_are_used_promised_and_asked_for(
    limit: str, spent: str, holders: list[Holder], asked: str, ends: float | None, fits: bool
) -> None:
    """Ends count within the period alone; who gives none asks only that something is left."""
    assert use(quota(limit=limit, per=Per.MONTH), holders, asked, ends, spent).fits is fits


def test_more_than_is_allowed_at_all_never_fits() -> None:
    """Whoever ends when."""
    verdict = use(quota(limit="1"), [holder("a", "1", 1)], "2")
    assert isinstance(verdict.frees_us, Missing)
    assert "never" in verdict.frees_us.reason


def test_a_device_is_full_beyond_its_shares() -> None:
    """Of one that has room nothing is said."""
    third = [holder("a", "1/3", 1), holder("b", "1/3", 2)]
    assert full_device("GPU-a", Fraction(1, 3), third, at_us=NOW_US) is None
    full = full_device("GPU-a", Fraction(1, 2), third, at_us=NOW_US)
    assert full is not None
    assert full.frees_us == at(1)


def test_what_holds_no_device_holds_no_place() -> None:
    """A workload that fell back to class cpu: nobody who asks why is shown it."""
    verdict = use(quota(limit="1"), [holder("a", "1", 4), holder("c", "0", of="cpu")])
    assert [each.workload for each in verdict.holders] == ["a"]
    assert verdict.frees_us == at(4)


def test_state_is_told_without_a_request() -> None:
    """``quota`` asks for nothing: what is used beyond the limit is told as it is."""
    verdict = use(quota(), [holder("a", "4")], is_asked=False)
    assert (verdict.fits, verdict.is_over, verdict.left, verdict.asked) == (True, True, -1, 0)
