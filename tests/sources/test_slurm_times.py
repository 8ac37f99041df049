"""Times and durations as Slurm prints them, and the hour that the clock shows twice."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.errors import Misconfigured
from gpuledger.model.missing import Missing
from gpuledger.model.moments import SECOND_US, iso, to_datetime
from gpuledger.sources.slurm_rows import TOLD_TWICE
from gpuledger.sources.slurm_times import Times, seconds

BERLIN = ZoneInfo("Europe/Berlin")
ABSENT = Missing("test: not told")


def times(zone: ZoneInfo | None = BERLIN) -> Times:
    return Times(zone, "dump")


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-03-02T08:00:00", "2026-03-02T07:00:00Z"), ("2026-07-02T08:00:00", "2026-07-02T06:00:00Z"),
        ("2026-03-02 08:00:00", "2026-03-02T07:00:00Z"), ("2026-03-02T08:00:00Z", "2026-03-02T08:00:00Z"),
        ("2026-03-02T08:00:00+0530", "2026-03-02T02:30:00Z"), ("2026-03-02T08:00:00-05:00", "2026-03-02T13:00:00Z"),
        ("1772438400", "2026-03-02T08:00:00Z"), ("2026-03-02T08:00:00UTC", "2026-03-02T08:00:00Z"),
        ("2026-07-02 08:00:00 CEST", "2026-07-02T06:00:00Z"), ("2026-10-25T02:30:00CET", "2026-10-25T01:30:00Z"),
        ("2026-10-25T02:30:00CEST", "2026-10-25T00:30:00Z"),
    ],
)  # fmt: skip
def test_times_are_read(text: str, utc: str) -> None:
    """Local times by the zone, others by what they carry."""
    (at_us,) = times().moments(text)
    assert iso(at_us) == utc
    assert times().asked(text, ABSENT) == at_us


def test_times_that_carry_their_offset_need_no_zone() -> None:
    """Only a local time does, and it is refused with what to type."""
    unzoned = times(None)
    assert unzoned.moments("2026-03-02T08:00:00+0100") == unzoned.moments("1772434800")
    with pytest.raises(Misconfigured) as error:
        unzoned.moments("2026-03-02T08:00:00")
    assert error.value.code == "zone-needed"
    assert "--zone" in error.value.hint


def test_letters_of_another_zone_are_refused() -> None:
    """IST is three zones: letters only choose between two hours of the zone that is given."""
    with pytest.raises(ValueError, match="a time of PST, which the clocks of Europe/Berlin did not show"):
        times().moments("2026-03-02T08:00:00PST")
    with pytest.raises(Misconfigured, match="carry no zone"):
        times(None).moments("2026-03-02T08:00:00PST")


@pytest.mark.parametrize("text", ["Unknown", "None", "", "N/A", "4294967294", "2106-02-07T06:28:14Z"])
def test_no_time_is_no_time(text: str) -> None:
    """Not yet, never, and Slurm's NO_VAL; and no zone is needed for it."""
    assert isinstance(times(None).asked(text, ABSENT), Missing)


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-13-02T08:00:00", "2026-03-02T25:00:00", "08:00", "1931-03-02T08:00:00"]
)
def test_other_words_are_refused(text: str) -> None:
    """A time that is none breaks its line."""
    with pytest.raises(ValueError, match=r"is not a time|must be in|before 1970"):
        times().moments(text)


def test_a_time_beside_a_known_hour_is_checked_as_well() -> None:
    """The shortcut for hours already met lets nothing through that is no time."""
    clock = times()
    assert len(clock.moments("2026-03-02T08:00:00")) == 1
    with pytest.raises(ValueError, match=r"is not a time|must be in"):
        clock.moments("2026-03-02T08:61:00")
    with pytest.raises(ValueError, match="is not a time"):
        clock.moments("2026-03-02T08:00:00 or so")


