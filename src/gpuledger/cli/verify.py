"""``gpuledger verify``."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuledger.cli.progress import progress
from gpuledger.cli.session import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption, Session
from gpuledger.operations.verify import verify
from gpuledger.reports import verify_report


def command(
    ctx: typer.Context,
    root: Annotated[
        str,
        typer.Option(
            "--root", metavar="HEX", help="A root printed earlier and kept elsewhere: must be among the seals."
        ),
    ] = "",
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Recompute the hash chains and seals, derive the records again, and check the laws.

    Prints the latest root: keep it elsewhere, and a later rewrite of the whole ledger shows too.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    with session.read() as opened, progress(session, "verifying") as step:
        report = verify(opened, now_us=session.now_us, kept_root=root, progress=step)
    session.answer(
        table=lambda: verify_report.to_table(report, width=session.out.width),
        as_json=lambda: verify_report.to_json(report),
        as_csv=lambda: verify_report.to_csv(report),
    )
    if not report.ok:
        raise typer.Exit(6 if report.damaged else 1)
