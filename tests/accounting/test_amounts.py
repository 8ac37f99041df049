"""Amounts: what may be added up before it is named."""

from __future__ import annotations

import pytest

from gpuledger.accounting.amounts import Amount, Grain, grain_for
from gpuledger.model.moments import DAY_US, HOUR_US


def test_grades_of_context_time_add_up() -> None:
    """Settled and observed are the whole of a context amount."""
    Amount(meter="gpu.context", subject="a", host="h", device="d", at_us=0, quantity=5, settled=3, observed=2)
    with pytest.raises(ValueError, match="do not make 5"):
        Amount(meter="gpu.context", subject="a", host="h", device="d", at_us=0, quantity=5, settled=3)


def test_sampled_meters_have_neither_grade() -> None:
    """A sampled amount cannot claim to be settled."""
    Amount(meter="gpu.busy", subject="a", host="h", device="d", at_us=0, quantity=5)
    with pytest.raises(ValueError, match=r"gpu\.memory"):
        Amount(meter="gpu.memory", subject="a", host="h", device="d", at_us=0, quantity=5, settled=5)


@pytest.mark.parametrize(
    ("by", "changes", "grain"),
    [
        (("service",), (), Grain.WINDOW),
        (("service",), (HOUR_US,), Grain.WINDOW),
        (("team",), (), Grain.WINDOW),
        (("team",), (0, 10 * DAY_US), Grain.WINDOW),
        (("team",), (DAY_US,), Grain.DAY),
        (("host-owner",), (DAY_US + 1,), Grain.HOUR),
        (("day", "service"), (), Grain.DAY),
        (("month",), (), Grain.DAY),
        (("hour",), (), Grain.HOUR),
        ((), (), Grain.WINDOW),
    ],
)
def test_grain_is_as_coarse_as_the_question_allows(by: tuple[str, ...], changes: tuple[int, ...], grain: Grain) -> None:
    """Only a grouping by time, or an owner who changes inside the window, asks for finer amounts."""
    assert grain_for(by=by, changes_us=changes, since_us=0, until_us=10 * DAY_US) is grain
