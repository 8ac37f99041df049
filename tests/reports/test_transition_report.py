"""What came of transitions, for eyes and for scripts."""

from __future__ import annotations

from gpuledger.model.missing import Missing
from gpuledger.model.outcomes import TransitionReport
from gpuledger.model.problem import Problem
from gpuledger.model.workload_rows import Hold, WorkloadEvent
from gpuledger.reports.transition_report import to_csv, to_json, to_table

EVENT = WorkloadEvent(
    writer="box.transition", number=7, workload="w", event_id="e1", sequence=1, state="running", at_us=60_000_000,
    recorded_at_us=0, source="ctl", subject="k",
)  # fmt: skip
HOLD = Hold(
    writer="box.transition", number=8, workload="w", sequence=1, change="taken", at_us=60_000_000, placement="p",
    expires_at_us=Missing("confirmed"),
)  # fmt: skip


def test_new_events_are_shown_with_their_reference(printed) -> None:
    """And what they hold; known ones are counted."""
    told = printed(to_table(TransitionReport(added=(EVENT,), holds=(HOLD,), known=(("w", "e0"),))))
    assert "w running at 1970-01-01T00:01:00Z  event:box.transition/7" in told
    assert "1 hold taken" in told
    assert "1 transition known already" in told


def test_nothing_new_is_said(printed) -> None:
    """`--from-runtime` a second time."""
    assert printed(to_table(TransitionReport())) == "nothing new: nothing added"


def test_many_events_are_not_all_shown(printed) -> None:
    """The first of them, and how many more."""
    assert "and 30 more" in printed(to_table(TransitionReport(added=(EVENT,) * 50)))


def test_json_says_all_of_it() -> None:
    """The contract of docs/reference/json.md."""
    report = TransitionReport(
        added=(EVENT,), holds=(HOLD,), known=(("w", "e0"),), problems=(Problem(code="unplaced", message="m"),)
    )
    assert to_json(report) == {
        "added": [
            {"ref": "event:box.transition/7", "workload": "w", "id": "e1", "state": "running",
             "at": "1970-01-01T00:01:00Z", "source": "ctl"}
        ],
        "known": [{"workload": "w", "id": "e0"}],
        "holds": [
            {"ref": "hold:box.transition/8", "workload": "w", "change": "taken", "at": "1970-01-01T00:01:00Z",
             "placement": "p", "expires": None}
        ],
        "problems": [{"code": "unplaced", "message": "m", "where": ""}],
    }  # fmt: skip


def test_csv_is_one_row_an_event() -> None:
    """With a header."""
    assert to_csv(TransitionReport(added=(EVENT,))).splitlines() == [
        "ref,workload,id,state,at,source",
        "event:box.transition/7,w,e1,running,1970-01-01T00:01:00Z,ctl",
    ]
