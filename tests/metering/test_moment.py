"""One moment: who held a device, with how much memory, and whether anybody looked."""

from __future__ import annotations

import pytest

from gpuledger.metering.contexts import contexts
from gpuledger.metering.moment import NO_SAMPLE, UNREADABLE, held_at, memory_at, verdicts_at
from gpuledger.model.missing import Missing
from gpuledger.model.snapshot import Held, MemoryHeld

PLACE = ("box", "GPU-0")


def held(make, rows, ms: int, *, looked: int | None = None) -> list[Held]:
    """Who held the device of the rows at a moment."""
    evidence = make.evidence(rows)
    looked_us = {} if looked is None else {PLACE: make.at(looked)}
    return held_at(contexts(evidence), evidence.sightings, looked_us, at_us=make.at(ms))


def verdict(make, rows, ms: int) -> str:
    """Whether the device was watched at a moment."""
    return verdicts_at(rows, [PLACE], at_us=make.at(ms))[PLACE]


def test_a_settled_context_holds_from_its_start_to_its_end(make) -> None:
    """The driver says both to the microsecond; the end does not belong to it."""
    rows = [make.driver(1000, 500), make.identity("chat", 900)]
    assert [bool(held(make, rows, ms)) for ms in (999, 1000, 1499, 1500)] == [False, True, True, False]
    (one,) = held(make, rows, 1200)
    assert (one.doubt, one.ref, one.memory) == ("", rows[0].ref, NO_SAMPLE)


def test_the_last_look_belongs_to_a_living_context(make) -> None:
    """What a look saw alive was alive at it."""
    rows = [make.look(1000, 5000, start=900), make.identity("chat", 800)]
    assert [one.doubt for one in held(make, rows, 5000)] == [""]
    assert held(make, rows, 899) == []


def test_between_the_last_look_and_the_first_miss_nobody_can_say(make) -> None:
    """It is told with its doubt, and after the miss not at all."""
    rows = [make.look(1000, 5000, start=900, gone=6000), make.identity("chat", 800)]
    (one,) = held(make, rows, 5500)
    assert "gone at" in one.doubt
    assert one.memory == NO_SAMPLE
    assert held(make, rows, 6000) == []


def test_a_gap_between_two_looks_at_one_process_is_a_doubt(make) -> None:
    """Without the driver's start nothing proves that it went on; with it the driver does."""
    rows = [make.look(1000, 5000), make.look(60_000, 65_000), make.identity("chat", 800)]
    assert ["and again at" in one.doubt for one in held(make, rows, 30_000)] == [True]
    proven = [make.look(1000, 5000, start=900), make.look(60_000, 65_000, start=900), make.identity("chat", 800)]
    assert [one.doubt for one in held(make, proven, 30_000)] == [""]


def test_a_miss_between_two_looks_ends_the_doubt(make) -> None:
    """It let go, and opened the device again later."""
    rows = [make.look(1000, 5000, gone=6000), make.look(60_000, 65_000), make.identity("chat", 800)]
    assert held(make, rows, 30_000) == []


def test_a_process_that_came_back_began_again(make) -> None:
    """A miss parts two holdings of one process; each has its own first and last look."""
    rows = [make.look(1000, 5000, gone=6000), make.look(60_000, 65_000, gone=66_000), make.identity("chat", 800)]
    found = [(one.since_us, one.until_us) for ms in (3000, 62_000) for one in held(make, rows, ms)]
    assert found == [(make.at(1000), make.at(5000)), (make.at(60_000), make.at(65_000))]
    (still,) = held(make, [make.look(1000, 5000), rows[2]], 3000)
    assert isinstance(still.until_us, Missing)


@pytest.mark.parametrize(("looked", "found"), [(5000, 1), (20_000, 0), (None, 0)])
def test_after_the_last_look_of_all_an_open_context_may_go_on(make, looked: int | None, found: int) -> None:
    """Only where nobody looked at the device since: else that look would have seen it."""
    rows = [make.look(1000, 5000, start=900), make.identity("chat", 800)]
    doubtful = held(make, rows, 30_000, looked=looked)
    assert ["nobody had looked" in one.doubt for one in doubtful] == [True] * found


def test_a_row_without_a_start_is_a_doubt(make) -> None:
    """It is placed in the latest span it can have had; a look at that very moment settles it."""
    row = make.driver(None, 5000, read=20_000)
    assert ["latest span" in one.doubt for one in held(make, [row], 18_000)] == [True]
    look = make.look(16_000, 19_000)
    assert [one.doubt for one in held(make, [row, look], 18_000)] == [""]


def test_a_pid_that_certainly_holds_is_not_doubted_beside(make) -> None:
    """One pid holds one device once at a time."""
    rows = [make.driver(4000, 9000), make.look(1000, 3000, gone=5000), make.identity("chat", 800)]
    assert [(one.doubt, one.context.settled) for one in held(make, rows, 4500)] == [("", True)]


