"""Quotas in words, and the answer no as an error."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from gpuledger.model.lifecycle import Placement
from gpuledger.model.missing import Missing
from gpuledger.model.quotas import (
    NEVER_FITS,
    NO_END,
    AdmitReport,
    AdmitRequest,
    Bound,
    FullDevice,
    Holder,
    Per,
    Quota,
    QuotaUse,
    Scope,
    amount_words,
)

DEVICES = Quota(scope=Scope.ROLE, name="student", per=Per.AT_ONCE, limit=Fraction(1))
HOURS = Quota(scope=Scope.TEAM, name="vision", per=Per.MONTH, limit=Fraction(4001, 2), class_glob="H100*")
HOLDER = Holder(
    workload="w1", user="al", team="vision", class_name="L4", amount=Fraction(1, 4), since_us=0, ends_us=NO_END,
    lapses_us=Missing("-"),
)  # fmt: skip
REQUEST = AdmitRequest(workload="w2", placement=Placement(class_name="L4", count=2, share=Fraction(1, 4)))


def used(quota: Quota, *, fits: bool = False, asked: Fraction | Missing = Fraction(1)) -> QuotaUse:
    """A quota of which two are used."""
    return QuotaUse(
        bound=Bound(quota=quota, name=quota.name, user="al" if quota.scope is Scope.ROLE else ""), since_us=0,
        until_us=0, used=Fraction(2), promised=Fraction(0), asked=asked, fits=fits, holders=(HOLDER,), frees_us=NO_END,
    )  # fmt: skip


def answered(*uses: QuotaUse, full: tuple[FullDevice, ...] = (), frees_us: int | Missing = NO_END) -> AdmitReport:
    """A no."""
    return AdmitReport(
        request=REQUEST, at_us=0, user="al", team="vision", roles=("student",), admitted=False, hold=NO_END,
        ends_us=NO_END, uses=uses, full=full, frees_us=frees_us,
    )  # fmt: skip


def test_a_quota_says_whose_it_is_and_how_much() -> None:
    """The same words in tables, errors and guides."""
    assert used(DEVICES).bound.words == "role student of al: 1 device at once"
    assert used(HOURS).bound.words == "team vision, H100*: 2000.500 device-hours a month"
    assert (DEVICES.unit, HOURS.unit) == ("devices", "device-hours")
    assert amount_words(Fraction(2)) == "2"


def test_a_teams_holdings_count_for_a_team_and_a_users_for_the_rest() -> None:
    """A role's quota is of each user who has it."""
    assert used(DEVICES).bound.holder == (Scope.USER, "al")
    assert used(HOURS).bound.holder == (Scope.TEAM, "vision")
    own = Quota(scope=Scope.USER, name="bo", per=Per.AT_ONCE, limit=Fraction(1))
    assert Bound(quota=own, name="bo").holder == (Scope.USER, "bo")


def test_more_than_the_limit_is_over_and_less_than_nothing_is_left() -> None:
    """Facts can exceed a quota."""
    assert (used(DEVICES).is_over, used(DEVICES).left) == (True, -1)
    assert not used(HOURS).is_over


def test_a_no_tells_every_reason() -> None:
    """Quotas first, then devices; the code says which kind refused."""
    full = FullDevice(device="GPU-a", asked=Fraction(1, 4), holders=(HOLDER,) * 4, frees_us=NO_END)
    error = answered(used(DEVICES), used(HOURS, asked=NO_END), full=(full,)).refusal()
    assert error.code == "quota"
    assert error.exit_status == 4
    assert error.message == (
        "w2 is not admitted: role student of al: 1 device at once, 2 used, 1 more asked for; "
        "team vision, H100*: 2000.500 device-hours a month, 2 used, more asked for; "
        "GPU-a is held by w1 (1/4, since 1970-01-01T00:00:00Z), w1 (1/4, since 1970-01-01T00:00:00Z), "
        "w1 (1/4, since 1970-01-01T00:00:00Z) and 1 more: 1/4 more is too much"
    )
    assert "unknown" in error.hint
    only_full = answered(used(DEVICES, fits=True), full=(full,), frees_us=0).refusal()
    assert only_full.code == "device-full"
    assert "1970-01-01T00:00:00Z" in only_full.hint
    never = answered(used(DEVICES), frees_us=NEVER_FITS).refusal()
    assert never.hint == "it never fits: ask for less, or have the quota raised: gpuledger apply FILE"


def test_a_limit_is_counted_as_people_say_it() -> None:
    """No devices, a part of one device, one device, two devices."""
    words = [replace(DEVICES, limit=Fraction(limit)).limit_words for limit in ("0", "1/4", "1", "2")]
    assert words == ["0 devices at once", "1/4 device at once", "1 device at once", "2 devices at once"]


def test_an_end_is_a_time_or_a_span_from_the_admission_on() -> None:
    """The same request later means the same end as a time, another as a span."""
    assert REQUEST.ends_us(5) == NO_END
    assert replace(REQUEST, until_us=9).ends_us(5) == 9
    assert replace(REQUEST, span_us=9).ends_us(5) == 14
    assert REQUEST.amount == Fraction(1, 2)


def test_a_holder_holds_until_it_lapses() -> None:
    """At the moment of its expiry it no longer does."""
    assert HOLDER.is_held(10**18)
    assert [replace(HOLDER, lapses_us=7).is_held(at_us) for at_us in (6, 7)] == [True, False]
