"""``gpuledger forget``."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.model.forgetting import Choice
from gpuledger.model.missing import Missing
from gpuledger.operations.forget import forget
from gpuledger.reports import forget_report

_ANY_TIME = Missing("not given")


def command(
    ctx: typer.Context,
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="Identities of this login name.")] = "",
    subject: Annotated[
        str,
        typer.Option(
            "--subject", metavar="SUBJECT", help="Identities of this subject, as `usage --by subject` has it."
        ),
    ] = "",
    service: Annotated[
        str, typer.Option("--service", metavar="NAME", help="Identities of this service, by the policy of now.")
    ] = "",
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="TIME", help="Identities last seen alive before: 2026-11, 90d, today."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Drop them. Without it only what would be dropped is shown.")
    ] = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Drop who it was: command lines, users, units and paths go for good, amounts and seals stand.

    Options together must all fit. Without --yes nothing is changed. What is dropped reads `forgotten`
    everywhere from then on, and the bytes are gone from the ledger's files.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    before_us = session.moment_or_none(before)
    options = (("--user", user), ("--subject", subject), ("--service", service), ("--before", before or ""))
    choice = Choice(
        user=user, subject=subject, service=service, before_us=_ANY_TIME if before_us is None else before_us
    )
    with session.existing() if yes else session.read() as opened:
        report = forget(
            opened,
            choice,
            typed=tuple((name, value) for name, value in options if value),
            done=yes,
            host=session.host,
            writer=session.writer("forget"),
            now_us=session.now_us,
        )
    session.problems(report.problems)
    session.answer(
        table=lambda: forget_report.to_table(report),
        as_json=lambda: forget_report.to_json(report),
        as_csv=lambda: forget_report.to_csv(report),
    )
    if report.verified is False:
        raise typer.Exit(1)
