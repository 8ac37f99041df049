"""``gpuledger copy``."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, QuietOption
from gpuledger.cli.progress import progress
from gpuledger.cli.session import Session
from gpuledger.operations.copy import copy
from gpuledger.reports import copy_report


def command(
    ctx: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="The ledger to copy: a path, sqlite:///PATH or postgresql://...")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TO", help="Where to: an empty ledger, or one that was copied from the same.")
    ],
    config: ConfigOption = None,
    format_: FormatOption = None,
    quiet: QuietOption = False,
) -> None:
    """Copy a ledger, byte for byte: from SQLite to PostgreSQL, back, or anywhere else.

    Rows, chains, seals and identity texts go over as they are, so `gpuledger verify` prints the same
    root on both sides. Run again it goes on where it stopped, and adds what is new. Stop whoever writes to FROM
    for the last run, and point them at TO.
    """
    session = Session(ctx, Globals(config=config, format=format_, quiet=quiet))
    with progress(session, "copying rows") as step:
        report = copy(source, target, progress=step)
    session.answer(
        table=lambda: copy_report.to_table(report),
        as_json=lambda: copy_report.to_json(report),
        as_csv=lambda: copy_report.to_csv(report),
    )
