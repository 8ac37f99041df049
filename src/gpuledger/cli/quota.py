"""``gpuledger quota``."""

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
from gpuledger.operations.quota import quota
from gpuledger.reports import quota_report


def command(
    ctx: typer.Context,
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Only what binds this user: own, roles, and the team.")
    ] = "",
    team: Annotated[str, typer.Option("--team", metavar="NAME", help="Only what binds this team.")] = "",
    role: Annotated[str, typer.Option("--role", metavar="NAME", help="Only what binds those with this role.")] = "",
    class_name: Annotated[
        str, typer.Option("--class", metavar="CLASS", help="Only quotas that count this class.")
    ] = "",
    strict: StrictOption = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Who has what: each quota of the policy, what of it is used and left, and who holds it.

    Devices count shares, held at this moment. Device-hours are those of the period, recorded or not, open time
    included; promised is what those who hold now will still use by the ends they gave. More can be used than
    allowed: events and imports are facts. Quotas are checked by `gpuledger admit`.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    with session.read() as opened:
        report = quota(opened, user=user, team=team, role=role, class_name=class_name, now_us=session.now_us)
    session.problems(report.problems)
    session.answer(
        table=lambda: quota_report.to_table(report),
        as_json=lambda: quota_report.to_json(report),
        as_csv=lambda: quota_report.to_csv(report),
    )
    unknown = bool(report.unknown or report.problems) or any(use.unknown for use in report.uses)
    if report.uses and not report.told:
        session.nothing_told(report.first_us)
    session.finish(answered=True, unknown=unknown, strict=strict)
