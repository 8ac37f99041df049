"""When there will be room: by the ends that holders gave, and by periods that have enough hours."""

from __future__ import annotations

from datetime import UTC
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest

from gpuledger.accounting import room
from gpuledger.accounting.periods import period_of
from gpuledger.accounting.quota import use_of
from gpuledger.accounting.room import Wish, amount_of, first_room, hours_room, joint_room, last_room, still_us
from gpuledger.model.missing import Missing
from gpuledger.model.moments import HOUR_US, iso, parse_moment
from gpuledger.model.quotas import NEVER_FITS, NO_END, Bound, Holder, Per, Quota, QuotaUse, Scope

NOW_US = parse_moment("2026-07-27T10:00Z", now_us=0)  # a Monday
STAYS = Missing("nothing ends it")


def quota(limit: str, per: Per = Per.DAY) -> Quota:
    """One entry, of device-hours unless said."""
    return Quota(scope=Scope.TEAM, name="vision", per=per, limit=Fraction(limit))


def holder(
    workload: str, amount: str = "1", ends: float | None = None, *, lapses: float | None = None, confirmed: bool = True
) -> Holder:
    """Somebody who holds; times are hours from now."""
    return Holder(
        workload=workload, user="al", team="vision", class_name="L4", amount=Fraction(amount), since_us=at(-1),
        ends_us=NO_END if ends is None else at(ends), lapses_us=STAYS if lapses is None else at(lapses),
        is_confirmed=confirmed,
    )  # fmt: skip


def at(hour: float) -> int:
    """Microseconds of an hour from now."""
    return NOW_US + round(Fraction(hour) * HOUR_US)


def wish(amount: str = "1", hours: float | None = None) -> Wish:
    """What is asked for."""
    return Wish(amount=Fraction(amount), length_us=NO_END if hours is None else round(Fraction(hours) * HOUR_US))


def use(entry: Quota, holders: list[Holder], wanted: Wish, spent: str = "0") -> QuotaUse:
    """A quota with what of it is used; ``spent`` in device-hours."""
    return use_of(
        Bound(quota=entry, name="vision"), holders, asked=wanted.amount, at_us=NOW_US, zone=UTC,
        ends_us=NO_END if isinstance(wanted.length_us, Missing) else NOW_US + wanted.length_us,
        spent=lambda _, __: Fraction(spent) * 3600,
    )  # fmt: skip


def told(moment: int | Missing) -> str:
    """A moment in UTC, or why there is none."""
    return moment.reason if isinstance(moment, Missing) else iso(moment)[5:16]


@pytest.mark.parametrize(
    ("holders", "missing", "frees"),
    [
        ([holder("a", "1", 4)], "1", 4),
        ([holder("a", "1", 4), holder("b", "1", 2)], "1", 2),
        ([holder("a", "1", 4), holder("b", "1", 2)], "2", 4),
        ([holder("a", "1/2", 4), holder("b", "1", 2)], "5/4", 4),
        ([holder("a", "1", 4), holder("b", "1")], "1", 4),
        ([holder("a", "1", 4), holder("b", "1")], "2", "b gave no end"),
        ([holder("a", "1", -1)], "1", "a should have ended at 2026-07-27T09:00:00Z"),
        ([holder("a", "1", 4, lapses=0.05)], "1", 0.05),
        ([holder("a", "1", lapses=0.05, confirmed=False)], "1", "a gave no end"),
        ([holder(name) for name in "abcde"], "5", "a gave no end, b gave no end, c gave no end and 2 more"),
        ([holder("a", "1", 4)], "2", "never: it asks for more than is allowed at all"),
        ([holder("a"), holder("b", "0")], "1", "a gave no end"),
    ],
)
def test_the_earliest_place_is_what_holders_said(holders: list[Holder], missing: str, frees: float | str) -> None:
    """The first moment at which enough is given back; unknown with who did not say, or did not keep to it."""
    found = first_room(holders, Fraction(missing), at_us=NOW_US)
    assert (found.reason if isinstance(found, Missing) else found) == (frees if isinstance(frees, str) else at(frees))


