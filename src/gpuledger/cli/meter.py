"""``gpuledger meter``."""

from __future__ import annotations

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.progress import progress
from gpuledger.cli.session import Session
from gpuledger.clock import SystemClock
from gpuledger.metering.records import CLOSED_AFTER_US
from gpuledger.operations.meter import meter
from gpuledger.reports import meter_report


def command(
    ctx: typer.Context,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Close the hours that are over: records from evidence, corrections from late evidence.

    An hour is recorded once it has been over for five minutes. Running it again changes nothing. The
    agent does this by itself each hour.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    if session.now_us > SystemClock().now_us() + CLOSED_AFTER_US:
        session.talk("note: --now lies ahead of the clock, so hours are closed that are not over")
    with session.existing() as opened:
        with progress(session, "metering hours") as step:
            report = meter(opened, now_us=session.now_us, writer=session.writer("meter"), progress=step)
        session.problems(report.problems)
        session.answer(
            table=lambda: meter_report.to_table(report),
            as_json=lambda: meter_report.to_json(report),
            as_csv=lambda: meter_report.to_csv(report),
        )
