"""``gpuledger smi``."""

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
    StrictOption,
)
from gpuledger.cli.session import Session
from gpuledger.operations.archived import archived_between
from gpuledger.operations.smi import smi
from gpuledger.reports import smi_report


def command(
    ctx: typer.Context,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="The moment: 2026-11-29T14:00Z, today, 2h. Default: now, which is the last look.",
        ),
    ] = None,
    archive: ArchiveOption = None,
    strict: StrictOption = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """What nvidia-smi would have shown at any past moment, with names, the dead included.

    Each device, then the processes that held it, with the row that proves it. A device that nobody
    watched then reads UNKNOWN with its reason, never empty.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    at_us = session.moment_or_none(at)
    with session.read() as opened:
        left = [] if at_us is None else archived_between(opened, at_us, at_us + 1)
        with archive_under(session, opened, archive, is_needed=bool(left)):
            report = smi(opened, at_us=at_us, now_us=session.now_us)
    session.answer(
        table=lambda: smi_report.to_table(report),
        as_json=lambda: smi_report.to_json(report),
        as_csv=lambda: smi_report.to_csv(report),
    )
    nothing = (
        "nobody can say who held the devices at that moment; why stands with each of them"
        if report.devices
        else "no device is known to this ledger"
    )
    session.finish(answered=report.answered, unknown=report.has_unknown_parts, strict=strict, nothing=nothing)
