"""``gpuledger import trace``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.bringing_in import bring_in, show
from gpuledger.cli.options import ConfigOption, FormatOption, Globals, LedgerOption, NowOption, QuietOption
from gpuledger.cli.session import Session
from gpuledger.errors import Misconfigured
from gpuledger.operations.import_trace import preset_map, presets, read_trace


def command(
    ctx: typer.Context,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="The trace, a CSV file; - for stdin.")] = None,
    preset: Annotated[
        str | None, typer.Option("--preset", metavar="NAME", help="A trace that is known by name.")
    ] = None,
    map_file: Annotated[
        Path | None, typer.Option("--map", metavar="FILE", help="YAML: which column says what, in which units.")
    ] = None,
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="ZONE", help="Zone of its local times: UTC, Europe/Berlin.")
    ] = None,
    origin: Annotated[
        str | None, typer.Option("--origin", metavar="TIME", help="What its times count from, where not from 1970.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="NAME", help="Who says so; default: trace:PRESET or trace:MAP.")
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="Until when what is open is known, where the map does not say."),
    ] = None,
    list_presets: Annotated[bool, typer.Option("--list-presets", help="Print the names of the known traces.")] = False,
    show_preset: Annotated[
        str | None, typer.Option("--show-preset", metavar="NAME", help="Print the map of a known trace, to start from.")
    ] = None,
    ledger: LedgerOption = None,
    config: ConfigOption = None,
    format_: FormatOption = None,
    now: NowOption = None,
    quiet: QuietOption = False,
) -> None:
    """Bring in a CSV file of who held devices from when to when, read by a preset or a map.

    It is reserved time of the past: `gpuledger meter` closes it into records, once. A second import adds
    nothing; a row that has changed is a conflict, told and not written. Rows that cannot be so are told with
    their line, and the others are kept.
    """
    if list_presets:
        sys.stdout.write("".join(f"{name}\n" for name in presets()))
        return
    if show_preset is not None:
        sys.stdout.write(preset_map(show_preset))
        return
    if file is None:
        raise Misconfigured("file-needed", "no file is given", hint="gpuledger import trace FILE --preset openb")
    session = Session(ctx, Globals(ledger=ledger, config=config, format=format_, now=now, quiet=quiet))
    history = read_trace(file, preset=preset, map_file=map_file, zone=zone, origin=origin, source=source)
    report = bring_in(session, history, file=file, as_of=as_of)
    show(session, report)
