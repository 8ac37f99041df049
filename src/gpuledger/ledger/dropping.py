"""Dropping what is in an archive: the rows go, and the rows that say so come, in one transaction.

In: relations of what leaves (:mod:`.leaving`), the rows of the archive. Out: nothing; or an error, and nothing has
changed. The guards are taken off by whoever owns the tables, inside the transaction, and stand again at its end: no
other connection ever sees the tables without them. Whoever appends is through before it begins, or finds at its end
what is archived: nobody adds a row of the time that leaves unseen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from gpuledger.errors import Unavailable
from gpuledger.ledger import appending
from gpuledger.ledger.engine import MARK, bare_cursor, engine_of
from gpuledger.ledger.kinds import KIND_OF
from gpuledger.ledger.leaving import LEAVE, ends_of, relation_of
from gpuledger.ledger.store import Ledger
from gpuledger.model.archive import Archive
from gpuledger.model.rows import Row


def drop(
    ledger: Ledger, archives: Sequence[Archive], *, marks: Mapping[str, int], writer: str, at_us: int
) -> Sequence[Row]:
    """Take the chosen rows out of the ledger, and put the rows of the archive in.

    Args:
        ledger: open to append, by the owner of its tables.
        archives: one for each month and kind, of what was chosen.
        marks: where the evidence ended when it was chosen, by writer.
        writer: the chain, ``HOST.archive``.
        at_us: now.

    Returns:
        The rows of the archive, numbered.

    Raises:
        Refused: ``not-owner`` where another role owns the tables.
        Unavailable: ``archive-overtaken`` where evidence of the time that leaves came meanwhile, or rows left already.
    """
    connection = ledger.connection
    engine = engine_of(connection)
    wanted = {kind: sum(each.row_count for each in archives if each.rows_of == kind.kind) for kind in LEAVE}
    tables = {KIND_OF[kind].table.name: kind for kind in LEAVE if wanted[kind]}
    with ledger.mapped(), engine.transaction(connection, write=True, alone=(appending.JUDGING, appending.LEAVING)):
        cursor = bare_cursor(connection)
        engine.lock(cursor, f"writer {writer}")
        before_us = max(each.before_us for each in archives)
        with engine.unguarded(connection, tuple(tables)):
            if fresh := _came_meanwhile(ledger, marks, before_us):
                raise _overtaken(f"{fresh} of the time that is to leave came while it was written")
            for table, kind in tables.items():
                cursor.execute(
                    f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM {relation_of(kind)} AS l "  # noqa: S608 the schema's own names
                    f"WHERE l.writer = {table}.writer AND l.number = {table}.number)"
                )
                if cursor.rowcount != wanted[kind]:
                    raise _overtaken(f"{cursor.rowcount} rows of {table} were there, of {wanted[kind]}")
        return appending.append_in_transaction(connection, archives, writer=writer, at_us=at_us)


def dropped(ledger: Ledger, names: Collection[str]) -> bool:
    """Whether rows left with any of these files, once nobody who drops is at work."""
    engine = engine_of(ledger.connection)
    locks = (appending.JUDGING, appending.LEAVING)
    with ledger.mapped(), engine.transaction(ledger.connection, write=True, alone=locks):
        return any(row.file_name in names for row in ledger.scan(Archive))


def _came_meanwhile(ledger: Ledger, marks: Mapping[str, int], before_us: int) -> str:
    """A row that was appended since the choice and ends in the time that leaves; empty where there is none."""
    cursor = bare_cursor(ledger.connection)
    for kind in LEAVE:
        table = KIND_OF[kind].table.name
        fresh = (
            f"SELECT number FROM {table} AS t WHERE writer = {MARK} AND number > {MARK} AND {ends_of(kind)} < {MARK}"  # noqa: S608 the schema's own names
        )
        for name in ledger.writers():
            cursor.execute(f"{fresh} ORDER BY number LIMIT 1", (name, marks.get(name, 0), before_us))
            for (number,) in cursor.fetchall():
                return f"{kind.kind}:{name}/{number}"
    return ""


def _overtaken(why: str) -> Unavailable:
    return Unavailable(
        "archive-overtaken", f"{why}; nothing left the ledger", hint="run gpuledger meter, then this command again"
    )
