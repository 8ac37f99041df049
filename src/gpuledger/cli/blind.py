"""``gpuledger blind``."""

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
from gpuledger.model.missing import Missing
from gpuledger.operations.blind import blind
from gpuledger.reports import blind_report


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
    """What the ledger cannot see: UNKNOWN time by reason, unnamed amounts by cause, open contexts.

    Of reserved time: workloads without a placement, silent controllers, devices that two sources reserve, and
    what came late for final hours.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    with windowed(session, since, until) as (opened, since_us, until_us):
        report = blind(opened, since_us=since_us, until_us=until_us, now_us=session.now_us)
    session.problems(report.problems)
    session.answer(
        table=lambda: blind_report.to_table(report, width=session.out.width),
        as_json=lambda: blind_report.to_json(report),
        as_csv=lambda: blind_report.to_csv(report),
    )
    session.finish(
        answered=report.is_told or not isinstance(report.total_ms, Missing),
        unknown=bool(report.unknown or report.unattributed or report.reserved), strict=strict,
    )  # fmt: skip
