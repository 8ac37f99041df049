"""The evidence that decides a window: what a derived hour says does not depend on how the window was cut."""

from __future__ import annotations

from collections import Counter

import pytest

from gpuledger.metering.derive import derive
from gpuledger.operations.evidence import covered_spans, first_naming_watches, load_evidence, uncovered, within


def sums(box, since: float, until: float, step: float) -> Counter[tuple[str, int, str]]:
    """(meter, hour, subject) to quantity, derived in pieces of ``step`` minutes."""
    found: Counter[tuple[str, int, str]] = Counter()
    minute = since
    while minute < until:
        start_us, end_us = box.at(minute), box.at(min(minute + step, until))
        evidence = load_evidence(box.ledger, since_us=start_us, until_us=end_us)
        for piece in derive(evidence, since_us=start_us, until_us=end_us):
            found[piece.meter, piece.hour_us, piece.subject] += piece.quantity
        minute += step
    return found


def a_day(box) -> None:
    """Everything whose name or place lies in another hour than its time."""
    box.append(
        box.device(0),
        box.naming(30, 1380),
        box.looking(30, 1380),
        # a daemon of 20 hours, named once, settled at the end; looks only at its ends
        box.named(7, 60, "chat", seen=61),
        box.seen(7, 60, 61, start=60, memory_mib_ms=6_000_000, memory_ms=60_000),
        box.seen(7, 1250, 1260, start=60, gone=1260, memory_mib_ms=60_000_000, memory_ms=600_000),
        box.settled(7, 60, 72_000_000, read=1260),
        # its pid again, another process
        box.named(7, 1270, "whisper", start_ticks=99),
        box.settled(7, 1271, 300_000, read=1277),
        # a daemon that the driver never accounted, seen every five minutes
        box.named(9, 10, "tts", seen=31),
        *(box.seen(9, minute, minute + 5, accounted="no", memory_mib_ms=300_000) for minute in range(31, 1300, 5)),
        # before anybody looked, and too short to be named
        box.settled(11, 5, 61_000, read=31),
        box.settled(12, 119.9, 12_000, read=121),
        # without a start: placed right before it was read
        box.settled(13, None, 5_400_000, read=605),
        minute=1380,
    )


@pytest.mark.parametrize("step", [60, 180, 7 * 60])
def test_a_day_in_pieces_is_the_day(box, step: float) -> None:
    """The same amounts of the same subjects in the same hours, however it was cut."""
    a_day(box)
    whole = sums(box, 0, 1440, 1440)
    assert len({subject for _, _, subject in whole}) >= 5
    assert sums(box, 0, 1440, step) == whole


def test_pieces_that_cut_hours_add_up_to_the_day(box) -> None:
    """Also pieces of 25 minutes: no ms is lost at an edge or counted on both sides."""
    a_day(box)
    assert sums(box, 0, 1440, 25) == sums(box, 0, 1440, 1440)


@pytest.mark.parametrize("step", [60, 25])
def test_a_process_that_could_not_be_read_keeps_its_name_in_every_hour(box, step: float) -> None:
    """Claimed once, or readable only later: an hour without that evidence in it says the same as the day."""
    box.append(
        box.device(0),
        box.naming(30, 400),
        box.claimed(9, "tts", 100),
        *(box.seen(9, at, at + 5, accounted="no", boot_id="", start_ticks=0) for at in range(31, 400, 5)),
        box.named(10, 5, "chat", seen=101),
        *(box.seen(10, at, at + 5, accounted="no", boot_id="", start_ticks=0) for at in range(31, 100, 5)),
        *(box.seen(10, at, at + 5, accounted="no") for at in range(101, 400, 5)),
    )
    whole = sums(box, 0, 1440, 1440)
    assert len({subject for _, _, subject in whole}) == 2
    assert sums(box, 0, 1440, step) == whole


def test_evidence_up_to_a_mark_leaves_out_what_came_later(box) -> None:
    """What a pass had seen can be loaded again: `verify` derives from no more than that."""
    box.append(box.settled(7, 10, 60_000, read=11))
    marks = box.ledger.marks()
    box.append(box.settled(8, 10, 60_000, read=11))
    evidence = load_evidence(box.ledger, since_us=box.at(0), until_us=box.at(60), upto=marks)
    assert [row.pid for row in evidence.driver_records] == [7]


def test_the_first_naming_watch_of_a_host_is_found_among_driver_rows(box) -> None:
    """A driver that was unreachable writes rows of the whole host too; they name nobody."""
    unreachable = box.looking(0, 3, status="driver-unreachable")
    box.append(unreachable, box.naming(5, 9), box.naming(20, 30))
    (first,) = first_naming_watches(box.ledger, ["box", "other"])
    assert (first.source, first.since_us) == ("process", box.at(5))


@pytest.mark.parametrize(
    ("covered", "gaps"),
    [
        ([], [(30, 330)]),
        ([(0, 360)], [(30, 60), (300, 330)]),
        ([(60, 120), (180, 240)], [(30, 60), (120, 180), (240, 330)]),
        ([(0, 60)], [(30, 330)]),
        ([(400, 460)], [(30, 330)]),
    ],
)
def test_only_whole_recorded_hours_answer(covered, gaps) -> None:
    """The parts of a window at its edges, and its unrecorded hours, are derived at once."""
    minutes = 60_000_000

    def us(spans):
        return [(since * minutes, until * minutes) for since, until in spans]

    found = uncovered(us(covered), since_us=30 * minutes, until_us=330 * minutes)
    assert found == us(gaps)
    rest = within(found, since_us=30 * minutes, until_us=330 * minutes)
    assert sum(end - start for start, end in [*found, *rest]) == 300 * minutes


def test_passes_that_touch_cover_one_span(box) -> None:
    """And a pass that closed nothing covers nothing."""
    from gpuledger.model.rows import Pass

    def closed(since: int, until: int) -> Pass:
        return Pass(
            at_us=0, covered_from_us=since, covered_until_us=until, evidence_marks="{}", records_added=0,
            corrections_added=0,
        )  # fmt: skip

    assert covered_spans([closed(5, 9), closed(0, 3), closed(3, 5), closed(12, 12), closed(20, 30)]) == [
        (0, 9),
        (20, 30),
    ]
