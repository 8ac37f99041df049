"""What ``import trace`` and ``import slurm`` do alike: a history goes into the ledger, and what came of it is shown."""

from __future__ import annotations

from pathlib import Path

from gpuledger.cli.progress import progress
from gpuledger.cli.session import Session
from gpuledger.model.lifecycle import History
from gpuledger.model.outcomes import HistoryReport
from gpuledger.operations.import_history import import_history
from gpuledger.reports import import_history_report


def bring_in(session: Session, history: History, *, file: Path, as_of: str | None) -> HistoryReport:
    """A history into the session's ledger, with progress and its problems said.

    Args:
        file: where it was read, for messages.
        as_of: until when what is open is known, as typed.
    """
    with progress(session, "transitions") as step:
        report = import_history(
            session.append,
            history,
            path=str(file),
            as_of_us=session.moment_or_none(as_of),
            now_us=session.now_us,
            writer=session.writer("import"),
            progress=step,
        )
    session.problems(report.problems)
    return report


def show(session: Session, report: HistoryReport) -> None:
    """What came of it, in the format asked for."""
    session.answer(
        table=lambda: import_history_report.to_table(report),
        as_json=lambda: import_history_report.to_json(report),
        as_csv=lambda: import_history_report.to_csv(report),
    )