def test_all_of_it_fits_with_the_last() -> None:
    """What never comes goes before what nobody knows, and that before any time."""
    unknown = Missing("a gave no end")
    assert last_room([], at_us=5) == 5
    assert last_room([7, 9], at_us=5) == 9
    assert last_room([7, unknown, unknown], at_us=5) == unknown
    assert last_room([unknown, NEVER_FITS, 7], at_us=5) == NEVER_FITS


def test_a_full_period_is_empty_again_with_the_next() -> None:
    """Hours are not given back, so the earliest place is where the period ends."""
    verdict = use(quota("10"), [], wish(), spent="10")
    assert told(verdict.frees_us) == "07-28T00:00"
    assert isinstance(verdict.asked, Missing)


@pytest.mark.parametrize(
    ("limit", "holders", "amount", "hours", "frees"),
    [
        ("10", [], "1", 8, "07-28T00:00"),
        ("10", [holder("a", "2", 17)], "1", 4, "07-28T00:00"),  # six of tomorrow are promised, four are left
        ("10", [holder("a", "2", 17)], "1", 5, "07-29T00:00"),
        ("10", [holder("a", "2", 17)], "1", None, "07-28T00:00"),
        ("10", [holder("a", "1", 14 + 3 * 24)], "1", None, "07-31T00:00"),
        ("10", [holder("a")], "1", 8, "07-28T00:00"),  # who gave no end promised nothing
        ("10", [holder("a", "1", -1)], "1", 8, "07-28T00:00"),
        ("30", [holder("a", "2", 26)], "1", 30, "07-29T00:00"),  # of thirty hours a day takes twenty-four
        ("20", [], "1", 30, "never: it asks for more than is allowed at all"),
        ("0", [], "1", None, "never: it asks for more than is allowed at all"),
        ("10", [holder("a", "1", 14 + 24 * 500)], "1", 8,
         "not before 2027-09-01T00:00:00Z: each day until then is promised"),
    ],
)  # fmt: skip
def test_hours_wait_for_a_period_that_has_enough(
    limit: str, holders: list[Holder], amount: str, hours: float | None, frees: str
) -> None:
    """Beside what holders promised of it; today's are used up."""
    assert told(use(quota(limit), holders, wish(amount, hours), spent=limit).frees_us) == frees


@pytest.mark.parametrize("per", [Per.DAY, Per.WEEK])
def test_promises_are_the_sum_of_each_holder(per: Per) -> None:
    """Thirds and sevenths, ends within a period and on its edges: as one adds them up holder by holder."""
    amounts = ["1/3", "2", "1/7", "5/4"]
    ends = [-1, 14, 14 + 24, 14 + 24 * 6, Fraction(100, 7), 61.25, 200, 900, None]
    holders = [holder(f"{end} {amount}", amount, end) for end in ends for amount in amounts]
    limit, wanted = Fraction(2, 3) * sum(map(Fraction, amounts)) * 24, wish("1", 0.5)
    since_us, until_us = period_of(NOW_US, per, UTC)
    free = Fraction(-1)
    while free < Fraction(1, 2):
        since_us, until_us = period_of(until_us, per, UTC)
        promised = sum(amount_of(each) * still_us(each.ends_us, since_us, until_us) for each in holders)
        free = limit - Fraction(promised) / HOUR_US
    assert use(quota(str(limit), per), holders, wanted, spent=str(limit)).frees_us == since_us
    assert (since_us - NOW_US) // (24 * HOUR_US) > 5


