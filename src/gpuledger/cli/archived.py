"""What verbs that read old evidence share: the option that names the archive, and laying it under the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.session import Session
from gpuledger.ledger.laying import Laid, lay_under
from gpuledger.ledger.store import Ledger

ArchiveOption = Annotated[
    Path | None,
    typer.Option("--archive", metavar="FOLDER", help="Where archived evidence lies. Default: where it was written."),
]


def lay_archive(session: Session, ledger: Ledger, folder: Path | None) -> Laid:
    """Lay the archive under a ledger, from the folder asked for, the setting's, or where it was written."""
    asked = folder or (Path(session.settings["archive"]) if session.settings["archive"] else None)
    return lay_under(ledger, folder=asked)
