"""Copying: every link, row, seal and identity text of one ledger into another, byte for byte.

In: two open ledgers, of either engine. Out: how much was new. Each link is hashed again on its way, and goes in whole,
with its rows, or not at all; what is there already is left as it is, so a copy that was cut off goes on where it
stopped. Rows are streamed: the largest link never has to fit in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import chain
from typing import Any

import sqlalchemy as sa

from gpuledger.errors import Corrupt, Refused
from gpuledger.ledger import archived
from gpuledger.ledger.appending import last_link
from gpuledger.ledger.chain import LinkHash
from gpuledger.ledger.codec import CODECS, Codec
from gpuledger.ledger.engine import MARK, bare_cursor, engine_of
from gpuledger.ledger.schema import IDENTITY_TEXT, LINK
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.stores import CopyReport

_BATCH = 2000
_ROWS_AT_ONCE = 10_000
"""Rows after which a transaction of the target ends with the link at hand."""


class _Source:
    """The rows of one chain, kind by kind in the order of their numbers."""

    def __init__(self, ledger: Ledger, codec: Codec, writer: str, after: int) -> None:
        self.codec = codec
        table = codec.kind.table
        wanted = sa.select(*table.columns).where(table.c.writer == writer, table.c.number > after)
        self._rows = chain.from_iterable(_batches(ledger, wanted.order_by(table.c.number)))
        self._next = next(self._rows, None)

    def upto(self, number: int) -> Iterator[list[tuple[Any, ...]]]:
        """Those up to a number, in parts."""
        part: list[tuple[Any, ...]] = []
        while self._next is not None and self._next[1] <= number:
            part.append(self._next)
            self._next = next(self._rows, None)
            if len(part) == _BATCH:
                yield part
                part = []
        if part:
            yield part


def _batches(ledger: Ledger, statement: sa.Select[Any]) -> Iterator[list[tuple[Any, ...]]]:
    with ledger.mapped():
        yield from engine_of(ledger.connection).stream(ledger.connection, statement, {}, _BATCH)


def copy_ledger(source: Ledger, target: Ledger, *, progress: Callable[[int, int], None] | None = None) -> CopyReport:
    """Copy what the target does not have yet.

    Args:
        source: open to read; seen as it is at the start, whatever is appended meanwhile.
        target: open to append; nobody else should write to it.
        progress: called with rows done and rows in all.

    Raises:
        Refused: ``copy-diverges`` when the target holds a chain that is not the source's; nothing was then added to it.
        Corrupt: ``ledger-damaged`` when a link of the source is not the one that was hashed.
    """
    with source.snapshot():
        heads = source.heads()
        after = _prefixes(source, target, heads)
        texts = _copy_texts(source, target)
        total = sum(number for number, _ in heads.values())
        done = known = sum(after.values())
        links = 0
        for writer, start in after.items():
            with closing(_copy_chain(source, target, writer, start)) as parts:
                for rows, added in parts:
                    done += rows
                    links += added
                    if progress is not None:
                        progress(done, total)
    root = target.latest_root()
    return CopyReport(
        source=str(source.place), target=str(target.place), chains=len(heads), rows=done - known, links=links,
        texts=texts, known_rows=known, root="" if isinstance(root, Missing) else root,
    )  # fmt: skip


def _prefixes(source: Ledger, target: Ledger, heads: dict[str, tuple[int, str]]) -> dict[str, int]:
    """How far each chain of the source stands in the target already.

    Raises:
        Refused: ``copy-diverges``.
    """
    after = dict.fromkeys(heads, 0)
    for writer, (number, digest) in target.heads().items():
        ours = heads.get(writer, (0, ""))
        shorter, at, head = (target, ours[0], ours[1]) if number > ours[0] else (source, number, digest)
        if writer not in heads or hash_at(shorter, writer, at) != head:
            raise Refused(
                "copy-diverges",
                f"{target.place} holds a chain {writer} that is not the one of {source.place}; nothing was copied",
                hint="copy into an empty ledger, or into one that was copied from the same",
            )
        after[writer] = min(number, ours[0])
    return after


def hash_at(ledger: Ledger, writer: str, last_number: int) -> str | None:
    """The hash of the link of a chain that ends with a number; None where none does."""
    with ledger.mapped():
        wanted = sa.select(LINK.c.hash).where(LINK.c.writer == writer, LINK.c.last_number == last_number)
        found = ledger.connection.execute(wanted).scalar()
    return None if found is None else str(found)


def _copy_chain(source: Ledger, target: Ledger, writer: str, after: int) -> Generator[tuple[int, int], None, None]:
    """Copy one chain from a number on; yields rows and links of each transaction."""
    wanted = sa.select(*LINK.columns).where(LINK.c.writer == writer, LINK.c.first_number > after)
    links = chain.from_iterable(_batches(source, wanted.order_by(LINK.c.first_number)))
    kinds = [_Source(source, codec, writer, after) for codec in CODECS.values()]
    left = archived.numbers(source.connection).get(writer, (1, 0, 0))
    link = next(links, None)
    engine = engine_of(target.connection)
    while link is not None:
        rows = added = 0
        with target.mapped(), engine.transaction(target.connection, write=True):
            cursor = bare_cursor(target.connection)
            engine.lock(cursor, f"writer {writer}")
            if last_link(target.connection, writer)[0] != link[1] - 1:
                raise Refused(
                    "copy-diverges",
                    f"somebody else wrote to {target.place} meanwhile, and a copy of its chain {writer} cannot go on",
                    hint="stop whoever writes there; what was copied so far is whole",
                )
            while link is not None and rows < _ROWS_AT_ONCE:
                rows += _copy_link(target, kinds, link, left)
                added += 1
                link = next(links, None)
        yield rows, added


def _copy_link(target: Ledger, kinds: list[_Source], link: tuple[Any, ...], left: tuple[int, int, int]) -> int:
    """Copy one link; of one whose rows left for an archive those that stayed, and its hash."""
    writer, first, last, at_us, previous_hash, digest = link
    engine, cursor = engine_of(target.connection), bare_cursor(target.connection)
    sha = LinkHash(previous_hash, writer=writer, first_number=first, last_number=last, committed_at_us=at_us)
    rows = 0
    for kind in kinds:
        table = kind.codec.kind.table.name
        for part in kind.upto(last):
            sha.add(kind.codec.kind.row.kind, part)
            engine.insert(cursor, table, kind.codec.columns, part)
            rows += len(part)
    may_have_left = rows < last - first + 1 and left[0] <= last and first <= left[1]
    if not may_have_left and (sha.hexdigest() != digest or rows != last - first + 1):
        raise Corrupt(
            "ledger-damaged", f"the link {writer}/{first} is not the one that was hashed; it was not copied",
            hint="gpuledger verify   (on the ledger that is copied)",
        )  # fmt: skip
    engine.insert(cursor, LINK.name, [column.name for column in LINK.columns], [link])
    return rows


def _copy_texts(source: Ledger, target: Ledger) -> int:
    """Copy identity texts with their salts; those that were forgotten in the source are nowhere to be copied."""
    added = 0
    columns = [column.name for column in IDENTITY_TEXT.columns]
    engine = engine_of(target.connection)
    for part in _batches(source, sa.select(*IDENTITY_TEXT.columns).order_by(IDENTITY_TEXT.c.text_key)):
        with target.mapped(), engine.transaction(target.connection, write=True):
            cursor = bare_cursor(target.connection)
            marks = ", ".join([MARK] * len(part))
            query = f"SELECT text_key FROM {IDENTITY_TEXT.name} WHERE text_key IN ({marks})"  # noqa: S608 the schema's own
            cursor.execute(query, [row[0] for row in part])
            there = {key for (key,) in cursor.fetchall()}
            fresh = [row for row in part if row[0] not in there]
            engine.insert(cursor, IDENTITY_TEXT.name, columns, fresh)
            added += len(fresh)
    return added
