"""``gpuledger top``."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from typing import Annotated

import typer
from rich.console import ConsoleDimensions
from rich.live import Live

from gpuledger.cli.options import ConfigOption, Format, FormatOption, Globals, LedgerOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.cli.terminal import Terminal
from gpuledger.cli.top_keys import View, pressed
from gpuledger.errors import Unavailable, Unknown
from gpuledger.model.durations import duration_us
from gpuledger.model.holders import Arrangement, Grouping, HoldersLook
from gpuledger.model.moments import iso
from gpuledger.operations.start_agent import choose_source
from gpuledger.operations.top import Looker, looker, report
from gpuledger.reports import top_report
from gpuledger.reports.top_screen import Screenful
from gpuledger.settings import parse_span_us

_PAUSE_US = 3_600_000_000
"""A paused view waits for keys alone; this is only how long one wait may be."""


def command(
    ctx: typer.Context,
    by: Annotated[
        Grouping,
        typer.Option("--by", metavar="WORD", help=f"Group by one of {', '.join(Grouping)}; the key g steps on."),
    ] = Grouping.SERVICE,
    interval: Annotated[str, typer.Option("--interval", metavar="TIME", help="Between two looks.")] = "2s",
    once: Annotated[
        bool, typer.Option("--once", help="Look once, print the table and end; so it is also on a pipe.")
    ] = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    quiet: QuietOption = False,
) -> None:
    """Live: who holds which GPU now, for how long, with how much memory, and the size of the unnamed.

    Asks the driver itself, needs no root and no ledger, and writes nothing. A readable ledger adds the
    names of processes that this user cannot read, your service rules and teams, and since when a context
    without a start is held. Keys: g groups; m, t, b, n sort by memory, time held, busy, name; r reverses;
    space pauses; ? explains; q quits.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, quiet=quiet))
    session.refuse_now("top looks at the present; for the past: gpuledger smi --at TIME")
    interval_us = parse_span_us(interval, name="--interval")
    source = choose_source(session.talk)
    view = View(arrangement=Arrangement(by=by))
    is_live = sys.stdout.isatty() and not session.out.is_dumb_terminal
    with closing(looker(source, host=session.host, clock=session.clock, open_ledger=session.read)) as looking:
        if once or session.format is not Format.TABLE or not is_live:
            _print(session, looking.look(), view)
        else:
            _Screen(session, looking, view, interval_us).run()


def _print(session: Session, look: HoldersLook, view: View) -> None:
    told = report(look, view.arrangement)
    session.problems(look.problems)
    session.answer(
        table=lambda: top_report.to_table(told, width=session.out.width),
        as_json=lambda: top_report.to_json(told),
        as_csv=lambda: top_report.to_csv(told),
    )
    if not look.answered:
        session.talk("UNKNOWN: no device told who holds it; see `gpuledger doctor`")
        raise typer.Exit(Unknown.exit_status)


class _Screen:
    """The loop: look, draw, wait for a key or the next look."""

    def __init__(self, session: Session, looking: Looker, view: View, interval_us: int) -> None:
        self._session = session
        self._looker = looking
        self._view = view
        self._interval_us = interval_us
        self._look: HoldersLook | None = None
        self._trouble = "not looked yet"

    def run(self) -> None:
        """Until ``q``, Ctrl-C, SIGTERM, or until the terminal is gone."""
        clock, due_us = self._session.clock, 0
        with (
            Terminal(sys.stdin.fileno()) as terminal,
            Live(console=self._session.out, screen=True, auto_refresh=False) as live,
        ):
            while not self._view.is_over:
                if not self._view.is_paused and clock.boot_us() >= due_us:
                    self._look_again()
                    due_us = clock.boot_us() + self._interval_us
                self._draw(live)
                event = terminal.wait(_PAUSE_US if self._view.is_paused else due_us - clock.boot_us())
                for key in event.keys:
                    self._view = pressed(key, self._view)
                if event.is_ending:
                    break
                if event.is_stopping:
                    live.stop()
                    terminal.stop()
                    live.start()

    def _look_again(self) -> None:
        try:
            self._look, self._trouble = self._looker.look(), ""
        except Unavailable as error:
            at = iso(self._session.clock.now_us() // 1_000_000 * 1_000_000)
            self._trouble = f"at {at} the driver did not answer: {error.message}"

    def _draw(self, live: Live) -> None:
        size = os.get_terminal_size(sys.__stdout__.fileno()) if sys.__stdout__ else None
        if size is not None and size.columns and size.lines:
            # the screen as it is: $COLUMNS does not follow a resize
            self._session.out.size = ConsoleDimensions(size.columns, size.lines)
        state = "paused" if self._view.is_paused else f"every {duration_us(self._interval_us)}"
        told = report(self._look, self._view.arrangement) if self._look is not None else None
        live.update(Screenful(told, state=state, trouble=self._trouble, is_helping=self._view.is_helping), refresh=True)
