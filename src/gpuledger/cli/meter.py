"""``gpuledger meter``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.progress import progress
from gpuledger.cli.session import Session
from gpuledger.clock import SystemClock
from gpuledger.errors import Misconfigured
from gpuledger.metering.records import CLOSED_AFTER_US
from gpuledger.operations.meter import meter
from gpuledger.reports import meter_report


class Engine(StrEnum):
    """What runs the rule of reserved time."""

    STORE = "store"
    DUCKDB = "duckdb"


def command(
    ctx: typer.Context,
    engine: Annotated[
        Engine,
        typer.Option("--engine", help="What derives reserved time: the store itself, or DuckDB for a long backlog."),
    ] = Engine.STORE,
    lake: Annotated[
        Path | None, typer.Option("--lake", metavar="FOLDER", help="Meter the events of this lake, Parquet to Parquet.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="With --lake: hash every file, and compare with the exported records.")
    ] = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Close the hours that are over: records from evidence, corrections from late evidence.

    An hour is recorded once it has been over for five minutes. Running it again changes nothing. The
    agent does this by itself each hour.

    With --engine duckdb the same records are booked into the ledger, byte for byte; it pays for a backlog of
    millions of events. With --lake nothing is booked: what the events of the lake come to is written to
    derived_record/ in it, final or not, and --check shows where exported records say something else. Both need
    the extra `lake`.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    if lake is not None:
        _meter_lake(session, lake, check=check)
        return
    if check:
        raise Misconfigured("lake-needed", "--check compares a lake, and none is named", hint="--lake FOLDER --check")
    if session.now_us > SystemClock().now_us() + CLOSED_AFTER_US:
        session.talk("note: --now lies ahead of the clock, so hours are closed that are not over")
    with session.existing() as opened:
        with progress(session, "metering hours") as step:
            if engine is Engine.DUCKDB:
                from gpuledger.operations.meter_duckdb import meter_duckdb  # noqa: PLC0415 an engine that few ask for

                report = meter_duckdb(opened, now_us=session.now_us, writer=session.writer("meter"), progress=step)
            else:
                report = meter(opened, now_us=session.now_us, writer=session.writer("meter"), progress=step)
        session.problems(report.problems)
        session.answer(
            table=lambda: meter_report.to_table(report),
            as_json=lambda: meter_report.to_json(report),
            as_csv=lambda: meter_report.to_csv(report),
        )


def _meter_lake(session: Session, lake: Path, *, check: bool) -> None:
    from gpuledger.operations.meter_lake import meter_lake  # noqa: PLC0415 as above
    from gpuledger.reports import lake_report  # noqa: PLC0415

    with progress(session, "deriving parts") as step:
        report = meter_lake(
            lake, now_us=None if session.given.now is None else session.now_us, check=check, progress=step
        )
    session.answer(
        table=lambda: lake_report.meter_to_table(report),
        as_json=lambda: lake_report.meter_to_json(report),
        as_csv=lambda: lake_report.meter_to_csv(report),
    )
    if report.differences:
        raise typer.Exit(1)