def test_memory_is_the_mean_of_the_span_that_holds_the_moment(make) -> None:
    """Integrated memory over covered time; a moment on an edge belongs to the later span."""
    first = make.look(0, 4000, memory_mib_ms=4000 * 100, memory_ms=4000, peak_memory_mib=150)
    second = make.look(4000, 8000, memory_mib_ms=2000 * 301, memory_ms=2000, peak_memory_mib=400)
    looks = [first, second]
    assert memory_at(looks, make.at(2000)) == MemoryHeld(mib=100, since_us=make.at(0), until_us=make.at(4000))
    assert [memory_at(looks, make.at(ms)).mib for ms in (4000, 8000)] == [301, 301]
    assert memory_at(looks, make.at(8001)) == NO_SAMPLE


def test_of_two_spans_the_shorter_one_is_nearer(make) -> None:
    """Two sources looked: the one that looked more often knows the moment better."""
    long = make.look(0, 60_000, memory_mib_ms=60_000 * 100, memory_ms=60_000)
    short = make.look(29_000, 31_000, memory_mib_ms=2000 * 900, memory_ms=2000)
    assert memory_at([long, short], make.at(30_000)).mib == 900


def test_a_single_look_is_its_own_sample(make) -> None:
    """A dump says what was held when it was printed."""
    assert memory_at([make.look(500, 500, peak_memory_mib=77)], make.at(500)).mib == 77


def test_while_nothing_is_written_the_last_sample_written_is_told_with_its_time(make) -> None:
    """An agent says by its pulse that a context goes on, and writes its memory later."""
    written = make.look(0, 4000, memory_mib_ms=4000 * 100, memory_ms=4000, peak_memory_mib=150)
    unwritten = make.look(4000, 9000, writer="", number=0, samples=0)
    held_then = memory_at([written, unwritten], make.at(9000))
    assert not isinstance(held_then, Missing)
    assert (held_then.mib, held_then.until_us) == (100, make.at(4000))
    assert memory_at([unwritten], make.at(9000)) is NO_SAMPLE


def test_absent_memory_says_why(make) -> None:
    """No span, a span that only the driver's start proves, and looks that could not read it: three reasons, no zero."""
    assert memory_at([], make.at(0)) is NO_SAMPLE
    assert memory_at([make.look(0, 1000, samples=0, peak_memory_mib=5)], make.at(500)) is NO_SAMPLE
    assert memory_at([make.look(0, 1000, samples=2)], make.at(500)) is UNREADABLE
    assert isinstance(UNREADABLE, Missing)


def test_the_row_to_explain_is_one_of_the_ledger(make) -> None:
    """The driver's own where it settled the context; else the look at the moment, never one that is not written."""
    early, late = make.look(0, 4000, start=0), make.look(4000, 8000, start=0)
    unwritten = make.look(8000, 9000, start=0, writer="", number=0, samples=0)
    name = make.identity("chat", 0)
    assert [one.ref for one in held(make, [early, late, name], 2000)] == [early.ref]
    assert [one.ref for one in held(make, [early, late, unwritten, name], 9000)] == [late.ref]
    row = make.driver(0, 9500)
    assert [one.ref for one in held(make, [early, late, row, name], 2000)] == [row.ref]


def test_verdicts(make) -> None:
    """Watched, unknown with its reason, a gap, and before anybody looked."""
    rows = [
        make.watch(10_000, 20_000, source="driver"),
        make.watch(20_000, 30_000, source="driver", status="accounting-disabled"),
    ]
    found = [verdict(make, rows, ms) for ms in (9000, 10_000, 15_000, 20_000, 30_000, 30_001)]
    assert found == ["before-watch", "", "", "accounting-disabled", "accounting-disabled", "watch-gap"]


def test_a_loss_beside_a_look_counts(make) -> None:
    """A ring that overflowed is UNKNOWN although the source looked."""
    rows = [
        make.watch(0, 20_000, source="driver"), make.watch(10_000, 11_000, source="driver", status="ring-overflow")
    ]  # fmt: skip
    assert [verdict(make, rows, ms) for ms in (9999, 10_500, 11_500)] == ["", "ring-overflow", ""]


def test_a_single_look_is_its_moment(make) -> None:
    """A dump answers for the moment it was printed at, and for no other."""
    seen = [make.watch(10_000, 10_000, source="driver", method="import")]
    off = [make.watch(10_000, 10_000, source="driver", method="import", status="accounting-disabled")]
    assert [verdict(make, seen, ms) for ms in (9999, 10_000, 10_001)] == ["before-watch", "", "watch-gap"]
    assert verdict(make, off, 10_000) == "accounting-disabled"


def test_a_device_that_no_row_names_is_told_of_too(make) -> None:
    """Nothing is not an answer."""
    assert verdict(make, [], 0) == "before-watch"
