"""Settled rows: each once, from whatever source."""

from typing import Any

from gpuledger.metering.settled import started_stints, startless, without_twins
from gpuledger.model.missing import Missing


def test_one_start_is_one_stint_however_often_it_is_read(make: Any) -> None:
    """The key of a row is its start; every reading stays as evidence."""
    rows = [make.driver(500, 679, read=2000), make.driver(0, 400), make.driver(500, 679, read=9000, method="import")]
    stints = started_stints(rows)
    assert [stint.started_us for stint in stints] == [make.at(0), make.at(500)]
    assert stints[1].spans == ((make.at(500), make.at(1179)),)
    assert stints[1].rows == [rows[0], rows[2]]


def test_a_conflict_is_decided_by_the_first_reading(make: Any) -> None:
    """The ledger refuses it; here the answer must not depend on order."""
    rows = [make.driver(0, 400, read=500), make.driver(0, 900, read=1000)]
    assert started_stints(rows)[0].context_ms == 400
    assert started_stints(reversed(rows))[0].context_ms == 400


def test_rows_without_start_are_known_by_content(make: Any) -> None:
    """Same content is the same row, first read at its earliest reading; other content is another row."""
    rows = [make.driver(None, 400, read=900), make.driver(None, 400, read=500), make.driver(None, 401, read=700)]
    found = startless(rows)
    assert [(group.row.context_ms, group.read_us, len(group.rows)) for group in found] == [
        (400, make.at(500), 2),
        (401, make.at(700), 1),
    ]


def test_two_driver_loads_are_two_rows_and_an_unknown_load_joins_the_first(make: Any) -> None:
    """The same figures after a reload are another process; a dump that does not know the load is not a third."""
    rows = [
        make.driver(None, 400, read=900, driver_epoch="boot-2"),
        make.driver(None, 400, read=500, driver_epoch="boot-1"),
        make.driver(None, 400, read=950),
    ]
    found = startless(rows)
    assert [(group.read_us, len(group.rows)) for group in found] == [(make.at(500), 2), (make.at(900), 1)]


def test_the_twin_of_a_started_row_is_not_another_context(make: Any) -> None:
    """A dump repeats what the driver said with a start: it goes to that row, one dump row to one started row."""
    stints = started_stints([make.driver(0, 400), make.driver(5000, 400)])
    left = without_twins(startless([make.driver(None, 400, read=9000)]), stints)
    assert left == []
    assert [len(stint.rows) for stint in stints] == [2, 1]


def test_a_twin_may_lack_what_its_source_cannot_read(make: Any) -> None:
    """Peak memory and percent must agree only where both are known."""
    unread = Missing("not in this dump")
    blind = make.driver(None, 400, read=9000, peak_memory_mib=unread, gpu_percent=unread)
    other = make.driver(None, 400, read=9000, peak_memory_mib=999)
    stints = started_stints([make.driver(0, 400)])
    assert without_twins(startless([blind, other]), stints)[0].row == other


def test_equal_content_is_preferred_over_content_that_only_agrees(make: Any) -> None:
    """The exact twin takes the started row, so the vague one stays a row of its own."""
    vague = make.driver(None, 400, read=100, peak_memory_mib=Missing("not in this dump"))
    exact = make.driver(None, 400, read=9000)
    left = without_twins(startless([vague, exact]), started_stints([make.driver(0, 400)]))
    assert [group.row for group in left] == [vague]
