"""``gpuledger verify``."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from gpuledger.cli.archived import ArchiveOption, lay_archive
from gpuledger.cli.options import (
    ConfigOption,
    FormatOption,
    Globals,
    LedgerOption,
    NowOption,
    QuietOption,
    StrictOption,
)
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
    archive: ArchiveOption = None,
    strict: StrictOption = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Recompute the hash chains and seals, derive the records again, and check the laws.

    Rows that left for an archive are checked out of it; without it they are told as not checked (--strict: exit 1).
    Prints the latest root: keep it elsewhere, and a later rewrite of the whole ledger shows too.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    if root and not re.fullmatch(r"[0-9a-f]{64}", root):
        raise Misconfigured("bad-root", f"{root!r} is no root: 64 hex digits", hint="the last line of gpuledger verify")
    with session.read() as opened, progress(session, "verifying") as step:
        laid = lay_archive(session, opened, archive)
        report = verify(opened, now_us=session.now_us, kept_root=root, laid=laid, progress=step)
    session.answer(
        table=lambda: verify_report.to_table(report, width=session.out.width),
        as_json=lambda: verify_report.to_json(report),
        as_csv=lambda: verify_report.to_csv(report),
    )
    if not report.ok:
        raise typer.Exit(6 if report.damaged else 1)
    if strict and report.skipped:
        raise typer.Exit(1)
