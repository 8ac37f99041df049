"""``gpuledger usage``."""

from __future__ import annotations

from typing import Annotated

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
from gpuledger.cli.windowed import MeterOption, windowed
from gpuledger.model.usage import BY
from gpuledger.operations.usage import usage
from gpuledger.reports import usage_report

ByOption = Annotated[str, typer.Option("--by", metavar="WORDS", help=f"Group by one or more of {', '.join(BY)}.")]


def command(
    ctx: typer.Context,
    meter: MeterOption = "gpu.context",
    by: ByOption = "service",
    since: SinceOption = None,
    until: UntilOption = None,
    strict: StrictOption = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Who used how much, with what could not be seen beside it.

    Hours not recorded yet are derived at once and marked provisional. A line or a total can be passed
    to `gpuledger explain` with the same --since and --until.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    with windowed(session, since, until) as (opened, since_us, until_us):
        report = usage(
            opened, meter=meter, by=tuple(by.replace(" ", "").split(",")), since_us=since_us, until_us=until_us,
            now_us=session.now_us,
        )  # fmt: skip
    session.problems(report.problems)
    session.answer(
        table=lambda: usage_report.to_table(report, width=session.out.width),
        as_json=lambda: usage_report.to_json(report),
        as_csv=lambda: usage_report.to_csv(report),
    )
    session.finish(answered=report.answered, unknown=bool(report.unknown or report.unattributed), strict=strict)
