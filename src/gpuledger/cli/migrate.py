"""``gpuledger migrate``."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.operations.migrate import migrate
from gpuledger.reports import migrate_report


def command(
    ctx: typer.Context,
    application: Annotated[
        list[str] | None,
        typer.Option(
            "--application",
            metavar="ROLE",
            help="A role of the server that adds rows: agents, meters, controllers (gpuledger). May be given again.",
        ),
    ] = None,
    reader: Annotated[
        list[str] | None,
        typer.Option("--reader", metavar="ROLE", help="A role that only reads: dashboards. May be given again."),
    ] = None,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    quiet: QuietOption = False,
) -> None:
    """Make the tables of a ledger on PostgreSQL, or bring them up to date, and grant them.

    Run it as the role that owns the tables, which is not the one that the agents use: they can then add
    rows and read them, and nothing else. Rows are never rewritten. A ledger in a file (SQLite) is
    brought up to date by whoever opens it to append, and by this command too.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, quiet=quiet))
    report = migrate(session.placed(), applications=application or (), readers=reader or ())
    session.problems(report.problems)
    session.answer(
        table=lambda: migrate_report.to_table(report),
        as_json=lambda: migrate_report.to_json(report),
        as_csv=lambda: migrate_report.to_csv(report),
    )
