"""What every command shares: the global options, the ledger, the clock, and how answers leave.

Answers go to stdout in the format asked for; talk goes to stderr.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import typer
from rich.console import Console, RenderableType

from gpuledger.cli.options import Format, Globals
from gpuledger.cli.talk import say
from gpuledger.clock import Clock, FixedClock, SystemClock
from gpuledger.errors import Misconfigured, Unavailable, Unknown
from gpuledger.ledger.places import SYSTEM_LEDGER, Place, is_there, resolve_place
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso, parse_moment
from gpuledger.model.problem import Problem
from gpuledger.model.reserved import NO_TRANSITION
from gpuledger.settings import load_settings

_ENDLESS = 1_000_000
"""Columns of a pipe whose reader wants whole lines."""


class Session:
    """One run of one command.

    Args:
        ctx: the command's context; its root carries the options typed before the verb.
        after: the options typed after the verb.
    """

    def __init__(self, ctx: typer.Context, after: Globals) -> None:
        before = ctx.obj if isinstance(ctx.obj, Globals) else Globals()
        given = replace(
            before,
            ledger=after.ledger or before.ledger,
            config=after.config or before.config,
            format=after.format or before.format,
            now=after.now or before.now,
            quiet=after.quiet or before.quiet,
        )
        self.given = given
        self.settings = load_settings(given.config)
        self.format = given.format or Format.TABLE
        self.quiet = given.quiet
        self.clock: Clock = SystemClock()
        if given.now is not None:
            self.clock = FixedClock(parse_moment(given.now, now_us=self.clock.now_us()), self.clock.boot_us())
        self.now_us = self.clock.now_us()
        asked = given.ledger or self.settings["ledger"]
        self._defaulted = not asked
        self.place = resolve_place(asked)
        self.host = self.settings["host"] or socket.gethostname()
        self.out = Console(soft_wrap=False, highlight=False)
        self.err = Console(stderr=True, highlight=False)

    def read(self) -> Ledger:
        """The ledger, for reading.

        Raises:
            Unavailable: ``ledger-permission`` where this machine's ledger is there and may not be read, so
                that nobody takes an empty place of their own for an idle machine.
        """
        self._refuse_second_ledger()
        return Ledger.open(self.place, mode="read")

    def placed(self) -> Place:
        """Where the ledger lies or will lie, for who opens it elsewhere.

        Raises:
            Unavailable: ``ledger-permission``, as :meth:`read`.
        """
        self._refuse_second_ledger()
        return self.place

    def _refuse_second_ledger(self) -> None:
        if self._defaulted and not is_there(self.place) and is_there(SYSTEM_LEDGER):
            raise Unavailable(
                "ledger-permission",
                f"this machine's ledger, {SYSTEM_LEDGER}, is there, and you may not read it",
                hint=f"sudo gpuledger ..., or join its group (ls -l {SYSTEM_LEDGER}), or --ledger PLACE",
            )

    def append(self) -> Ledger:
        """The ledger, for appending; made where there is none.

        Raises:
            Unavailable: ``ledger-permission``, as :meth:`read`: nobody starts a second one unawares.
        """
        self._refuse_second_ledger()
        return Ledger.open(self.place, mode="append")

    def existing(self) -> Ledger:
        """The ledger, for appending, where there is one.

        Raises:
            Unavailable: ``no-ledger``.
        """
        Ledger.open(self.place, mode="read").close()
        return self.append()

    def writer(self, role: str) -> str:
        """The hash chain of this host and role."""
        return f"{self.host}.{role}"

    def refuse_now(self, because: str) -> None:
        """Refuse ``--now`` where the present is meant.

        Raises:
            Misconfigured: ``now-refused``.
        """
        if self.given.now is not None:
            raise Misconfigured("now-refused", f"--now has no place here: {because}", hint="leave --now out")

    def moment_or_none(self, text: str | None) -> int | None:
        """A time as typed, in microseconds UTC; None when it was not given."""
        return None if text is None else parse_moment(text, now_us=self.now_us)

    def finish(
        self,
        *,
        answered: bool,
        unknown: bool,
        strict: bool,
        nothing: str = "no row at all, and the time was not watched",
    ) -> None:
        """End with the exit status of a reading verb: 3 nothing known, 1 strict and something unknown, else 0.

        Args:
            nothing: what it means that nothing is known, a clause.
        """
        if not answered:
            self.talk(f"UNKNOWN: {nothing}; see `gpuledger doctor`")
            raise typer.Exit(Unknown.exit_status)
        if strict and unknown:
            raise typer.Exit(1)

    def nothing_told(self, first_us: int | Missing = NO_TRANSITION, *, at: str = "--now") -> NoReturn:
        """End with status 3, as no transition is known up to the moment asked about, and say what to type next.

        Args:
            first_us: the first transition of the ledger; it lies after that moment.
            at: the option that asks about a past moment.
        """
        if isinstance(first_us, Missing):
            self.talk("UNKNOWN: no transition is known; `gpuledger transition` or `gpuledger import` brings them")
        else:
            option = at if first_us < self.now_us else "--now"
            first = f"the first is of {iso(first_us)}"
            self.talk(f"UNKNOWN: no transition is known up to then, {first}; ask by `{option}` after it")
        raise typer.Exit(Unknown.exit_status)

    def talk(self, sentence: str) -> None:
        """Say something to the person, unless quiet: folded at words on a terminal, one line elsewhere."""
        if not self.quiet:
            say(self.err, sentence)

    def problems(self, problems: tuple[Problem, ...] | list[Problem]) -> None:
        """Show what was imperfect; a hundred alike are counted, not repeated."""
        by_code: dict[str, list[Problem]] = {}
        for problem in problems:
            by_code.setdefault(problem.code, []).append(problem)
        for code, alike in by_code.items():
            for problem in alike[:5]:
                self.talk(f"note: {problem}")
            if len(alike) > 5:
                self.talk(f"note: and {len(alike) - 5} more of [{code}]")

    def answer(
        self,
        *,
        table: Callable[[], RenderableType],
        as_json: Callable[[], Any],
        as_csv: Callable[[], str] | None = None,
        whole_lines: bool = False,
    ) -> None:
        """Print one answer in the format asked for.

        Args:
            table: it for eyes.
            as_json: it as JSON values.
            as_csv: it as CSV; None where it has no rows.
            whole_lines: a pipe gets lines however long; else tables fold to the width they are given.

        Raises:
            Misconfigured: ``no-csv`` when this view has no rows to put into CSV.
        """
        if self.format is Format.JSON:
            sys.stdout.write(json.dumps(as_json(), indent=None if not sys.stdout.isatty() else 1) + "\n")
        elif self.format is Format.CSV:
            if as_csv is None:
                raise Misconfigured("no-csv", "this view is a tree, not rows", hint="use --format json")
            sys.stdout.write(as_csv())
        else:
            self.show(table(), whole_lines=whole_lines)

    def show(self, shown: RenderableType, *, on: Console | None = None, whole_lines: bool = False) -> None:
        """Print something for eyes on stdout, or on another console; in a file its lines end where their words do."""
        console = on or self.out
        if console.is_terminal:
            console.print(shown)
            return
        pipe = Console(width=_ENDLESS, highlight=False) if whole_lines else console
        with pipe.capture() as captured:
            pipe.print(shown)
        console.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))
