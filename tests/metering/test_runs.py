"""Runs of looks, and the rows without a start that settle them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.metering.looks import stints_of
from gpuledger.metering.naming import Names
from gpuledger.metering.runs import match, runs_of
from gpuledger.metering.settled import startless


def stints(make: Any, *rows: Any) -> list[Any]:
    evidence = make.evidence(rows)
    names = Names(evidence.identities, evidence.sightings, lambda host, at_us: 0)
    found = stints_of(evidence.driver_records, evidence.sightings, names)
    return sorted(found, key=lambda stint: (stint.spans, stint.context_ms))


def test_a_run_goes_on_over_a_gap_that_nothing_ends(make: Any) -> None:
    """Only a look that missed it, or a row read in between, shows that a context ended."""
    first, second = make.look(0, 1000), make.look(5000, 6000)
    assert len(runs_of([first, second], [])) == 1
    assert len(runs_of([make.look(0, 1000, gone=2000), second], [])) == 2
    assert len(runs_of([first, second], startless([make.driver(None, 900, read=3000)]))) == 2


def test_a_row_settles_the_looks_at_the_context_that_had_ended(make: Any) -> None:
    """One context, placed so that it had begun by its first look."""
    look = make.look(1000, 9000, gone=10_000)
    (stint,) = stints(make, make.driver(None, 9500, read=60_000), look)
    assert (stint.placed, stint.context_ms, stint.sightings) == ("latest", 9500, [look])
    assert stint.spans == ((make.at(1000), make.at(10_500)),)


def test_without_looks_a_row_lies_right_before_its_reading(make: Any) -> None:
    """The latest span it can have had, from the earliest reading."""
    (stint,) = stints(make, make.driver(None, 4000, read=60_000), make.driver(None, 4000, read=90_000))
    assert stint.spans == ((make.at(56_000), make.at(60_000)),)


def test_a_row_is_not_about_a_context_that_lives_on(make: Any) -> None:
    """Seen alive at or after the reading: the row is an older one."""
    row = make.driver(None, 9000, read=5000)
    assert len(stints(make, row, make.look(1000, 9000))) == 2
    assert len(stints(make, row, make.look(5000, 5000))) == 2


def test_a_row_is_not_about_a_never_accounted_context(make: Any) -> None:
    """What the driver does not account, it never settles."""
    assert len(stints(make, make.driver(None, 9500, read=60_000), make.look(1000, 9000, accounted="no"))) == 2


def test_a_row_longer_than_the_process_is_old_is_not_about_it(make: Any) -> None:
    """The pid's earlier life left the row."""
    born = make.identity("young", 0)
    assert len(stints(make, make.driver(None, 900_000, read=60_000), make.look(1000, 9000), born)) == 2


def test_each_context_of_a_process_finds_its_row(make: Any) -> None:
    """Two contexts of one process, two rows read at once much later: the lengths tell which is which."""
    first, second = make.look(0, 39_000, gone=40_000), make.look(40_500, 40_500, gone=41_000)
    found = stints(make, make.driver(None, 40_000, read=900_000), make.driver(None, 101, read=900_000), first, second)
    assert [(stint.context_ms, stint.sightings) for stint in found] == [(40_000, [first]), (101, [second])]


def test_a_row_takes_the_last_looks_that_fit(make: Any) -> None:
    """Looks an hour apart are not both at a ten-minute context."""
    early, late = (make.look(at, at, start_ticks=0, boot_id="") for at in (0, 3_600_000))
    observed, settled = stints(make, early, late, make.driver(None, 600_000, read=7_200_000))
    assert (observed.sightings, observed.over, observed.context_ms) == ([early], True, 0)
    assert (settled.sightings, settled.spans[0][0]) == ([late], make.at(3_600_000))


def test_a_look_that_could_not_read_the_process_joins_one_that_could(make: Any) -> None:
    """Same pid, same device, same time: one context."""
    (stint,) = stints(make, make.look(0, 9000), make.look(4000, 5000, start_ticks=0, boot_id=""))
    assert stint.processes == {("b", 1)}


def test_unreadable_processes_are_new_after_each_miss(make: Any) -> None:
    """Nothing says that the next one under the pid is the same process."""
    words = {"start_ticks": 0, "boot_id": ""}
    one, two = stints(make, make.look(0, 1000, gone=1500, **words), make.look(2000, 3000, **words))
    assert (one.over, two.over) == (True, False)


@given(st.lists(st.lists(st.integers(0, 5), unique=True, max_size=4), max_size=6))
def test_the_matching_is_largest(fits: list[list[int]]) -> None:
    """No assignment by hand finds more pairs, and every pair is allowed and used once."""

    def best(left: int, used: frozenset[int]) -> int:
        if left == len(fits):
            return 0
        taken = [1 + best(left + 1, used | {right}) for right in fits[left] if right not in used]
        return max([best(left + 1, used), *taken])

    pairs = match(fits)
    assert len(pairs) == best(0, frozenset())
    assert len(set(pairs.values())) == len(pairs)
    assert all(right in fits[left] for left, right in pairs.items())
