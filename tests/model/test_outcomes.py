"""What a verb that writes has done, as values."""

from __future__ import annotations

import dataclasses

import pytest

from gpuledger.model.missing import Missing
from gpuledger.model.outcomes import HistoryReport, MeterReport
from gpuledger.model.problem import Problem


def test_a_pass_that_booked_nothing_says_so_by_default() -> None:
    """No record, no correction, no problem; the closed span is empty."""
    report = MeterReport(at_us=9, covered_from_us=5, covered_until_us=5, hours_derived=0, open_from_us=5)
    assert (report.records, report.corrections, report.problems) == ((), (), ())


def test_an_outcome_cannot_be_changed() -> None:
    """What was done is done."""
    report = MeterReport(at_us=9, covered_from_us=5, covered_until_us=5, hours_derived=0, open_from_us=5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.hours_derived = 1  # type: ignore[misc]


def test_an_import_names_each_code_of_its_problems_once() -> None:
    """In the order in which they were met."""
    why = Missing("it tells of nothing")
    report = HistoryReport(
        path="x", source="trace", rows_read=0, added=0, known=0, conflicts=0, since_us=why, until_us=why, running=0,
        waiting=0, as_of_us=why, problems=tuple(Problem(code=code, message="m") for code in ("b", "a", "b")),
    )  # fmt: skip
    assert report.codes == ("b", "a")
