"""``gpuledger policy``."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.operations.policy import versions
from gpuledger.reports import policy_report


def command(
    ctx: typer.Context,
    version: Annotated[int | None, typer.Argument(metavar="VERSION", help="Print this version's document.")] = None,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Show the policy versions, or one version's document as it was applied."""
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    with session.read() as opened:
        found = versions(opened, version)
    session.answer(
        table=lambda: policy_report.versions_table(found, whole=version is not None),
        as_json=lambda: policy_report.versions_json(found),
        as_csv=lambda: policy_report.versions_csv(found),
    )
