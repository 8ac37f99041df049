"""``gpuledger demo``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.errors import Misconfigured
from gpuledger.ledger.store import Ledger
from gpuledger.operations.demo import demo
from gpuledger.reports import blind_report, meter_report, usage_report
from gpuledger.reports.cells import cell, stacked


def command(
    ctx: typer.Context,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep the ledger in this folder, which must be empty.")
    ] = None,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """The whole of it in 20 seconds, without a GPU: a simulated driver, real processes, a real answer."""
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    if session.given.ledger is not None or session.given.now is not None:
        raise Misconfigured(
            "demo-ledger", "the demo plays now, into a ledger of its own", hint="gpuledger demo --keep DIR"
        )
    with tempfile.TemporaryDirectory(prefix="gpuledger-demo-") as scratch:
        folder = _kept(keep) if keep is not None else Path(scratch)
        place = str(folder / "ledger.db")
        report = demo(
            lambda: Ledger.open(place, mode="append"), folder, clock=session.clock, host=session.host, talk=session.talk
        )
        session.talk("")
        session.answer(
            table=lambda: stacked(
                usage_report.to_table(report.usage, width=session.out.width, unseen_too=False),
                cell(""),
                blind_report.to_table(report.blind, width=session.out.width),
                cell(""),
                meter_report.to_table(report.metered),
                cell(f"verify: {'nothing found' if report.sound else 'FOUND something'}; root {report.root}"),
            ),
            as_json=lambda: {
                "usage": usage_report.to_json(report.usage),
                "blind": blind_report.to_json(report.blind),
                "meter": meter_report.to_json(report.metered),
                "sound": report.sound,
                "root": report.root,
            },
        )
    session.talk("")
    if keep is not None:
        session.talk(f"the ledger is kept: gpuledger --ledger {place} journal   (or usage, blind, explain total)")
    else:
        session.talk("next: gpuledger doctor   (what this machine has), then gpuledger agent")
    if not report.sound:
        raise typer.Exit(1)


def _kept(keep: Path) -> Path:
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise Misconfigured("folder-not-empty", f"{keep} is not empty", hint="--keep with a new folder")
    return keep
