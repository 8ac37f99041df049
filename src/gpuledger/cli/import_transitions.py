"""``gpuledger import transitions``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.progress import progress
from gpuledger.cli.session import Session
from gpuledger.errors import Misconfigured
from gpuledger.operations.import_transitions import import_transitions, read_lines, read_query
from gpuledger.reports import import_history_report


def command(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="JSON lines, a transition each; - for stdin.")
    ] = None,
    sql: Annotated[
        str,
        typer.Option("--sql", metavar="SELECT", help="A query instead of a file: its columns are the words of a line."),
    ] = "",
    database: Annotated[
        str,
        typer.Option(
            "--database", metavar="URL", help="Where the query runs: sqlite:///PATH, postgresql+psycopg://..."
        ),
    ] = "",
    cursor: Annotated[
        str,
        typer.Option(
            "--cursor", metavar="COLUMN", help="A column that only rises: the next import goes on from there."
        ),
    ] = "",
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="Who says so, where a line does not.")
    ] = "import",
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help="Until when all is told; a query's default: now. What is open is metered to then.",
        ),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Leave broken lines out and tell them; else the first refuses all.")
    ] = False,
    zone: Annotated[
        str | None,
        typer.Option("--zone", metavar="ZONE", help="Which clock times without a zone are of: UTC, Europe/Berlin."),
    ] = None,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Bring in the lifecycle events of a control plane that writes its own file or database, each once.

    They are facts: what breaks a rule is kept and told. A second import adds nothing, so it can run from cron.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    if (file is None) == (not sql) or bool(sql) != bool(database) or (cursor and not sql):
        raise Misconfigured(
            "bad-usage",
            "either a FILE, or --sql with --database (and --cursor)",
            hint='gpuledger import transitions --sql "SELECT ..." --database sqlite:///PATH --cursor id',
        )
    as_of_us = session.moment_or_none(as_of)
    reached = None
    if file is not None:
        lines, path = read_lines(file, source=source, keep_going=keep_going, zone=zone), str(file)
    else:
        lines, value = read_query(
            session.append, sql, database=database, cursor=cursor, source=source, keep_going=keep_going, zone=zone
        )
        path, reached = "the query", (sql, cursor, value)
        as_of_us = session.now_us if as_of_us is None else as_of_us
    with progress(session, "transitions") as step:
        report = import_transitions(
            session.append,
            lines,
            path=path,
            source=source,
            as_of_us=as_of_us,
            now_us=session.now_us,
            writer=session.writer("import"),
            reached=reached,
            progress=step,
        )
    session.problems(report.problems)
    session.answer(
        table=lambda: import_history_report.to_table(report),
        as_json=lambda: import_history_report.to_json(report),
        as_csv=lambda: import_history_report.to_csv(report),
    )
