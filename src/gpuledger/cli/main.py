"""The door of the command line: the explicit list of verbs, and what an error looks like.

Exit statuses belong to the exception classes; a bug is anything else and exits with 70.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from itertools import pairwise
from typing import Annotated

import typer

from gpuledger import __version__
from gpuledger.cli import (
    agent,
    apply,
    blind,
    demo,
    doctor,
    explain,
    import_nvidia_smi,
    journal,
    meter,
    policy,
    usage,
    verify,
)
from gpuledger.cli.session import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.errors import GpuledgerError
from gpuledger.reports.cells import printable

app = typer.Typer(
    name="gpuledger",
    help="Who spent the GPU, how much, and what part of it can we not see.",
    epilog="Start with `gpuledger demo`, then `gpuledger doctor` on the machine with the GPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
importing = typer.Typer(help="Bring in evidence that others gathered.", no_args_is_help=True)

for verb, command in (
    ("demo", demo.command),
    ("agent", agent.command),
    ("meter", meter.command),
    ("usage", usage.command),
    ("blind", blind.command),
    ("journal", journal.command),
    ("explain", explain.command),
    ("verify", verify.command),
    ("doctor", doctor.command),
    ("apply", apply.command),
    ("policy", policy.command),
):
    app.command(verb)(command)
importing.command("nvidia-smi")(import_nvidia_smi.command)
app.add_typer(importing, name="import")


_READER_GONE = 141
"""128 + SIGPIPE, as shells report it."""


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"gpuledger {__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Who spent the GPU, how much, and what part of it can we not see."""
    del version
    ctx.obj = Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        status = app(args=words, standalone_mode=False)
        sys.stdout.flush()
    except GpuledgerError as error:
        _say_error(error, as_json=_wants_json(words))
        sys.exit(error.exit_status)
    except BrokenPipeError:
        # the reader of our output has gone (`| head`): silence the interpreter's own complaint at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_READER_GONE)
    except SystemExit:
        # typer ends so, with 1, where it meets the broken pipe first; 1 would say that a check found something
        sys.exit(_READER_GONE)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - the last door: the parser's own errors, and bugs
        if hasattr(error, "show") and hasattr(error, "exit_code"):
            error.show()  # the parser's own usage errors: a sentence and a hint
            sys.exit(error.exit_code)
        sys.stderr.write(
            f"a bug in gpuledger {__version__}, please report it with this text:\n{traceback.format_exc()}"
        )
        sys.exit(70)
    sys.exit(status if isinstance(status, int) else 0)


def _wants_json(words: list[str]) -> bool:
    return "--format=json" in words or ("--format", "json") in pairwise(words)


def _say_error(error: GpuledgerError, *, as_json: bool) -> None:
    if as_json:
        body = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
        sys.stderr.write(json.dumps(body) + "\n")
        return
    sys.stderr.write(f"error: {printable(error.message)} [{error.code}]\n")
    if error.hint:
        sys.stderr.write(f"  try: {printable(error.hint)}\n")
