"""What came of transitions, as sentences, JSON or CSV."""

from __future__ import annotations

from rich.console import RenderableType

from gpuledger.model.durations import count, several
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.outcomes import TransitionReport
from gpuledger.reports import as_csv, as_json
from gpuledger.reports.as_json import Json
from gpuledger.reports.cells import cell, stacked

_FEW = 20


def to_table(report: TransitionReport) -> RenderableType:
    """Each new event with its reference, few of them; what is held and let go; what was known."""
    lines: list[RenderableType] = [
        cell(f"{event.workload} {event.state} at {iso(event.at_us)}  {event.ref}") for event in report.added[:_FEW]
    ]
    if len(report.added) > _FEW:
        lines.append(cell(f"and {count(len(report.added) - _FEW)} more", "dim"))
    changes = [hold.change for hold in report.holds]
    holds = [f"{several(changes.count(word), 'hold')} {word}" for word in ("taken", "confirmed", "released")
             if word in changes]  # fmt: skip
    if holds:
        lines.append(cell(", ".join(holds), "dim"))
    if report.known:
        lines.append(cell(f"{several(len(report.known), 'transition')} known already, nothing added for them"))
    elif not report.added:
        lines.append(cell("nothing new: nothing added"))
    return stacked(*lines)


def to_json(report: TransitionReport) -> dict[str, Json]:
    """Every new event with its reference, every hold, and what was known."""
    return {
        "added": [
            {
                "ref": event.ref,
                "workload": event.workload,
                "id": event.event_id,
                "state": event.state,
                "at": iso(event.at_us),
                "source": event.source,
            }
            for event in report.added
        ],
        "known": [{"workload": workload, "id": event_id} for workload, event_id in report.known],
        "holds": [
            {
                "ref": hold.ref,
                "workload": hold.workload,
                "change": hold.change,
                "at": iso(hold.at_us),
                "placement": hold.placement,
                "expires": None if isinstance(hold.expires_at_us, Missing) else iso(hold.expires_at_us),
            }
            for hold in report.holds
        ],
        "problems": as_json.problems(report.problems),
    }


def to_csv(report: TransitionReport) -> str:
    """One row for each new event."""
    rows = [
        (event.ref, event.workload, event.event_id, event.state, iso(event.at_us), event.source)
        for event in report.added
    ]
    return as_csv.text(("ref", "workload", "id", "state", "at", "source"), rows)