def test_of_a_full_year_each_holder_is_summed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of periods cost no more looks at who holds than one."""
    looked: list[str] = []

    def counted(each: Holder) -> Fraction:
        looked.append(each.workload)
        return amount_of(each)

    monkeypatch.setattr(room, "amount_of", counted)
    holders = [holder(str(number), "1/3", 24 * 500) for number in range(50)]
    found = hours_room(
        quota("300"), holders, wish("1", 8), left=Fraction(0), at_us=NOW_US, from_us=NOW_US, zone=UTC
    )  # fmt: skip
    assert told(found) == "not before 2027-09-01T00:00:00Z: each day until then is promised"
    assert len(looked) <= 2 * len(holders)


def test_a_longer_period_may_be_the_first_that_has_enough() -> None:
    """A month of 28 days asks a device that stays for less than one of 31."""
    found = hours_room(
        quota(str(28 * 24), Per.MONTH), [], wish("1", 24 * 60), left=Fraction(0), at_us=NOW_US, from_us=NOW_US, zone=UTC
    )
    assert told(found) == "02-01T00:00"
    never = hours_room(
        quota(str(28 * 24 - 1), Per.MONTH), [], wish("1", 24 * 60), left=Fraction(0), at_us=NOW_US, from_us=NOW_US,
        zone=UTC,
    )  # fmt: skip
    assert never == NEVER_FITS


def test_a_period_begins_in_its_zone() -> None:
    """Midnight of Berlin, and the day of 23 hours has room for what the others have not."""
    spring_us = parse_moment("2027-03-26T10:00Z", now_us=0)
    found = hours_room(
        quota("23"), [], wish("1", 100), left=Fraction(0), at_us=spring_us, from_us=spring_us,
        zone=ZoneInfo("Europe/Berlin"),
    )  # fmt: skip
    assert told(found) == "03-27T23:00"


def test_a_place_needs_the_hours_of_its_own_period() -> None:
    """A device comes free at two at night: tomorrow may have too few hours for what fits today."""
    devices = use(quota("1", Per.AT_ONCE), [holder("a", "1", 16)], wish("1", 12))
    hours = use(quota("13"), [holder("a", "1", 16)], wish("1", 12))
    assert (devices.fits, hours.fits) == (False, False)
    roomy = use(quota("26"), [holder("a", "1", 16)], wish("1", 12))
    assert roomy.fits

    def joint(*uses: QuotaUse) -> str:
        return told(joint_room(uses, [], wish("1", 12), at_us=NOW_US, zone=UTC))

    assert joint(devices) == joint(devices, roomy) == "07-28T02:00"
    assert joint(hours) == "07-29T00:00"  # tomorrow two are promised of thirteen
    assert joint(devices, hours) == "07-29T00:00"
    tight = use(quota("29/2"), [holder("b", "1", 14 + 3)], wish("1", 0.5))
    assert tight.fits
    assert joint(devices, tight) == "07-29T00:00"  # three of tomorrow are promised, and twelve more are too many


def test_who_gave_no_end_leaves_later_hours_in_doubt() -> None:
    """When a device comes free in the middle of a day, nobody knows how much of the day such a one will have used."""
    devices = use(quota("1", Per.AT_ONCE), [holder("a", "1", 20)], wish("1", 4))
    for limit, expected in (("24", "b gave no end"), ("32", "07-28T06:00")):
        hours = use(quota(limit), [holder("b", "2")], wish("1", 0))
        found = joint_room([devices, hours], [], wish("1", 18), at_us=NOW_US, zone=UTC)
        assert told(found) == expected, limit


def test_devices_that_never_have_room_end_the_search() -> None:
    """Nor do those whose holders did not say."""
    hours = use(quota("10"), [], wish("1", 8), spent="10")
    assert joint_room([hours], [NEVER_FITS], wish("1", 8), at_us=NOW_US, zone=UTC) == NEVER_FITS
    assert joint_room([hours], [Missing("x")], wish("1", 8), at_us=NOW_US, zone=UTC) == Missing("x")
    assert told(joint_room([hours], [at(20)], wish("1", 8), at_us=NOW_US, zone=UTC)) == "07-28T06:00"
