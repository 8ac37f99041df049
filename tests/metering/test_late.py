"""Late evidence: which hours new rows touch."""

from typing import Any

from gpuledger.metering.contexts import contexts
from gpuledger.metering.late import dirty_hours, hours_of, touched_pids

HOUR_MS = 3_600_000


def hours(make: Any, *rows: Any) -> list[int]:
    return sorted((hour_us - make.at(0)) // (HOUR_MS * 1000) for hour_us in dirty_hours(rows))


def test_a_driver_row_touches_its_span_and_the_tolerance(make: Any) -> None:
    """A look up to 2 s outside of it belongs to it, so the hour next door can change."""
    assert hours(make, make.driver(HOUR_MS + 5000, 2 * HOUR_MS)) == [1, 2, 3]
    assert hours(make, make.driver(HOUR_MS + 1000, 5000)) == [0, 1]


def test_a_row_without_start_touches_the_latest_span_it_can_have_had(make: Any) -> None:
    """It ends with its reading."""
    assert hours(make, make.driver(None, HOUR_MS, read=3 * HOUR_MS - 5000)) == [1, 2]


def test_a_look_touches_its_own_span(make: Any) -> None:
    """A context that has lived for a month is told by a month of sightings; each touches its own hours."""
    assert hours(make, make.look(3 * HOUR_MS, 5 * HOUR_MS + 10, start=3 * HOUR_MS)) == [3, 4, 5]
    assert hours(make, make.look(5 * HOUR_MS, 5 * HOUR_MS + 10, start=3 * HOUR_MS)) == [5]
    assert hours(make, make.look(5 * HOUR_MS, 5 * HOUR_MS)) == [5]


def test_naming_watches_touch_their_span_and_driver_watches_nothing(make: Any) -> None:
    """Causes depend on the naming watch; coverage is no quantity."""
    assert hours(make, make.watch(HOUR_MS, 2 * HOUR_MS)) == [1]
    assert hours(make, make.watch(HOUR_MS, 2 * HOUR_MS, source="driver")) == []


def test_an_identity_touches_the_hours_of_its_pids_contexts(make: Any) -> None:
    """It has no span of its own, but it can name what was there."""
    late = make.identity("a", 0)
    assert hours(make, late) == []
    evidence = make.evidence([make.driver(HOUR_MS, 2 * HOUR_MS), make.driver(9 * HOUR_MS, 5, pid=8), late])
    assert touched_pids([late, make.watch(0, 5)]) == {("box", 7)}
    touched = hours_of(contexts(evidence), touched_pids([late]))
    assert sorted(hour_us - make.at(0) for hour_us in touched) == [HOUR_MS * 1000, 2 * HOUR_MS * 1000]
