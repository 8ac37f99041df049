"""``gpuledger import slurm``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.bringing_in import bring_in, show
from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.model.durations import several
from gpuledger.operations.import_slurm import read_slurm


def command(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What sacct -P or sacct --json printed; - for stdin.")],
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="NAMES", help="JobID,State,...: the columns of text without a header."),
    ] = None,
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="ZONE", help="Zone of its local times: UTC, Europe/Berlin.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="NAME", help="The cluster, where the rows name none.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="NAME", help="Who says so; default: slurm:CLUSTER.")
    ] = None,
    include_cpu: Annotated[bool, typer.Option("--include-cpu", help="Jobs without a GPU too, as class cpu.")] = False,
    shards_per_gpu: Annotated[
        int, typer.Option("--shards-per-gpu", metavar="N", min=0, help="How many gres/shard make one GPU.")
    ] = 0,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="When it was printed, where it has no Elapsed of what runs."),
    ] = None,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Bring in Slurm's accounting: sacct -P with its header or --columns, or sacct --json; which it is, is seen.

    Allocations are what jobs hold; steps are never added to them, nor typed GPUs to untyped ones. What runs is
    known until the dump was printed. `gpuledger meter` closes it into records, once. A second import, or the next
    dump with the same jobs in it, adds only what is new.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    found = read_slurm(
        file,
        columns=tuple(columns.replace(" ", "").split(",")) if columns else (),
        zone=zone,
        cluster=cluster or "",
        source=source,
        include_cpu=include_cpu,
        shards_per_gpu=shards_per_gpu,
    )
    report = bring_in(session, found.history, file=file, as_of=as_of)
    if found.without_gpu and not include_cpu:
        session.talk(f"note: {several(found.without_gpu, 'job')} without a GPU left out; --include-cpu brings them in")
    if found.spread.jobs:
        session.talk(
            f"note: {several(found.spread.jobs, 'job')} ran on several nodes, and how many GPUs on each is not told: "
            f"{int(found.spread.amount):,} device-seconds are of no host and no host-owner"
        )
    show(session, report)
