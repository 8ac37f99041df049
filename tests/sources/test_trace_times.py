"""Times of traces: exact microseconds, local clocks that jump, and figures that cannot be meant."""

from __future__ import annotations

from datetime import UTC
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.model.moments import HOUR_US, parse_moment
from gpuledger.sources.trace_times import CLOCK, COUNTED, LATEST_US, Times, ZoneNeeded, is_pattern, zone_named

BERLIN = ZoneInfo("Europe/Berlin")
SPREADSHEET = "%d.%m.%Y %H:%M"


def at(text: str) -> int:
    return parse_moment(text, now_us=0)


@pytest.mark.parametrize(
    ("unit", "text", "us"),
    [
        ("s", "1594000000", 1_594_000_000_000_000),
        ("s", "1594000000.5", 1_594_000_000_500_000),
        ("s", "1594000000.123456", 1_594_000_000_123_456),
        ("s", "1594000000.1234569", 1_594_000_000_123_456),  # cut, as a float prints more than it knows
        ("s", "0", 0),
        ("s", "7.", 7_000_000),
        ("ms", "1594000000123", 1_594_000_000_123_000),
        ("ms", "1594000000123.4", 1_594_000_000_123_400),
        ("us", "1594000000123456", 1_594_000_000_123_456),
        ("ns", "1594000000123456789", 1_594_000_000_123_456),
        ("ns", "1.594e18", 1_594_000_000_000_000),
        ("min", "26566666.5", 1_593_999_990_000_000),
        ("h", "442777", 1_593_997_200_000_000),
        ("d", "18449", 1_593_993_600_000_000),
        ("s", "1.594e9", 1_594_000_000_000_000),
        ("us", "1.5940000001234567e+15", 1_594_000_000_123_456),
        ("iso", "2020-07-06 01:46:40 UTC", 1_594_000_000_000_000),
        ("iso", "2020-07-06T01:46:40Z", 1_594_000_000_000_000),
        ("iso", "2020-07-06 03:46:40.5+02:00", 1_594_000_000_500_000),
        ("%Y/%m/%d %H:%M:%S %z", "2020/07/06 03:46:40 +0200", 1_594_000_000_000_000),
    ],
)
def test_times_are_exact_in_every_unit(unit: str, text: str, us: int) -> None:
    """Nothing passes through a float."""
    assert Times(unit=unit).read(text) == (us,)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "iso", SPREADSHEET])
@pytest.mark.parametrize(
    "text", ["", "soon", "e9", "1e", "1e999", "1,5", "0x10", "\u0661", "--1", "9" * 21, "9" * 18, "nan", "1 2"]
)
def test_what_is_no_time_says_so(unit: str, text: str) -> None:
    """Each with a sentence that quotes it."""
    with pytest.raises(ValueError, match=r"is not|outside"):
        Times(unit=unit, zone=UTC).read(text)


def test_negative_and_far_times_are_told_apart_from_nonsense() -> None:
    """A sign is named; a figure in another unit asks for the unit."""
    with pytest.raises(ValueError, match="'-5' is negative"):
        Times().read("-5")
    with pytest.raises(ValueError, match="is the unit of times right"):
        Times(unit="s").read("1594000000123")


def test_a_count_begins_at_its_origin() -> None:
    """Days of a trace that counts from 0 get their date by declaration only."""
    times = Times(unit="s", origin_us=at("2020-07-01"))
    assert times.read("86400.25") == (at("2020-07-02") + 250_000,)


def test_local_times_follow_the_clocks_of_their_zone() -> None:
    """Winter and summer differ by an hour; without a zone they mean nothing."""
    times = Times(unit=SPREADSHEET, zone=BERLIN)
    assert times.read("01.12.2026 12:00") == (at("2026-12-01T11:00:00Z"),)
    assert times.read("01.07.2026 12:00") == (at("2026-07-01T10:00:00Z"),)
    with pytest.raises(ZoneNeeded, match="is a local time"):
        Times(unit=SPREADSHEET).read("01.07.2026 12:00")


