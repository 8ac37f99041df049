"""``gpuledger explain``."""

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
from gpuledger.cli.windowed import MeterOption, windowed
from gpuledger.operations.archived import needed_for
from gpuledger.operations.explain import explain
from gpuledger.reports import explain_report


def command(
    ctx: typer.Context,
    ref: Annotated[
        str,
        typer.Argument(
            metavar="REF",
            help="A row (record:HOST.meter/12), a line of usage (service:ollama, user:alice, unit:ollama.service), "
            "unattributed, unattributed:CAUSE, or total.",
        ),
    ],
    meter: MeterOption = "gpu.context",
    since: SinceOption = None,
    until: UntilOption = None,
    archive: ArchiveOption = None,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """From a line, record or total down to the evidence, to the driver's own row.

    Evidence that was archived is read out of the archive, where it is at hand.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    with windowed(session, since, until, archive=archive) as (opened, since_us, until_us):
        left = needed_for(opened, ref, since_us, until_us)
        with archive_under(session, opened, archive, is_needed=bool(left)):
            tree = explain(opened, ref, meter=meter, since_us=since_us, until_us=until_us, now_us=session.now_us)
    session.answer(
        table=lambda: explain_report.to_tree(tree), as_json=lambda: explain_report.to_json(tree), whole_lines=True
    )
