"""What a verb that writes has done, as values."""

from __future__ import annotations

import dataclasses

import pytest

from gpuledger.model.outcomes import MeterReport


def test_a_pass_that_booked_nothing_says_so_by_default() -> None:
    """No record, no correction, no problem; the closed span is empty."""
    report = MeterReport(at_us=9, covered_from_us=5, covered_until_us=5, hours_derived=0, open_from_us=5)
    assert (report.records, report.corrections, report.problems) == ((), (), ())


def test_an_outcome_cannot_be_changed() -> None:
    """What was done is done."""
    report = MeterReport(at_us=9, covered_from_us=5, covered_until_us=5, hours_derived=0, open_from_us=5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.hours_derived = 1  # type: ignore[misc]
