"""``gpuledger archive``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.progress import progress
from gpuledger.cli.session import Session
from gpuledger.errors import Misconfigured
from gpuledger.operations.archive import archive
from gpuledger.reports import archive_report


def command(
    ctx: typer.Context,
    before: Annotated[
        str, typer.Option("--before", metavar="MONTH", help="Whole UTC months before this leave: 2026-08, 2026-08-15.")
    ] = "",
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="The archive's folder: empty, or that of an earlier archive."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it. Without it only what would leave, and what stays, is shown.")
    ] = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Move old evidence out of the ledger, into sealed Parquet files by month. Records and seals stay.

    Finished processes, looks and workload events of months that are final leave; what later hours need stays.
    The files are written, read back and compared before a row goes, and the ledger keeps what left, with hashes.
    `verify` and `explain` go on working with the folder at hand (--archive, or the setting `archive`). On
    PostgreSQL only the owner of the tables can do it.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    before_us = session.moment_or_none(before or None)
    if before_us is None:
        raise Misconfigured("no-bound", "nothing says what is old", hint="gpuledger archive --before 2026-08")
    asked = to or (Path(session.settings["archive"]) if session.settings["archive"] else None)
    with session.existing() if yes else session.read() as opened, progress(session, "archiving") as step:
        report = archive(
            opened,
            before_us=before_us,
            folder=asked,
            done=yes,
            now_us=session.now_us,
            writer=session.writer("archive"),
            progress=step,
        )
    session.problems(report.problems)
    session.answer(
        table=lambda: archive_report.to_table(report),
        as_json=lambda: archive_report.to_json(report),
        as_csv=lambda: archive_report.to_csv(report),
    )
