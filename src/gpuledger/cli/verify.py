"""``gpuledger verify``."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.progress import progress
from gpuledger.cli.session import Session
from gpuledger.errors import Misconfigured
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
    if root and not re.fullmatch(r"[0-9a-f]{64}", root):
        raise Misconfigured("bad-root", f"{root!r} is no root: 64 hex digits", hint="the last line of gpuledger verify")
    with session.read() as opened, progress(session, "verifying") as step:
        report = verify(opened, now_us=session.now_us, kept_root=root, progress=step)
    session.answer(
        table=lambda: verify_report.to_table(report, width=session.out.width),
        as_json=lambda: verify_report.to_json(report),
        as_csv=lambda: verify_report.to_csv(report),
    )
    if not report.ok:
        raise typer.Exit(6 if report.damaged else 1)
