"""``gpuledger import nvidia-smi``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.operations.import_nvidia_smi import import_nvidia_smi
from gpuledger.reports import import_report


def command(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV, XML or text that nvidia-smi printed; - for stdin.")
    ],
    pid_map: Annotated[
        Path | None, typer.Option("--pid-map", metavar="FILE", help="Lines of pid<TAB>service<TAB>epoch seconds.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="NAME", help="The machine it was printed on; needed for masked UUIDs."),
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", metavar="UUID", help="The device, where the file has no device column.")
    ] = None,
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="ZONE", help="Zone of its local times: UTC, Europe/Berlin.")
    ] = None,
    taken_at: Annotated[
        str | None, typer.Option("--taken-at", metavar="TIME", help="When it was printed, where the file does not say.")
    ] = None,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Bring in what nvidia-smi printed: accounted processes, living processes, devices, accounting mode.

    The same rows read twice, or from two files, count once. nvidia-smi gives no start times, so a row
    is placed in the latest span it can have had, and named only by a map or where its pid is unique.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    report = import_nvidia_smi(
        session.append,
        file,
        pid_map=pid_map,
        host=host,
        local_host=session.host,
        device=device or "",
        zone=zone,
        taken_at_us=session.moment_or_none(taken_at),
        now_us=session.now_us,
        role="import",
    )
    session.problems(report.problems)
    session.answer(
        table=lambda: import_report.to_table(report),
        as_json=lambda: import_report.to_json(report),
        as_csv=lambda: import_report.to_csv(report),
    )
