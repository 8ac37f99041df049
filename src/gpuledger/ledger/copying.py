"""Copying: every link, row, seal and identity text of one ledger into another, byte for byte.

In: two open ledgers, of either engine. Out: how much was new. Each link is hashed again on its way, and goes in whole,
with its rows, or not at all; what is there already is left as it is, so a copy that was cut off goes on where it
stopped. Rows are streamed: the largest link never has to fit in memory.

A copy goes from seal to seal: what a transaction leaves in the target is what the source once was, and verifies. Only
where more rows than :data:`_ALL_AT_ONCE` lie between two seals the chains follow one another, the sealing one last.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import sqlalchemy as sa

from gpuledger.errors import Corrupt, Refused
from gpuledger.ledger import archived
from gpuledger.ledger.appending import last_link
from gpuledger.ledger.chain import LinkHash, read_heads
from gpuledger.ledger.codec import CODECS, Codec
from gpuledger.ledger.engine import MARK, bare_cursor, engine_of
from gpuledger.ledger.schema import IDENTITY_TEXT, LINK
from gpuledger.ledger.store import Ledger
from gpuledger.model.missing import Missing
from gpuledger.model.rows import Seal
from gpuledger.model.stores import CopyReport

_BATCH = 2000
_ROWS_AT_ONCE = 10_000
"""Rows after which a transaction of the target ends: with the next seal, or with the link at hand."""

_ALL_AT_ONCE = 2 * _ROWS_AT_ONCE
"""Rows that one transaction takes at most, save for a link that is larger."""


class _Source:
    """The rows of one chain, kind by kind in the order of their numbers."""

    def __init__(self, ledger: Ledger, codec: Codec, part: _Part) -> None:
        self.codec = codec
        table = codec.kind.table
        wanted = sa.select(*table.columns).where(
            table.c.writer == part.writer, table.c.number > part.after, table.c.number <= part.until
        )
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
        for stage in _stages(source, after, heads):
            with closing(_copy_stage(source, target, stage)) as parts:
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


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a chain: what comes after one number, up to another."""

    writer: str
    after: int
    until: int


def _stages(source: Ledger, after: Mapping[str, int], heads: Mapping[str, tuple[int, str]]) -> Iterator[list[_Part]]:
    """What is to be copied, from one state of the source to a later one; the chain that sealed it is the last of it."""
    reached, held = dict(after), dict[str, int]()
    for state in _states(source, heads):
        if held and _rows(reached, state) > _ALL_AT_ONCE:
            yield from _stage(source, reached, held)
        held = state
        if _rows(reached, state) >= _ROWS_AT_ONCE:
            yield from _stage(source, reached, held)
            held = {}
    yield from _stage(source, reached, held)


def _states(source: Ledger, heads: Mapping[str, tuple[int, str]]) -> Iterator[dict[str, int]]:
    """By writer the last number, right after each seal and at last; the writer of the seal comes last."""
    for seal in source.scan(Seal, order="time"):
        with suppress(ValueError):  # `verify` tells of a seal that cannot be read; the next one will do
            sealed = {writer: number for writer, (number, _) in read_heads(seal.heads).items() if writer in heads}
            sealed.pop(seal.writer, None)
            yield sealed | {seal.writer: seal.number}
    yield {writer: number for writer, (number, _) in heads.items()}


def _rows(reached: Mapping[str, int], state: Mapping[str, int]) -> int:
    return sum(max(0, number - reached[writer]) for writer, number in state.items())


def _stage(source: Ledger, reached: dict[str, int], state: Mapping[str, int]) -> Iterator[list[_Part]]:
    """The parts that lead to a state, which is reached by them; nothing where no links end there."""
    parts = [_Part(name, reached[name], number) for name, number in state.items() if number > reached[name]]
    if parts and all(hash_at(source, part.writer, part.until) is not None for part in parts):
        reached.update({part.writer: part.until for part in parts})
        yield parts


class _Chain:
    """A part of a chain while it is copied."""

    def __init__(self, source: Ledger, part: _Part) -> None:
        self._writer = part.writer
        wanted = sa.select(*LINK.columns).where(
            LINK.c.writer == part.writer, LINK.c.first_number > part.after, LINK.c.last_number <= part.until
        )
        self._links = chain.from_iterable(_batches(source, wanted.order_by(LINK.c.first_number)))
        self._kinds = [_Source(source, codec, part) for codec in CODECS.values()]
        with source.mapped():
            self._left = archived.numbers(source.connection).get(part.writer, (1, 0, 0))
        self.link = next(self._links, None)

    def copy(self, target: Ledger, most: int) -> tuple[int, int]:
        """Copy links until so many rows are there, in the transaction at hand; gives rows and links."""
        rows = added = 0
        assert self.link is not None
        engine_of(target.connection).lock(bare_cursor(target.connection), f"writer {self._writer}")
        if last_link(target.connection, self._writer)[0] != self.link[1] - 1:
            raise Refused(
                "copy-diverges",
                f"somebody else wrote to {target.place} meanwhile, and a copy of its chain {self._writer} cannot go on",
                hint="stop whoever writes there; what was copied so far is whole",
            )
        while self.link is not None and rows < most:
            rows += _copy_link(target, self._kinds, self.link, self._left)
            added += 1
            self.link = next(self._links, None)
        return rows, added


def _copy_stage(source: Ledger, target: Ledger, stage: list[_Part]) -> Generator[tuple[int, int], None, None]:
    """Copy a stage, at once where it is not too large for that; yields rows and links of each transaction."""
    engine = engine_of(target.connection)
    count = sum(part.until - part.after for part in stage)
    if count <= _ALL_AT_ONCE:
        with target.mapped(), engine.transaction(target.connection, write=True):
            done = [_Chain(source, part).copy(target, count) for part in stage]
        yield sum(rows for rows, _ in done), sum(links for _, links in done)
        return
    for part in stage:
        going = _Chain(source, part)
        while going.link is not None:
            with target.mapped(), engine.transaction(target.connection, write=True):
                rows, links = going.copy(target, _ROWS_AT_ONCE)
            yield rows, links


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
