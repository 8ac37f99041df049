"""``gpuledger agent``."""

from __future__ import annotations

import signal
from contextlib import closing
from types import FrameType
from typing import Annotated

import typer

from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.errors import Misconfigured
from gpuledger.operations.agent import OneAgent
from gpuledger.operations.pulse import LONGEST_FLUSH_US, PulseTeller
from gpuledger.operations.start_agent import choose_watcher, describe, ready_source, start
from gpuledger.settings import parse_span_us


class _Signals:
    """SIGTERM and SIGINT end the loop after the look at hand."""

    def __init__(self) -> None:
        self.told = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._tell)

    def _tell(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.told and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.told = True


def command(
    ctx: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Look once and end: for cron.")] = False,
    interval: Annotated[
        str | None,
        typer.Option(
            "--interval", metavar="TIME", help="Between two looks (default 1s); with --once between two runs (60s)."
        ),
    ] = None,
    flush: Annotated[
        str | None, typer.Option("--flush", metavar="TIME", help="Longest time that spans stay unwritten (5m).")
    ] = None,
    watch: Annotated[
        str | None,
        typer.Option(
            "--watch",
            metavar="METHOD",
            help="How processes are named: by kernel events (ebpf, connector), by reading /proc at each look (poll), "
            "or by the first of these that this machine allows (auto, the default; with --once: poll).",
        ),
    ] = None,
    enable_accounting: Annotated[
        bool, typer.Option("--enable-accounting", help="As root: enable the driver's accounting, again after a reload.")
    ] = False,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    quiet: QuietOption = False,
) -> None:
    """Watch the GPUs of this machine: who held which one, from when to when, by name.

    Runs until stopped (Ctrl-C or SIGTERM), closes each hour into records, and seals. It works as any user. Root, or
    three capabilities (see the guide to the service), let the kernel tell it of every process, however short it
    lives; else it reads /proc at each look, and says so. Root is also needed once to enable the driver's
    accounting, without which what ran and exited leaves no row.
    """
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, quiet=quiet))
    session.refuse_now("the agent writes what it sees, and sees only the present")
    default = "60s" if once else session.settings["agent.interval"]
    interval_us = parse_span_us(interval or default, name="--interval")
    flush_us = parse_span_us(flush or session.settings["agent.flush"], name="--flush")
    if flush_us > LONGEST_FLUSH_US:
        raise Misconfigured("bad-span", "--flush: readers wait 10 minutes at most for what goes on", hint="--flush 5m")
    enabling = enable_accounting or session.settings["agent.enable_accounting"] == "true"
    source = ready_source(enable_accounting=enabling, talk=session.talk)
    method = watch or ("poll" if once else session.settings["agent.watch"])
    watcher, refusals = choose_watcher(method, clock=session.clock)
    for refusal in refusals:
        session.talk(f"note: not by {refusal}" + (f" ({refusal.hint})" if refusal.hint else ""))
    signals = _Signals()
    with closing(watcher), session.append() as opened, OneAgent(opened.place) as place:
        pulse = PulseTeller(host=session.host, interval_us=interval_us, say=place.tell)
        agent = start(
            opened,
            source,
            watcher,
            host=session.host,
            clock=session.clock,
            interval_us=interval_us,
            flush_us=flush_us,
            once=once,
            enable_accounting=enabling,
            naming_note="; ".join(f"not by {refusal}" for refusal in refusals),
            talk=session.talk,
            stopping=lambda: signals.told,
            looked=pulse.looked,
            stuck=pulse.stuck,
        )
        session.talk(describe(agent, opened, watcher))
        agent.run()
