"""``gpuledger usage``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import (
    ConfigOption,
    FormatOption,
    Globals,
    LedgerOption,
    NowOption,
    QuietOption,
    SinceOption,
    StrictOption,
    UntilOption,
)
from gpuledger.cli.session import Session
from gpuledger.cli.windowed import MeterOption, windowed
from gpuledger.errors import Misconfigured
from gpuledger.model.meters import RESERVED_METERS, Meter
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.reasons import ReservedReason
from gpuledger.model.reserved import ReservedReport
from gpuledger.model.usage import BY, NO_NAME
from gpuledger.operations.usage import usage
from gpuledger.operations.usage_reserved import usage_reserved
from gpuledger.reports import reserved_report, usage_report

ByOption = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="WORDS",
        help=f"Group by one or more of {', '.join(BY)}; reserved time also by region and label:NAME. "
        "Default: service, of reserved time class.",
    ),
]


def command(
    ctx: typer.Context,
    meter: MeterOption = "gpu.context",
    by: ByOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    lake: Annotated[
        Path | None,
        typer.Option(
            "--lake", metavar="FOLDER", help="Ask a lake in place of the ledger: whole hours of reserved time."
        ),
    ] = None,
    strict: StrictOption = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Who used how much, with what could not be seen beside it.

    Hours not recorded yet are derived at once and marked provisional. A line or a total can be passed
    to `gpuledger explain` with the same --since and --until. Reserved time (gpu.reserved, cpu.reserved,
    mig.memory) is who held what, whether or not it was busy. With --lake the sums come from the Parquet files
    of `gpuledger export parquet`, by DuckDB (extra `lake`); what reservations do not tell is not looked for there.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    reserved = next((each for each in RESERVED_METERS if each.name == meter), None)
    words = tuple(word.strip() for word in (by or ("class" if reserved else "service")).split(","))
    if lake is not None:
        _answer_lake(session, lake, reserved, meter=meter, by=words, since=since, until=until, strict=strict)
        return
    with windowed(session, since, until, meter=meter) as (opened, since_us, until_us):
        if reserved is not None:
            held = usage_reserved(
                opened, meter=reserved, by=words, since_us=since_us, until_us=until_us, now_us=session.now_us
            )
            _answer_reserved(session, held, strict=strict)
            return
        report = usage(opened, meter=meter, by=words, since_us=since_us, until_us=until_us, now_us=session.now_us)
    session.problems(report.problems)
    session.answer(
        table=lambda: usage_report.to_table(report, width=session.out.width),
        as_json=lambda: usage_report.to_json(report),
        as_csv=lambda: usage_report.to_csv(report),
    )
    session.finish(answered=report.answered, unknown=bool(report.unknown or report.unattributed), strict=strict)


def _answer_lake(
    session: Session, lake: Path, reserved: Meter | None, *, meter: str, by: tuple[str, ...], since: str | None,
    until: str | None, strict: bool,
) -> None:  # fmt: skip
    from gpuledger.operations.usage_lake import usage_lake  # noqa: PLC0415 an engine that few ask for

    if reserved is None:
        raise Misconfigured(
            "not-in-a-lake",
            f"{meter} is not summed from a lake: only reserved time is",
            hint=f"--meter {RESERVED_METERS[0].name}, or ask the ledger",
        )
    report = usage_lake(
        lake,
        meter=reserved,
        by=by,
        since_us=session.moment_or_none(since),
        until_us=session.moment_or_none(until),
        now_us=session.now_us,
    )
    _answer_reserved(session, report, strict=False)
    session.talk(
        "note: a lake does not look for what reservations do not tell (gaps: unplaced, silent controllers, late "
        "evidence), nor for hours after its last export; `gpuledger blind` on the ledger does"
    )
    if strict:
        raise typer.Exit(1)


def _answer_reserved(session: Session, report: ReservedReport, *, strict: bool) -> None:
    session.answer(
        table=lambda: reserved_report.to_table(report),
        as_json=lambda: reserved_report.to_json(report),
        as_csv=lambda: reserved_report.to_csv(report),
    )
    if not report.answered:
        session.nothing_told()
    if not isinstance(report.owners_from_us, Missing) and any(NO_NAME in row.key for row in report.rows):
        session.talk(
            f"note: owners hold from {iso(report.owners_from_us)}, when the first policy takes effect, and before that "
            "there are none; `effective_from: DATE` in a policy gives them to earlier hours"
        )
    # what a guest did on a device handed through to it is UNKNOWN; for how long that was reserved is not
    in_doubt = [gap for gap in report.gaps if gap.reason is not ReservedReason.PASSTHROUGH]
    session.finish(answered=True, unknown=bool(in_doubt), strict=strict)
