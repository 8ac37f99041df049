"""The door of the command line: the explicit list of verbs, and what an error looks like.

Exit statuses belong to the exception classes; a bug is anything else and exits with 70.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from itertools import pairwise
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup
from typer.main import get_group

from gpuledger import __version__
from gpuledger.cli.deferred import Deferred
from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.talk import say
from gpuledger.errors import GpuledgerError, Misconfigured

VERBS = (
    ("demo", "All of it in 20 seconds, without a GPU."),
    ("agent", "Watch the GPUs of this machine and name who holds them."),
    ("run", "Run a command and print its receipt: GPU time, peak memory, neighbours."),
    ("transition", "Append a lifecycle event of a workload: pending, running, stopped."),
    ("meter", "Close the hours that are over into records."),
    ("correct", "Book what came late for final hours, with a reason."),
    ("top", "Live: who holds what now, by service, and the size of the unnamed."),
    ("usage", "Who used how much, and what could not be seen."),
    ("blind", "What could not be seen, sized, with what helps."),
    ("smi", "What nvidia-smi would have shown at any past moment, with names."),
    ("journal", "What each reading found, oldest to newest."),
    ("explain", "From a line or total down to the driver's own row."),
    ("verify", "Check chains, seals, records and laws."),
    ("doctor", "What is missing on this machine, and what mends it."),
    ("apply", "Apply a policy file: service rules and owners."),
    ("policy", "Show the policy versions, or one of them."),
    ("migrate", "Bring a ledger's tables up to date, and grant them."),
    ("copy", "One ledger into another, byte for byte."),
    ("forget", "Drop who it was; amounts and seals stand."),
    ("archive", "Move old evidence into sealed files; records stay."),
    ("fairshare", "Who used less of what they may, and who is next."),
    ("admit", "May this run? Checks every quota, and holds the place."),
    ("quota", "Who has what of each quota, and what is left."),
    ("capacity", "What is always queued, what is given instead, how much is held."),
    ("audit dashboards", "Figures of a whole GPU that dashboards and rules give to one pod."),
    ("audit exporter", "What an exporter of GPU figures really emits, and what must change."),
    ("audit manifests", "What keeps an exporter from telling pods apart, and the draft of its exception."),
    ("audit nodes", "Labels, replicas and resources of nodes that do not add up."),
    ("audit rates", "Classes without a rate, rates without a class, and classes with two."),
    ("import nvidia-smi", "What nvidia-smi printed: processes, devices, accounting mode."),
    ("import transitions", "The lifecycle events of a control plane: JSON lines, or a query."),
    ("import slurm", "Slurm's accounting: what sacct printed, text or JSON."),
    ("import trace", "Any CSV file of who held devices from when to when."),
    ("export parquet", "The ledger as a lake: a Parquet file a table and month, sealed."),
)
"""How each is typed, with its sentence in the list of the help. Its module in ``cli/`` has the same name."""

GROUPS = {
    "audit": "Find numbers that cannot be defended, before finance does.",
    "import": "Bring in evidence that others gathered.",
    "export": "Take out what the ledger holds.",
}
"""The first words of verbs of two words."""

app = typer.Typer(
    name="gpuledger",
    help="Who spent the GPU, how much, and what part of it can we not see.",
    epilog="Start with `gpuledger demo`, then `gpuledger doctor` on the machine with the GPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: paragraphs flow, and flags stand without a type
)

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


def program() -> TyperGroup:
    """The whole command line, with none of the verbs imported yet."""
    whole = get_group(app)
    groups = {
        first: TyperGroup(name=first, help=short, no_args_is_help=True, rich_markup_mode=None)
        for first, short in GROUPS.items()
    }
    for words, short in VERBS:
        first, *more = words.split()
        if more:
            groups[first].add_command(Deferred(words, short))
            whole.add_command(groups[first])
        else:
            whole.add_command(Deferred(words, short))
    return whole


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        status = program()(args=words, standalone_mode=False)
        if sys.stdout is not None:  # closed by the caller: >&-
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
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.stderr.write(f"{error}\n")  # nothing was asked: the help is the answer
            sys.exit(Misconfigured.exit_status)
        if hasattr(error, "format_message"):
            refused = _bad_usage(error, words)
            _say_error(refused, as_json=_wants_json(words))
            sys.exit(refused.exit_status)
        sys.stderr.write(
            f"a bug in gpuledger {__version__}, please report it with this text:\n{traceback.format_exc()}"
        )
        sys.exit(70)
    sys.exit(status if isinstance(status, int) else 0)


def _wants_json(words: list[str]) -> bool:
    words = words[: words.index("--")] if "--" in words else words  # what follows is the words of a command to run
    return "--format=json" in words or ("--format", "json") in pairwise(words)


def _bad_usage(error: Any, words: list[str]) -> Misconfigured:
    """The parser's own error as one of ours."""
    named = [verb for word in words for verb, _ in VERBS if word == verb.split()[0]]
    verb = next((verb for verb in named if set(verb.split()) <= set(words)), named[0] if named else "")
    said = _sentence(error)
    wanted = re.match(r"no such option: --(json|csv|table)\b", said)
    hint = " ".join(["gpuledger", *verb.split(), f"--format {wanted[1]}" if wanted else "--help"])
    return Misconfigured("bad-usage", said, hint=hint)


_KINDS = {"a valid integer": "a whole number"}


def _sentence(error: Any) -> str:
    """What the parser says, without the words of the library that checks values."""
    param, said = getattr(error, "param", None), str(getattr(error, "message", ""))
    if param is not None and said:
        name = param.opts[0] if param.param_type_name == "option" else param.metavar or param.name
        said = said.removeprefix("Value error, ").rstrip(".")
        kind = re.match(r"Input should be ([^,]+)", said)
        return f"{name} takes {_KINDS.get(kind[1], kind[1])}" if kind else f"{name}: {said}"
    said = str(error.format_message()).rstrip(".")
    return said[:1].lower() + said[1:]


def _say_error(error: GpuledgerError, *, as_json: bool) -> None:
    if as_json:
        body = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
        sys.stderr.write(json.dumps(body) + "\n")
        return
    console = Console(stderr=True, highlight=False)
    say(console, f"error: {error.message} [{error.code}]")
    if error.hint:
        say(console, f"  try: {error.hint}")
