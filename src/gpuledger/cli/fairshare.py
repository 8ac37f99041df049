"""``gpuledger fairshare``."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuledger.cli.options import (
    ConfigOption,
    FormatOption,
    Globals,
    LedgerOption,
    NowOption,
    QuietOption,
    StrictOption,
)
from gpuledger.cli.session import Session
from gpuledger.errors import Misconfigured
from gpuledger.operations.fairshare import explain_fairshare, fairshare, of_user
from gpuledger.reports import explain_report, fairshare_report


def command(
    ctx: typer.Context,
    pool: Annotated[
        str | None, typer.Option("--pool", metavar="POOL", help="Of the waiting, only those that can run in this pool.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Only this user, and the accounts above.")
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option("--explain", metavar="NAME", help="Every factor behind the rank of a user, or of an account."),
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="As it stood then: 2026-11-29T14:00Z, yesterday, 7d.")
    ] = None,
    strict: StrictOption = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Who used less of what they may, and who is next.

    From the `shares` of the policy and reserved GPU time, which counts half after each half-life: by Slurm's Fair Tree,
    or by its classic formula. Lists accounts and users with shares, usage, factor and rank, what was used outside of
    the tree, and the workloads that wait, the first in line first; of equals who waits longest.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    if explain and (user or pool):
        option = "--user" if user else "--pool"
        hint = f"gpuledger fairshare --explain {explain}   (it is explained among all)"
        raise Misconfigured("bad-usage", f"--explain takes no {option}", hint=hint)
    asked_us = session.moment_or_none(at)
    with session.read() as opened:
        found = fairshare(
            opened,
            at_us=session.now_us if asked_us is None else asked_us,
            now_us=session.now_us,
            pool=pool or "",
        )
    report = of_user(found.report, user) if user else found.report
    tree = explain_fairshare(found, explain) if explain else None
    session.problems(report.problems)
    if tree is not None:
        session.answer(
            table=lambda: explain_report.to_tree(tree), as_json=lambda: explain_report.to_json(tree), whole_lines=True
        )
    else:
        session.answer(
            table=lambda: fairshare_report.to_table(report),
            as_json=lambda: fairshare_report.to_json(report),
            as_csv=lambda: fairshare_report.to_csv(report),
        )
    if not report.told:
        session.nothing_told(report.first_us, at="--at")
    session.finish(answered=True, unknown=bool(report.gaps or report.outside or report.problems), strict=strict)
