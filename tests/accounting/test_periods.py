"""Where periods begin, and how long they are."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from gpuledger.accounting.periods import period_of
from gpuledger.model.moments import DAY_US, HOUR_US, iso, parse_moment
from gpuledger.model.quotas import Per


@pytest.mark.parametrize(
    ("at", "per", "zone", "since", "until"),
    [
        ("2026-07-15T12:00Z", Per.MONTH, "UTC", "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z"),
        ("2026-12-31T23:59:59Z", Per.MONTH, "UTC", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("2026-07-31T22:30Z", Per.MONTH, "Europe/Berlin", "2026-07-31T22:00:00Z", "2026-08-31T22:00:00Z"),
        ("2026-07-31T21:30Z", Per.MONTH, "Europe/Berlin", "2026-06-30T22:00:00Z", "2026-07-31T22:00:00Z"),
        ("2026-10-31T23:00Z", Per.MONTH, "Europe/Berlin", "2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z"),
        ("2026-02-10T00:00Z", Per.MONTH, "America/New_York", "2026-02-01T05:00:00Z", "2026-03-01T05:00:00Z"),
        ("2026-07-27T00:00Z", Per.WEEK, "UTC", "2026-07-27T00:00:00Z", "2026-08-03T00:00:00Z"),
        ("2026-07-26T23:59Z", Per.WEEK, "UTC", "2026-07-20T00:00:00Z", "2026-07-27T00:00:00Z"),
        ("2026-10-25T12:00Z", Per.DAY, "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
        ("2026-03-29T12:00Z", Per.DAY, "Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
        ("2026-07-15T12:00Z", Per.DAY, "UTC", "2026-07-15T00:00:00Z", "2026-07-16T00:00:00Z"),
    ],
)
def test_a_period_begins_and_ends_at_midnights_of_its_zone(
    at: str, per: Per, zone: str, since: str, until: str
) -> None:
    """Days of 23 and 25 hours, weeks from Monday, months that end in another offset than they began with."""
    period = period_of(parse_moment(at, now_us=0), per, ZoneInfo(zone))
    assert [iso(edge) for edge in period] == [since, until]


def test_a_midnight_that_is_skipped_is_the_moment_after_it() -> None:
    """In Cairo the clock went from 00:00 to 01:00 on the last Friday of April 2026."""
    since_us, until_us = period_of(parse_moment("2026-04-24T12:00Z", now_us=0), Per.DAY, ZoneInfo("Africa/Cairo"))
    assert (iso(since_us), until_us - since_us) == ("2026-04-23T22:00:00Z", 23 * HOUR_US)


def test_periods_follow_each_other_without_a_gap() -> None:
    """The end of one is the beginning of the next, over a whole year."""
    for per in (Per.DAY, Per.WEEK, Per.MONTH):
        at_us = parse_moment("2026-01-01", now_us=0)
        since_us, until_us = period_of(at_us, per, ZoneInfo("Europe/Berlin"))
        while until_us < at_us + 366 * DAY_US:
            assert since_us < until_us
            following = period_of(until_us, per, ZoneInfo("Europe/Berlin"))
            assert following[0] == until_us
            since_us, until_us = following


def test_at_once_is_a_moment() -> None:
    """Devices at once have no period."""
    assert period_of(7, Per.AT_ONCE, UTC) == (7, 7)
