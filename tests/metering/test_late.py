"""Late evidence: which hours new rows touch."""

from typing import Any

from gpuledger.metering.late import dirty_hours

HOUR_MS = 3_600_000
MINUTE_MS = 60_000


def hours(make: Any, *rows: Any) -> list[int]:
    return sorted((hour_us - make.at(0)) // (HOUR_MS * 1000) for hour_us in dirty_hours(rows))


def test_a_driver_row_touches_its_span_and_what_is_near(make: Any) -> None:
    """Ten minutes around it: what it says of its pid can decide the name of a context close by."""
    assert hours(make, make.driver(HOUR_MS + 15 * MINUTE_MS, 30 * MINUTE_MS)) == [1]
    assert hours(make, make.driver(HOUR_MS + 1000, 5000)) == [0, 1]


def test_a_row_without_start_touches_the_latest_span_it_can_have_had(make: Any) -> None:
    """It ends with its reading."""
    assert hours(make, make.driver(None, HOUR_MS, read=3 * HOUR_MS - 15 * MINUTE_MS)) == [1, 2]


def test_a_look_touches_its_own_span(make: Any) -> None:
    """A context that has lived for a month is told by a month of sightings; each touches its own hours."""
    half = 5 * HOUR_MS + 30 * MINUTE_MS
    assert hours(make, make.look(3 * HOUR_MS + 30 * MINUTE_MS, half, start=3 * HOUR_MS)) == [3, 4, 5]
    assert hours(make, make.look(half, half + 10, start=3 * HOUR_MS)) == [5]
    assert hours(make, make.look(half, half)) == [5]


def test_naming_watches_touch_their_span_and_driver_watches_nothing(make: Any) -> None:
    """Causes depend on the naming watch; coverage is no quantity."""
    assert hours(make, make.watch(HOUR_MS, 2 * HOUR_MS)) == [1]
    assert hours(make, make.watch(HOUR_MS, 2 * HOUR_MS, source="driver")) == []


def test_an_identity_has_no_span_of_its_own(make: Any) -> None:
    """Whoever gives it gives the rows too that it can name."""
    assert hours(make, make.identity("a", 0)) == []
