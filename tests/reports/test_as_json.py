"""JSON pieces: absence is null, and says why beside."""

from __future__ import annotations

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.model.reasons import IDLE_MEANING
from gpuledger.model.usage import Watched
from gpuledger.reports import as_json


def test_absence_is_null_with_its_reason() -> None:
    """A missing number is null; why stands under `missing`, which is there only then."""
    assert as_json.number(Missing("x")) is None
    assert as_json.moment(Missing("x")) is None
    assert as_json.missing(a=1, b=Missing("x")) == {"missing": {"b": "x"}}
    assert as_json.missing(a=1) == {}


def test_values_stand_as_they_are() -> None:
    """Numbers, times and problems."""
    assert as_json.number(0) == 0
    assert as_json.moment(0) == "1970-01-01T00:00:00Z"
    assert as_json.problems([Problem(code="c", message="m")]) == [{"code": "c", "message": "m", "where": ""}]


def test_idle_time_says_why() -> None:
    """Always there, so that scripts need not ask; without a reason where none is proven."""
    assert as_json.idle(Watched(seconds=9, of=9, idle=4)) == {"seconds": 4, "why": IDLE_MEANING}
    assert as_json.idle(Watched(seconds=9, of=9)) == {"seconds": 0, "why": ""}
