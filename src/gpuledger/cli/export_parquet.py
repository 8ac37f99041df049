"""``gpuledger export parquet``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.archived import ArchiveOption, archive_under
from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.progress import progress
from gpuledger.cli.session import Session
from gpuledger.model.problem import Problem
from gpuledger.operations.export_parquet import export_parquet
from gpuledger.reports import lake_report


def command(
    ctx: typer.Context,
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="The lake: a new or empty folder, or a lake.")],
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only months that end after it. Default: all.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Only months that begin before it. Default: all.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", metavar="NAME", help="Only this table; may stand several times.")
    ] = None,
    archive: ArchiveOption = None,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Copy the ledger into a lake: a Parquet file for each table and month, sealed by a manifest.

    Any tool that reads Parquet reads it; `gpuledger usage --lake` and `gpuledger meter --lake` do too. A second
    export writes what is new or changed. The texts of who it was are written anew each time, so who was forgotten
    (`gpuledger forget`) leaves the lake with the next export. What left for an archive is exported out of it.
    Needs the extra `lake`.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    with (
        session.read() as opened,
        archive_under(session, opened, archive),
        progress(session, "exporting files") as step,
    ):
        report = export_parquet(
            opened,
            to,
            now_us=session.now_us,
            since_us=session.moment_or_none(since),
            until_us=session.moment_or_none(until),
            tables=table or (),
            progress=step,
        )
    session.problems(
        [
            Problem(code="not-of-the-lake", message="no export wrote it, and other tools would count it", where=name)
            for name in report.strangers
        ]
    )
    session.answer(
        table=lambda: lake_report.export_to_table(report),
        as_json=lambda: lake_report.export_to_json(report),
        as_csv=lambda: lake_report.export_to_csv(report),
    )
