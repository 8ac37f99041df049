"""``gpuledger correct``."""

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
    UntilOption,
)
from gpuledger.cli.session import Session
from gpuledger.model.missing import Missing
from gpuledger.operations.correct import correct
from gpuledger.operations.usage import window
from gpuledger.reports import correct_report


def command(
    ctx: typer.Context,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why, in a sentence: kept in each correction for good.")
    ],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides it: kept as well.")],
    yes: Annotated[bool, typer.Option("--yes", help="Book it. Without it only what would be booked is shown.")] = False,
    since: SinceOption = None,
    until: UntilOption = None,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Book what came late for final hours of reserved time, with a reason and a name.

    An hour is final 48 hours after the first pass that covered it. What comes later is listed by
    `gpuledger blind` as late-evidence, and no pass books it. Without --yes nothing is changed. With it
    a metering pass runs first, as `gpuledger meter` does: what may be booked without a reason needs none.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    asked = {"since": session.moment_or_none(since), "until": session.moment_or_none(until)}
    with session.existing() if yes else session.read() as opened:
        since_us, until_us = window(opened, **asked, now_us=session.now_us, reserved=True)
        report = correct(
            opened, why=reason, by=by, since_us=since_us, until_us=until_us, is_done=yes, now_us=session.now_us,
            writer=session.writer("correct"), pass_writer=session.writer("meter"),
        )  # fmt: skip
    if not isinstance(report.ran, Missing):
        session.problems(report.ran.problems)
    session.answer(
        table=lambda: correct_report.to_table(report),
        as_json=lambda: correct_report.to_json(report),
        as_csv=lambda: correct_report.to_csv(report),
    )