def test_an_hour_that_was_skipped_is_refused() -> None:
    """No clock showed 02:30 that night."""
    with pytest.raises(ValueError, match="skipped by the clocks of Europe/Berlin"):
        Times(unit="iso", zone=BERLIN).read("2026-03-29 02:30")
    assert Times(unit="iso", zone=BERLIN).read("2026-03-29 03:00") == (at("2026-03-29T01:00:00Z"),)


def test_an_hour_that_came_twice_gives_both_unless_it_is_declared() -> None:
    """An hour apart, in their order; the first minute after it is one again."""
    first, second = at("2026-10-25T00:30:00Z"), at("2026-10-25T01:30:00Z")
    text = "2026-10-25 02:30"
    assert Times(unit="iso", zone=BERLIN).read(text) == (first, second)
    assert Times(unit="iso", zone=BERLIN, repeated_hour="first").read(text) == (first,)
    assert Times(unit="iso", zone=BERLIN, repeated_hour="second").read(text) == (second,)
    assert Times(unit="iso", zone=BERLIN).read("2026-10-25 03:00") == (second + HOUR_US // 2,)


def test_durations_have_units_of_their_own() -> None:
    """Hours of a spreadsheet, with its comma."""
    times = Times(decimal_comma=True)
    assert times.lasting("1,5", "h") == 3 * HOUR_US // 2
    assert times.lasting("90", "min") == 3 * HOUR_US // 2
    with pytest.raises(ValueError, match="is negative"):
        times.lasting("-1", "h")


@pytest.mark.parametrize(
    ("unit", "good"),
    [(SPREADSHEET, True), ("%Y-%m-%d %H:%M:%S PST", True), ("%H:%M %Z", False), ("%Q", False), ("%d %d", False),
     ("%", False), ("iso", False)],
)  # fmt: skip
def test_a_pattern_reads_what_it_writes(unit: str, good: bool) -> None:
    """Names of zones are no part of it."""
    assert is_pattern(unit) is good


def test_zones_are_those_of_the_database() -> None:
    """A folder, a path and a word are none."""
    assert str(zone_named("Europe/Berlin")) == "Europe/Berlin"
    for name in ("Europe", "../etc/passwd", "Mars/Olympus", "a\0b"):
        with pytest.raises(ValueError, match="is not a time zone"):
            zone_named(name)


@settings(max_examples=200)
@given(
    st.sampled_from(["s", "ms", "us"]), st.integers(0, LATEST_US - 1), st.integers(0, 3), st.sampled_from([0, 10**15])
)
def test_a_count_is_the_floor_of_its_fraction(unit: str, us: int, extra: int, origin_us: int) -> None:
    """Written out in decimals and read again, it is the same microsecond."""
    us %= LATEST_US - 10**15
    whole, rest = divmod(us, COUNTED[unit])
    digits = len(str(COUNTED[unit])) - 1
    text = f"{whole}.{rest:0{digits}d}{'9' * extra}" if digits else f"{whole}"
    assert Fraction(text) * COUNTED[unit] >= us
    assert Times(unit=unit, origin_us=origin_us).read(text) == (us + origin_us,)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1:30:00", 5400), ("01:02:03", 3723), ("1-02:03:04", 93_784), ("2 days, 2:03:04", 180_184),
     ("0 days 00:00:01.5", Fraction(3, 2)), ("100:00:00", 360_000), ("0:00:00", 0)],
)  # fmt: skip
def test_durations_as_a_clock_shows_them(text: str, seconds: Fraction | int) -> None:
    """Of Slurm, of Python, of pandas, and of a person."""
    assert Times().lasting(text, CLOCK) == seconds * 1_000_000


@pytest.mark.parametrize("text", ["1:30", "90", "1:60:00", "-1:00:00", "", "1h"])
def test_other_durations_are_no_clocks(text: str) -> None:
    """1:30 is minutes to Slurm and hours to a spreadsheet."""
    with pytest.raises(ValueError, match="is not a duration written as"):
        Times().lasting(text, CLOCK)
