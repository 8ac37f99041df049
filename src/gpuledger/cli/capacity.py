"""``gpuledger capacity``."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuledger.cli.archived import ArchiveOption, archive_under
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
from gpuledger.operations.archived import archived_between
from gpuledger.operations.capacity import capacity
from gpuledger.reports import capacity_report


def command(
    ctx: typer.Context,
    since: SinceOption = None,
    until: UntilOption = None,
    class_: Annotated[
        str | None, typer.Option("--class", metavar="CLASS", help="Only this class, and requests that it meets.")
    ] = None,
    archive: ArchiveOption = None,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """What is always queued, how often something else is given, how much is held and owned, by class.

    From lifecycle events: waits from pending to the first state that holds devices, as median and 95th percentile by
    nearest rank; fallbacks, a request against what was placed; peak and mean of devices held, shares exact.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    since_us, until_us = session.moment_or_none(since), session.moment_or_none(until)
    with session.read() as opened:
        left = archived_between(opened, 0 if since_us is None else since_us, until_us or session.now_us)
        with archive_under(session, opened, archive, is_needed=bool(left)):
            report = capacity(
                opened,
                since_us=since_us,
                until_us=until_us,
                class_name=class_ or "",
                now_us=session.now_us,
            )
    session.problems(report.problems)
    session.answer(
        table=lambda: capacity_report.to_table(report),
        as_json=lambda: capacity_report.to_json(report),
        as_csv=lambda: capacity_report.to_csv(report),
    )
    session.finish(answered=report.answered, unknown=False, strict=False)
