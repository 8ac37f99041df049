"""Times: microseconds UTC inside, ISO 8601 outside, and what people type."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.errors import Misconfigured
from gpuledger.model.moments import DAY_US, HOUR_US, day_floor, hour_floor, iso, parse_moment, to_datetime, to_us

NOW = to_us(datetime(2026, 11, 29, 14, 30, 15, 250_000, tzinfo=UTC))
MOMENTS = st.integers(min_value=0, max_value=to_us(datetime(2200, 1, 1, tzinfo=UTC)))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2026-11-29T14:00:00Z", "2026-11-29T14:00:00Z"),
        ("2026-11-29T14:00", "2026-11-29T14:00:00Z"),
        ("2026-11-29T15:00:00+01:00", "2026-11-29T14:00:00Z"),
        ("2026-11-29", "2026-11-29T00:00:00Z"),
        ("2026-11", "2026-11-01T00:00:00Z"),
        ("now", "2026-11-29T14:30:15.25Z"),
        (" today ", "2026-11-29T00:00:00Z"),
        ("yesterday", "2026-11-28T00:00:00Z"),
        ("90m", "2026-11-29T13:00:15.25Z"),
        ("2w", "2026-11-15T14:30:15.25Z"),
    ],
)
def test_times_are_read_as_people_type_them(text: str, told: str) -> None:
    """ISO 8601, without a zone UTC; a day, a month, a word, or an age."""
    assert iso(parse_moment(text, now_us=NOW)) == told


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2026-13", "2026-02-30", "25:00", "7 d", "-1h", "1.5h", "tomorrow", "9999-12-31T23:59:59-12:00"],
)
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    """The hint shows what can be typed."""
    with pytest.raises(Misconfigured) as refused:
        parse_moment(text, now_us=NOW)
    assert refused.value.code == "bad-time"
    assert "2026-11-29T14:00:00Z" in refused.value.hint


def test_an_age_older_than_1970_is_refused() -> None:
    """Rather than a negative time that every scan would take for everything."""
    with pytest.raises(Misconfigured, match="before 1970"):
        parse_moment("99999d", now_us=NOW)


@given(MOMENTS)
def test_a_moment_survives_being_printed(at_us: int) -> None:
    """To the microsecond: no float on the way."""
    assert parse_moment(iso(at_us), now_us=0) == at_us
    assert to_us(to_datetime(at_us)) == at_us


@given(MOMENTS)
def test_floors_hold_their_moment(at_us: int) -> None:
    """The hour and the day begin at or before a moment, and end after it."""
    assert hour_floor(at_us) <= at_us < hour_floor(at_us) + HOUR_US
    assert day_floor(at_us) <= hour_floor(at_us) < day_floor(at_us) + DAY_US


def test_only_as_many_digits_as_needed_are_printed() -> None:
    """Whole seconds where the moment is one."""
    assert iso(NOW) == "2026-11-29T14:30:15.25Z"
    assert iso(NOW - 250_000) == "2026-11-29T14:30:15Z"
