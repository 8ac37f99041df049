"""Booking: records where nothing stood, corrections where something did, and a list where hours are final."""

from __future__ import annotations

import re
from typing import Any

from gpuledger.ledger.metered import rule
from gpuledger.metering.reserved import Standing, book, standing_of
from gpuledger.model.reserved import Booking, ReservedTime
from gpuledger.model.workload_rows import PlacementRow

PLACE = PlacementRow(
    placement="p", class_name="L4", region="", machine="n1", pool="", devices="[]", count=1, share_num=1, share_den=1
)
KEY = ("gpu.reserved", 0, "n1", "placement:p", "s")


def time(seconds: int = 60, placement: str = "p", **words: Any) -> ReservedTime:
    row: dict[str, Any] = {
        "workload": "a", "hour_us": 0, "placement": placement, "subject": "s", "source": "cp", "is_declared": False,
        "amount_us": seconds * 1_000_000, "evidence": ("event:x/1",),
    }  # fmt: skip
    return ReservedTime(**row | words)


def booked(
    times: list[ReservedTime], stood: int = 0, *, covered: bool = True, final: bool = False, **words: Any
) -> Booking:
    return book(
        times,
        {KEY: Standing("a", stood, 3)} if stood else {},
        {"p": PLACE},
        is_covered=lambda _: covered,
        is_final=lambda _: final,
        recorded_at_us=9,
        **words,
    )


def test_an_hour_that_nobody_covered_is_inserted() -> None:
    """However old it is."""
    found = booked([time()], covered=False)
    assert [(row.quantity, row.host, row.device, row.context) for row in found.records] == [
        (60, "n1", "placement:p", "reserved")
    ]
    assert found.corrections == ()


def test_a_covered_hour_is_corrected() -> None:
    """With the next number of its key; what is new there is a correction too."""
    assert [(row.correction_number, row.delta) for row in booked([time()], 100).corrections] == [(4, -40)]
    assert [(row.correction_number, row.delta) for row in booked([time()]).corrections] == [(1, 60)]


def test_what_is_no_longer_derived_is_taken_back() -> None:
    """And the correction names what came, not what is gone."""
    (row,) = booked([], 100, behind=lambda _: ("event:x/7", "event:x/8")).corrections
    assert (row.delta, row.evidence_count) == (-100, 2)


def test_a_final_hour_is_listed() -> None:
    """With what stands and what the events say; a reason books it, and is kept."""
    found = booked([time()], 100, final=True)
    assert [(one.recorded, one.derived, one.workload) for one in found.late] == [(100, 60, "a")]
    assert found.corrections == ()
    (row,) = booked([time()], 100, final=True, reason="late-evidence: why (al)").corrections
    assert row.reason == "late-evidence: why (al)"


def test_history_and_late_placements_are_inserted_into_final_hours() -> None:
    """A declared past at any age, and time that had no placement before."""
    assert len(booked([time(is_declared=True)], final=True).records) == 1
    assert len(booked([time()], final=True, placed_late={("a", 0)}).records) == 1
    assert len(booked([time()], final=True).late) == 1


def test_time_without_a_placement_is_skipped() -> None:
    """It never gets an empty class."""
    assert booked([time(placement="")], covered=False) == Booking()


def test_less_than_a_second_is_no_record() -> None:
    """Rounded down once for each key."""
    assert booked([time(0, amount_us=999_999)], covered=False).records == ()


def test_what_stands_adds_corrections_to_the_record() -> None:
    """And remembers the last number."""
    stood = standing_of([("a", KEY, 100, 0), ("a", KEY, -40, 1), ("a", KEY, 5, 2)])
    assert (stood[KEY].quantity, stood[KEY].last_number) == (65, 2)


def test_the_rule_stays_portable() -> None:
    """One statement, integers only: no division, no FULL JOIN, nothing that only one store speaks."""
    statement = re.sub(r"--.*", "", rule())
    statement = re.sub(r"'[^']*'", "''", statement)
    assert statement.count(";") == 0
    assert not re.search(r"/|FULL|RECURSIVE|INDEXED|strftime|datetime|\d\.\d", statement, re.IGNORECASE)
