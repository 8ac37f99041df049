"""``gpuledger journal``."""

from __future__ import annotations

import typer

from gpuledger.cli.options import (
    ConfigOption,
    FormatOption,
    Globals,
    LedgerOption,
    NowOption,
    QuietOption,
    SinceOption,
    StrictOption,
    UntilOption,
)
from gpuledger.cli.session import Session
from gpuledger.cli.windowed import windowed
from gpuledger.model.journal import Level
from gpuledger.operations.journal import journal
from gpuledger.reports import journal_report


def command(
    ctx: typer.Context,
    since: SinceOption = None,
    until: UntilOption = None,
    strict: StrictOption = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """What each reading found, oldest to newest."""
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    with windowed(session, since, until) as (opened, since_us, until_us):
        report = journal(opened, since_us=since_us, until_us=until_us)
    session.answer(
        table=lambda: journal_report.to_table(report, width=session.out.width),
        as_json=lambda: journal_report.to_json(report),
        as_csv=lambda: journal_report.to_csv(report),
    )
    unknown = any(line.level is Level.UNKNOWN for line in report.lines)
    session.finish(answered=bool(report.lines), unknown=unknown, strict=strict)
