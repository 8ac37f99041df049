"""``gpuledger doctor``."""

from __future__ import annotations

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.operations.doctor import doctor
from gpuledger.reports import doctor_report


def command(
    ctx: typer.Context,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """What is missing on this machine, and the command that mends it."""
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    report = doctor(host=session.host, place=session.place, now_us=session.now_us)
    session.answer(
        table=lambda: doctor_report.to_table(report, width=session.out.width),
        as_json=lambda: doctor_report.to_json(report),
        as_csv=lambda: doctor_report.to_csv(report),
    )
    if not report.ok:
        raise typer.Exit(1)
