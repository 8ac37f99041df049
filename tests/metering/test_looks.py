"""Which stint a look belongs to."""

from typing import Any

from gpuledger.metering.looks import stints_of
from gpuledger.metering.naming import Names

TWO_S = 2000


def stints(make: Any, *rows: Any) -> list[Any]:
    evidence = make.evidence(rows)
    names = Names(evidence.identities, evidence.sightings, lambda host, at_us: 0)
    found = stints_of(evidence.driver_records, evidence.sightings, names)
    return sorted(found, key=lambda stint: stint.spans)


def test_a_look_with_the_drivers_start_belongs_to_the_row_of_that_start(make: Any) -> None:
    """Seen alive and settled later is one context, as long as the driver says."""
    row, look = make.driver(10_000, 30_000), make.look(10_000, 39_000, start=10_001)
    (stint,) = stints(make, row, look)
    assert (stint.context_ms, stint.sightings, stint.settled) == (30_000, [look], True)


def test_a_start_near_a_row_and_not_its_own_is_another_context(make: Any) -> None:
    """The driver stamps a context once and keeps that: a program later, a tenth of a second, is another one."""
    first, second = make.driver(10_000, 500), make.driver(11_000, 500)
    look, lost = make.look(11_000, 11_400, start=11_000), make.look(10_600, 10_700, start=10_600)
    one, between, two = stints(make, first, second, look, lost)
    assert (one.sightings, two.sightings, between.sightings) == ([], [look], [lost])
    assert (between.settled, between.context_ms) == (False, 100)


def test_what_events_booked_is_a_context_of_its_own_however_near_another_is(make: Any) -> None:
    """Programs of one process follow within milliseconds, each counted, each once."""
    row = make.driver(10_100, 50)
    booked = [make.look(at, at + 80, method="ebpf", gone=at + 80) for at in (9_800, 9_900, 10_200)]
    found = stints(make, row, *booked, booked[0])
    assert [(stint.spans[0][0] // 1000 % 100_000, stint.context_ms, stint.settled) for stint in found] == [
        (9_800, 80, False),
        (9_900, 80, False),
        (10_100, 50, True),
        (10_200, 80, False),
    ]
    assert all(stint.over for stint in found if not stint.settled)


def test_a_row_that_comes_late_settles_what_events_booked(make: Any) -> None:
    """It began in that very time, so it is the same context, and counts once."""
    (stint,) = stints(make, make.look(10_000, 10_400, method="ebpf", gone=10_400), make.driver(10_002, 390))
    assert (stint.settled, stint.context_ms) == (True, 390)


def test_a_look_without_a_start_belongs_to_the_row_that_holds_it(make: Any) -> None:
    """Up to 2 s before and after the row, since the clocks differ."""
    row = make.driver(10_000, 30_000)
    inside, edge = make.look(20_000, 25_000), make.look(8_500, 41_500)
    (stint,) = stints(make, row, inside, edge)
    assert len(stint.sightings) == 2


def test_a_context_between_two_rows_of_its_process_is_lost_in_neither(make: Any) -> None:
    """A program after a program, each holding the device: what was seen to end before a row began is not that row."""
    before, after = make.driver(10_000, 500), make.driver(10_600, 500)
    between = [make.look(10_520, 10_540), make.look(10_540, 10_580, gone=10_580)]
    first, seen, last = stints(make, before, after, *between)
    assert (first.sightings, seen.sightings, last.sightings) == ([], between, [])
    assert (seen.context_ms, seen.over) == (60, True)


def test_the_clock_of_a_dump_is_another_one(make: Any) -> None:
    """So what it saw near a row is that row's."""
    (stint,) = stints(make, make.driver(10_000, 500), make.look(11_000, 11_000, gone=11_000, method="import"))
    assert len(stint.sightings) == 1


def test_a_look_at_a_younger_process_does_not_belong_to_an_older_row(make: Any) -> None:
    """The row began before the process that was seen: the pid came back, and its time is its own."""
    row, look = make.driver(0, 50_000), make.look(50_500, 51_500, start_ticks=9)
    young = make.identity("young", 50_400, ticks=9)
    settled, observed = stints(make, row, look, young)
    assert (settled.sightings, observed.sightings) == ([], [look])


def test_a_living_context_with_a_start_goes_on_over_a_gap_in_looking(make: Any) -> None:
    """The driver's start proves continuity: one span from the start to the last look."""
    (stint,) = stints(make, make.look(0, 1000, start=-500), make.look(90_000, 95_000, start=-500))
    assert stint.spans == ((make.at(-500), make.at(95_000)),)
    assert (stint.placed, stint.context_ms, stint.over) == ("driver", 95_500, False)


def test_a_look_before_the_start_was_known_joins_the_living_context(make: Any) -> None:
    """The first look had no start yet, the second one has: one context."""
    (stint,) = stints(make, make.look(0, 1000), make.look(1000, 5000, start=-300))
    assert stint.spans == ((make.at(-300), make.at(5000)),)


def test_without_a_start_gaps_in_looking_stay_gaps(make: Any) -> None:
    """Touching looks join; what nobody saw is not invented."""
    (stint,) = stints(make, make.look(0, 1000), make.look(1000, 3000), make.look(9000, 9500))
    assert stint.spans == ((make.at(0), make.at(3000)), (make.at(9000), make.at(9500)))
    assert (stint.placed, stint.context_ms) == ("looks", 3500)


def test_observed_time_is_what_no_settled_row_has_taken(make: Any) -> None:
    """A look that goes over the end of a row counts only beyond it."""
    settled, observed = stints(make, make.driver(0, 10_000), make.look(5000, 20_000))
    assert settled.context_ms == 10_000
    assert observed.spans == ((make.at(10_000), make.at(20_000)),)


def test_a_row_without_start_takes_the_start_that_looks_know(make: Any) -> None:
    """A context seen with its start, and settled by a dump: placed where the driver said, counted once."""
    look = make.look(0, 30_000, start=0, gone=31_000)
    (stint,) = stints(make, make.driver(None, 30_500, read=90_000), look)
    assert (stint.settled, stint.placed, stint.spans) == (True, "driver", ((make.at(0), make.at(30_500)),))


def test_a_row_that_ends_elsewhere_does_not_settle_a_known_start(make: Any) -> None:
    """Too short to reach the last look, or too long for the look that missed it: another context."""
    look = make.look(0, 30_000, start=0, gone=31_000)
    assert len(stints(make, make.driver(None, 20_000, read=90_000), look)) == 2
    assert len(stints(make, make.driver(None, 60_000, read=90_000), look)) == 2


def test_contexts_that_something_ended_are_over(make: Any) -> None:
    """Missed by a look, dead, or followed by another context of the pid; else open."""
    missed, followed, alive = stints(
        make,
        make.look(0, 1000, start=0, gone=2000),
        make.look(10_000, 11_000, start=10_000),
        make.look(20_000, 21_000, start=20_000),
    )
    assert [stint.over for stint in (missed, followed, alive)] == [True, True, False]


def test_a_dead_process_is_dead_whatever_the_clock_says(make: Any) -> None:
    """The clock was set back after the last look; the death of the very process still closes its context."""
    (stint,) = stints(make, make.look(50_000, 60_000), make.look(20_000, 30_000, gone=31_000, died=True))
    assert stint.over


def test_seen_again_after_a_miss_is_open(make: Any) -> None:
    """A look missed it once, a later one saw it."""
    (stint,) = stints(make, make.look(0, 1000, start=0, gone=1500), make.look(2000, 3000, start=0))
    assert not stint.over
