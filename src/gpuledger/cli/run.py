"""``gpuledger run``."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, Format, FormatOption, Globals, LedgerOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.cli.talk import say
from gpuledger.errors import GpuledgerError, Misconfigured
from gpuledger.model.missing import Missing
from gpuledger.model.receipt import Receipt
from gpuledger.operations.own_watch import WatchPlan
from gpuledger.operations.receipt_file import check_place, write_receipt
from gpuledger.operations.run import Outcome, RunPlan, run
from gpuledger.reports import receipt_report
from gpuledger.settings import parse_span_us

CONTEXT_SETTINGS = {"allow_interspersed_args": False}
"""Options stand before the command; what follows it is the command's own."""


def command(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(metavar="-- CMD ARGS...", help="The command and its arguments, looked up in PATH."),
    ],
    receipt: Annotated[
        Path | None,
        typer.Option(
            "--receipt", metavar="FILE", help="Write the receipt to this file too, as JSON, whole or not at all."
        ),
    ] = None,
    interval: Annotated[
        str, typer.Option("--interval", metavar="TIME", help="Between two looks, where no agent looks.")
    ] = "200ms",
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    quiet: QuietOption = False,
) -> None:
    """Run a command and print its receipt: what it held of the GPUs, its neighbours, what is unknown.

    The command keeps its stdin, stdout, stderr and signals, and run ends with its exit status (128 + N
    for death by signal N; 127 where there is no such command, 126 where it cannot be executed). The
    receipt goes to stderr. While an agent works on the same ledger it is only read; else this process
    looks itself, and writes what it sees to the ledger.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, quiet=quiet))
    session.refuse_now("a command runs in the present")
    if session.format is Format.CSV:
        raise Misconfigured("no-csv", "a receipt is a document, not rows", hint="use --format json")
    place = receipt
    if place is not None:
        check_place(place)
    plan = RunPlan(
        words=tuple(words),
        place=session.given.ledger or "",
        watch=WatchPlan(
            ledger=session.placed(),
            host=session.host,
            interval_us=parse_span_us(interval, name="--interval"),
            flush_us=parse_span_us(session.settings["agent.flush"], name="agent.flush"),
            method=session.settings["agent.watch"],
        ),
    )
    outcome = run(plan, clock=session.clock, waiting=_waiting(session))
    try:
        _tell(session, outcome, place)
    except (OSError, SystemExit):  # Rich ends so where it meets the broken pipe first
        # nobody reads stderr any more, so nobody can be told; what is left unsaid must not change the status at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    except Exception:  # noqa: BLE001 - a bug, told as such, and yet no other status than the command's own
        _say_lines(
            session, f"no receipt: a bug in gpuledger, please report it with this text:\n{traceback.format_exc()}"
        )
    raise typer.Exit(outcome.status)


def _waiting(session: Session) -> Callable[[str], AbstractContextManager[object]]:
    @contextmanager
    def shown(sentence: str) -> Iterator[None]:
        if session.quiet or not session.err.is_terminal:
            yield
            return
        with session.err.status(sentence):
            yield

    return shown


def _tell(session: Session, outcome: Outcome, place: Path | None) -> None:
    """The receipt, on stderr and in its file; troubles are said, and change no status."""
    for note in dict.fromkeys(outcome.notes):
        _say_lines(session, f"note: {note}")
    made = outcome.receipt
    if isinstance(made, Missing):
        _say_lines(session, f"no receipt: {made.reason}")
        if place is not None:
            session.talk(f"{place} was not written")
        return
    if place is not None:
        try:
            write_receipt(place, json.dumps(receipt_report.to_json(made), indent=1) + "\n")
        except GpuledgerError as error:
            say(session.err, f"error: {error.message} [{error.code}]")
    if not session.quiet:
        _print(session, made)


def _say_lines(session: Session, text: str) -> None:
    for line in text.splitlines():
        session.talk(line)


def _print(session: Session, made: Receipt) -> None:
    if session.format is Format.JSON:
        session.err.file.write(json.dumps(receipt_report.to_json(made)) + "\n")
    else:
        session.show(receipt_report.to_table(made), on=session.err)
    session.err.file.flush()
