"""What verbs that read old evidence share: the option that names the archive, and laying it under the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.session import Session
from gpuledger.errors import Corrupt, Unavailable
from gpuledger.ledger.laying import Laid, lay_under
from gpuledger.ledger.store import Ledger
from gpuledger.model.durations import count
from gpuledger.model.problem import Problem

ArchiveOption = Annotated[
    Path | None,
    typer.Option("--archive", metavar="FOLDER", help="Where archived evidence lies. Default: where it was written."),
]


def lay_archive(session: Session, ledger: Ledger, folder: Path | None) -> Laid:
    """Lay the archive under a ledger, from the folder asked for, the setting's, or where it was written."""
    return lay_under(ledger, folder=_asked(session, folder))


@contextmanager
def archive_under(session: Session, ledger: Ledger, folder: Path | None, *, is_needed: bool = True) -> Iterator[None]:
    """Inside, the archive lies under a ledger. What of it is wrong is said, where an answer lacks it.

    Args:
        session: the run of the verb.
        ledger: open to read.
        folder: ``--archive`` as typed; None where it was not.
        is_needed: whether anything of it is asked about; else it is left alone.

    Raises:
        Corrupt: ``archive-damaged`` in place of ``archive-missing``, where a file is there and not what left.
        Unavailable: ``archive-missing`` with the file that is not in the folder asked for.
    """
    laid = lay_archive(session, ledger, folder) if is_needed else Laid(archives=())
    asked = _asked(session, folder)
    try:
        yield
    except Unavailable as error:
        if error.code != "archive-missing":
            raise
        if laid.damaged:
            path, why = laid.damaged[0]
            hint = "take the file from a backup of the archive's folder"
            raise Corrupt("archive-damaged", f"{path}: {why}", hint=hint) from error
        if laid.missing and asked is not None:
            raise Unavailable(error.code, f"{error.message}; {_not_in(laid, asked)}", hint=error.hint) from error
        raise
    session.problems([Problem(code="archive-damaged", message=why, where=path) for path, why in laid.damaged])
    if laid.missing and asked is not None:
        session.problems([Problem(code="archive-missing", message=_not_in(laid, asked))])


def _not_in(laid: Laid, asked: Path) -> str:
    others = len(laid.missing) - 1
    more = f", nor {'are' if others > 1 else 'is'} {count(others)} more" if others else ""
    return f"{laid.missing[0].file_name} is not in {asked}{more}"


def _asked(session: Session, folder: Path | None) -> Path | None:
    return folder or (Path(session.settings["archive"]) if session.settings["archive"] else None)
