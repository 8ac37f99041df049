"""Laying an archive under an open ledger: every read then sees the rows that left, in their places.

In: a ledger opened to read, and where the files of its archive are. Out: what was there, what was missing, what is not
what left. Nothing of the ledger changes; the rows lie in relations of the connection until it closes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuledger.errors import Corrupt
from gpuledger.ledger import archive_files
from gpuledger.ledger.archived import LAID, is_laid
from gpuledger.ledger.engine import bare_cursor, engine_of
from gpuledger.ledger.kinds import KIND_OF
from gpuledger.ledger.leaving import LEAVE
from gpuledger.ledger.store import Ledger
from gpuledger.model.archive import Archive


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """What came of it.

    Args:
        archives: every row of the ledger that says what left.
        folder: where its files were looked for; empty: where each was written.
        missing: those whose file was not there.
        damaged: (file, sentence) of those that are not what left.
        is_whole: all of it lies under the ledger now; False also where nothing ever left.
    """

    archives: tuple[Archive, ...]
    folder: str = ""
    missing: tuple[Archive, ...] = ()
    damaged: tuple[tuple[str, str], ...] = ()
    is_whole: bool = False


def lay_under(ledger: Ledger, *, folder: Path | None) -> Laid:
    """Lay the whole archive under a ledger, or nothing where any file of it is missing or damaged.

    Args:
        ledger: open to read, outside of any snapshot.
        folder: the archive's folder; None: where each file was written.

    Raises:
        Unavailable: ``missing-extra``.
    """
    archives = tuple(ledger.scan(Archive))
    with ledger.mapped():
        if is_laid(ledger.connection):
            return Laid(archives=archives, is_whole=True)
    if not archives:
        return Laid(archives=())
    paths = {archive.file_name: archive_files.find(archive, folder) for archive in archives}
    missing = tuple(archive for archive in archives if paths[archive.file_name] is None)
    damaged = [
        (str(path), why)
        for archive in archives
        if (path := paths[archive.file_name]) is not None and (why := archive_files.damage(archive, path))
    ]
    if missing or damaged:
        where = "" if folder is None else str(folder)
        return Laid(archives=archives, folder=where, missing=missing, damaged=tuple(damaged))
    connection = ledger.connection
    engine = engine_of(connection)
    tables = {KIND_OF[kind].table.name: KIND_OF[kind].table for kind in LEAVE}
    table_of = {kind.kind: KIND_OF[kind].table for kind in LEAVE}
    with ledger.mapped():
        names = engine.lay_under(connection, tables)
        cursor = bare_cursor(connection)
        for archive in archives:
            path = paths[archive.file_name]
            assert path is not None
            table = table_of[archive.rows_of]
            columns = [column.name for column in table.columns]
            try:
                for batch in archive_files.rows_of(archive, path):
                    engine.insert(cursor, names[table.name], columns, batch)
            except Corrupt as error:
                damaged.append((str(path), error.message))
        engine.index_laid(connection, tables)
    connection.info[LAID] = 0 if damaged else len(archives)
    return Laid(archives=archives, damaged=tuple(damaged), is_whole=not damaged)


def months_of(archives: Sequence[Archive]) -> str:
    """The months of these rows in words: ``2026-05``, ``2026-05 to 2026-07``."""
    months = sorted({archive.month for archive in archives})
    return months[0] if len(months) == 1 else f"{months[0]} to {months[-1]}" if months else ""