@pytest.mark.parametrize(
    ("start", "end", "elapsed_s", "since", "until", "doubt"),
    [
        ("2025-10-26T01:30:00", "2025-10-26T02:30:00", 3600, "2025-10-25T23:30:00Z", "2025-10-26T00:30:00Z", ""),
        ("2025-10-26T01:30:00", "2025-10-26T02:30:00", 7200, "2025-10-25T23:30:00Z", "2025-10-26T01:30:00Z", ""),
        ("2025-10-26T02:30:00", "2025-10-26T03:30:00", 7200, "2025-10-26T00:30:00Z", "2025-10-26T02:30:00Z", ""),
        ("2025-10-26T02:50:00", "2025-10-26T02:10:00", 1200, "2025-10-26T00:50:00Z", "2025-10-26T01:10:00Z", ""),
        ("2025-10-26T02:10:00", "2025-10-26T02:40:00", 1800, "2025-10-26T00:10:00Z", "2025-10-26T00:40:00Z", "place"),
        ("2025-10-26T02:50:00", "2025-10-26T02:10:00", ABSENT, "2025-10-26T00:50:00Z", "2025-10-26T01:10:00Z", ""),
        ("2026-03-29T01:30:00", "2026-03-29T03:30:00", 3600, "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", ""),
        (
            "2025-10-26T02:10:00", "2025-10-26T02:40:00", ABSENT, "2025-10-26T00:10:00Z", "2025-10-26T00:40:00Z",
            "length",
        ),
        ("2025-10-26T02:10:00", "2025-10-26T04:10:00", 99, "2025-10-26T00:10:00Z", "2025-10-26T03:10:00Z", "length"),
        ("2025-10-26T02:50:00", "2025-10-26T01:10:00", ABSENT, "2025-10-26T00:50:00Z", "2025-10-25T23:10:00Z", ""),
    ],
)  # fmt: skip
def test_elapsed_tells_which_of_two_hours_is_meant(
    start: str, end: str, elapsed_s: int | Missing, since: str, until: str, doubt: str
) -> None:
    """In the night of the change an hour happens twice; where nothing tells, it is said."""
    start_us, end_us, found = times().span(start, end, elapsed_s, ABSENT)
    assert not isinstance(start_us, Missing)
    assert not isinstance(end_us, Missing)
    assert (iso(start_us), iso(end_us), found) == (since, until, doubt)


def test_an_open_run_begun_in_the_doubled_hour_is_unsure() -> None:
    """Nothing tells which of the two it is."""
    start_us, end_us, doubt = times().span("2025-10-26T02:30:00", "Unknown", 100, ABSENT)
    assert times().moments("2025-10-26T00:30:00Z") == (start_us,)
    assert isinstance(end_us, Missing)
    assert doubt == "length"
    assert times().span("Unknown", "2025-10-26T02:30:00", ABSENT, ABSENT)[2] == "length"


def test_a_time_of_asking_is_before_the_start() -> None:
    """Of the two hours the one that is; where both are, nobody knows since when it waited."""
    asked = times().asked
    first_us, second_us = times().moments("2025-10-26T02:30:00")
    assert asked("2025-10-26T02:30:00", second_us - SECOND_US) == first_us
    assert asked("2025-10-26T02:30:00", first_us - SECOND_US) == first_us
    assert asked("2025-10-26T02:30:00", second_us) == asked("2025-10-26T02:30:00", ABSENT) == TOLD_TWICE


def test_a_time_that_never_happened_is_noted() -> None:
    """The clock was set forward over it, so the zone is not that of the dump."""
    clock = times()
    clock.moments("2026-03-29T02:30:00")
    assert clock.skipped == {"2026-03-29T02:30:00"}


@given(
    st.integers(0, 4_000_000_000),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]),
)
@settings(max_examples=200, deadline=None)
def test_every_moment_is_among_what_its_local_time_can_mean(at_s: int, zone: str) -> None:
    """Whatever the zone does, and whether the hour is known already or not."""
    clock = times(ZoneInfo(zone))
    local = to_datetime(at_s * SECOND_US).astimezone(ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M:%S")
    assert at_s * SECOND_US in clock.moments(local)
    assert at_s * SECOND_US in clock.moments(local)


@pytest.mark.parametrize(
    ("text", "found"),
    [("00:00:00", 0), ("01:00:05", 3605), ("10-13:27:06", 912_426), ("03:04", 184), ("00:01.112", 1),
     ("7212", 7212), ("1-00:00:00", 86_400)],
)  # fmt: skip
def test_durations_are_read(text: str, found: int) -> None:
    """With days, without hours, with fractions, and as seconds alone."""
    assert seconds(text) == found


@pytest.mark.parametrize("text", ["", "INVALID", "UNLIMITED", "Partition_Limit", "99999999999"])
def test_no_duration_is_no_duration(text: str) -> None:
    """INVALID is what Slurm prints of a negative time; it is not 0."""
    assert isinstance(seconds(text), Missing)


@pytest.mark.parametrize("text", ["soon", "-5", "1:2:3:4", "\u0663"])
def test_other_durations_are_refused(text: str) -> None:
    """A duration that is none breaks its line."""
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(text)


def test_utc_is_a_zone() -> None:
    """A cluster whose clock shows UTC."""
    assert Times(UTC, "dump").moments("1970-01-02T00:00:00") == (86_400 * SECOND_US,)
