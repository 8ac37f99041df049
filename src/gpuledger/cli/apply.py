"""``gpuledger apply``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.operations.apply import apply
from gpuledger.reports import policy_report


def command(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The policy, one YAML document; - for stdin.")],
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Apply a policy file: service rules and owners. Each version is kept and never changed."""
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    applied = apply(session.append, file, now_us=session.now_us, writer=session.writer("policy"))
    session.problems(applied.problems)
    session.answer(
        table=lambda: policy_report.applied_table(applied),
        as_json=lambda: policy_report.applied_json(applied),
        as_csv=lambda: policy_report.applied_csv(applied),
    )
