"""What every ``gpuledger audit`` shares: its formats, its options, how a report leaves, and the exit status."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import Format, Globals
from gpuledger.cli.session import Session
from gpuledger.model.durations import several
from gpuledger.model.findings import AuditReport
from gpuledger.reports import audit_report
from gpuledger.reports.annotations import to_annotations
from gpuledger.reports.sarif import to_sarif


class AuditFormat(StrEnum):
    """How a report is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    SARIF = "sarif"
    GITHUB = "github"


AuditFormatOption = Annotated[
    AuditFormat | None,
    typer.Option(
        "--format", help="table for eyes, json or csv for scripts, sarif for code review, github for its annotations."
    ),
]
WaiversOption = Annotated[
    Path | None,
    typer.Option(
        "--waivers", metavar="FILE", help="YAML list of {check, where, reason, owner, until}; all are needed."
    ),
]
StrictFindingsOption = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 on warnings too, and where something could not be read.")
]


def audit_session(ctx: typer.Context, *, format_: AuditFormat | None, now: str | None, quiet: bool) -> Session:
    """The session of an audit: no ledger is opened."""
    plain = Format(format_.value) if format_ is not None and format_.value in set(Format) else None
    return Session(ctx, Globals(format=plain, now=now, quiet=quiet))


def tell(session: Session, report: AuditReport, *, format_: AuditFormat | None, strict: bool) -> None:
    """Print a report in the format asked for, and end with 1 where anything stands.

    Args:
        session: of this command.
        report: with its waivers applied.
        format_: as typed after the verb; before it a plain one may stand too.
        strict: warnings and unread parts make it 1 as well.
    """
    if format_ is AuditFormat.SARIF:
        sys.stdout.write(json.dumps(to_sarif(report), indent=1) + "\n")
    elif format_ is AuditFormat.GITHUB:
        sys.stdout.write(to_annotations(report))
    else:
        session.answer(
            table=lambda: audit_report.to_table(report),
            as_json=lambda: audit_report.to_json(report),
            as_csv=lambda: audit_report.to_csv(report),
        )
    session.problems(report.notes)
    if report.unread:
        if session.format is not Format.TABLE or format_ is not None:
            session.problems(report.unread)
        were = "was" if len(report.unread) == 1 else "were"
        session.talk(f"{several(len(report.unread), 'part')} could not be read, and so {were} not judged")
    if report.found(strict=strict):
        raise typer.Exit(1)
