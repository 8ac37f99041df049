"""What planning starts from: requests, devices held, and one line a class."""

from __future__ import annotations

import dataclasses

import pytest

from gpuledger.model.capacity import Admission, Outcome
from gpuledger.model.missing import Missing


def test_a_request_that_nobody_told_of_has_no_time_of_asking() -> None:
    """It is missing, and turns into no wait of 0."""
    admission = Admission(
        requested="H100", asked_us=Missing("not told"), until_us=5, outcome=Outcome.STARTED, placed="H100"
    )
    with pytest.raises(TypeError):
        admission.until_us - admission.asked_us  # type: ignore[operator]
    with pytest.raises(dataclasses.FrozenInstanceError):
        admission.placed = "L4"  # type: ignore[misc]
