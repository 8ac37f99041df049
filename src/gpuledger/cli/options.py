"""The options that every verb has, as they are typed; reading them costs no ledger.

They may stand before or after the verb; after it they win.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


LedgerOption = Annotated[
    str | None,
    typer.Option("--ledger", metavar="PLACE", help="The ledger: a path, sqlite:///PATH or postgresql://HOST/DATABASE."),
]
ConfigOption = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings file (TOML).")]
FormatOption = Annotated[Format | None, typer.Option("--format", help="table for eyes, json or csv for scripts.")]
NowOption = Annotated[
    str | None, typer.Option("--now", metavar="TIME", help="Answer as if it were this time (tests, audits).")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No talk on stderr, only errors.")]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Start: 2026-11-29T14:00Z, 2026-11, today, 7d. Default: everything."),
]
UntilOption = Annotated[str | None, typer.Option("--until", metavar="TIME", help="End, not included. Default: now.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit with 1 when the answer has unknown parts.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Globals:
    """The global options as typed, before the verb or after it."""

    ledger: str | None = None
    config: Path | None = None
    format: Format | None = None
    now: str | None = None
    quiet: bool = False
