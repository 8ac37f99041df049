"""Copying: every link, row, seal and identity text of one ledger into another, byte for byte.

In: two open ledgers, of either engine. Out: how much was new. Each link is hashed again on its way, and goes in whole,
with its rows, or not at all; what is there already is left as it is, so a copy that was cut off goes on where it
stopped. Rows are streamed: the largest link never has to fit in memory.

A copy goes from seal to seal: what a transaction leaves in the target is what the source once was, and verifies. Only
where more rows than :data:`_ALL_AT_ONCE` lie between two seals the chains follow one another, the sealing one last.

Chains are read together, :data:`_CHAINS_AT_ONCE` by a statement: what a stage asks of the source does not grow with
every machine that wrote to it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from gpuledger.errors import Corrupt, Refused
from gpuledger.ledger import archived
from gpuledger.ledger.appending import last_link, last_of_each
from gpuledger.ledger.chain import LinkHash, read_heads
from gpuledger.ledger.codec import CODECS, Codec
from gpuledger.ledger.engine import MARK, bare_cursor, engine_of
from gpuledger.ledger.kinds import KINDS
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

_VERIFY = "gpuledger verify   (on the ledger that is copied)"

_CHAINS_AT_ONCE = 100
"""Chains that one statement reads; SQLite takes up to 500 SELECTs in one (its SQLITE_MAX_COMPOUND_SELECT)."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a chain: what comes after one number, up to another."""

    writer: str
    after: int
    until: int


class _Source:
    """The rows of one kind in parts of chains, by writer and number."""

    def __init__(self, ledger: Ledger, codec: Codec, parts: Sequence[_Part]) -> None:
        self.codec = codec
        self._rows = _rows_of(ledger, codec.kind.table, "number", parts)
        self._next = next(self._rows, None)

    def upto(self, writer: str, number: int) -> Iterator[list[tuple[Any, ...]]]:
        """Those up to a number of a chain, in parts."""
        part: list[tuple[Any, ...]] = []
        while self._next is not None and self._next[:2] <= (writer, number):
            part.append(self._next)
            self._next = next(self._rows, None)
            if len(part) == _BATCH:
                yield part
                part = []
        if part:
            yield part


def _rows_of(ledger: Ledger, table: sa.Table, number: str, parts: Sequence[_Part]) -> Iterator[tuple[Any, ...]]:
    """What a table holds of parts of chains, by writer and number, streamed.

    Each part is a SELECT of its own, which goes by the key: of one condition over all of them a planner without
    statistics may think that it is most of the table.

    Args:
        ledger: the source.
        table: a kind's, or that of the links.
        number: the column that says where in its chain a row stands.
        parts: of chains, each once, sorted by writer as the store sorts them.
    """
    columns = ", ".join(column.name for column in table.columns)
    for start in range(0, len(parts), _CHAINS_AT_ONCE):
        several = parts[start : start + _CHAINS_AT_ONCE]
        statement = " UNION ALL ".join(
            f"SELECT {columns} FROM {table.name} WHERE writer = :w{place} AND {number} > :a{place} "  # noqa: S608 the schema's own names
            f"AND {number} <= :u{place}"
            for place in range(len(several))
        )
        bound: dict[str, Any] = {}
        for place, part in enumerate(several):
            bound |= {f"w{place}": part.writer, f"a{place}": part.after, f"u{place}": part.until}
        yield from chain.from_iterable(_batches(ledger, f"{statement} ORDER BY writer, {number}", bound))


def _batches(
    ledger: Ledger, statement: sa.Select[Any] | str, bound: Mapping[str, Any] | None = None
) -> Iterator[list[tuple[Any, ...]]]:
    with ledger.mapped():
        yield from engine_of(ledger.connection).stream(ledger.connection, statement, bound or {}, _BATCH)


def copy_ledger(source: Ledger, target: Ledger, *, progress: Callable[[int, int], None] | None = None) -> CopyReport:
    """Copy what the target does not have yet.

    Args:
        source: open to read; seen as it is at the start, whatever is appended meanwhile.
        target: open to append; nobody else should write to it.
        progress: called with rows done and rows in all.

    Raises:
        Refused: ``copy-diverges`` when the target holds a chain that is not the source's; nothing was then added to it.
        Corrupt: ``ledger-damaged`` when rows of the source belong to no link, and nothing was then added; or when a
            link is not the one that was hashed, and what came before it was.
    """
    with source.snapshot():
        heads = source.heads()
        _refuse_rows_beyond(source, heads)
        after = _prefixes(source, target, heads)
        texts = _copy_texts(source, target)
        total = sum(number for number, _ in heads.values())
        done = known = sum(after.values())
        links = 0
        left = archived.numbers(source.connection)
        for stage in _stages(source, after, heads):
            with closing(_copy_stage(source, target, stage, left)) as parts:
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


def _refuse_rows_beyond(source: Ledger, heads: Mapping[str, tuple[int, str]]) -> None:
    """Raise where rows stand beyond the last link of their chain: nothing would copy them, and nothing would say so.

    Raises:
        Corrupt: ``ledger-damaged``.
    """
    for kind in KINDS:
        with source.mapped():
            cursor = bare_cursor(source.connection)
            cursor.execute(last_of_each(kind.table.name, "number"))
            found = cursor.fetchall()
        for writer, number in found:
            last = heads.get(writer, (0, ""))[0]
            if type(number) is not int or number > last:
                raise Corrupt(
                    "ledger-damaged",
                    f"the row {kind.row.kind}:{writer}/{number} belongs to no link: "
                    + (f"the last one of its chain ends at {last}" if last else "its chain has none")
                    + "; nothing was copied",
                    hint=_VERIFY,
                )


def hash_at(ledger: Ledger, writer: str, last_number: int) -> str | None:
    """The hash of the link of a chain that ends with a number; None where none does."""
    with ledger.mapped():
        wanted = sa.select(LINK.c.hash).where(LINK.c.writer == writer, LINK.c.last_number == last_number)
        found = ledger.connection.execute(wanted).scalar()
    return None if found is None else str(found)


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
    ends = [_Part(part.writer, part.until - 1, part.until) for part in _sorted(parts)]
    if parts and sum(1 for _ in _rows_of(source, LINK, "last_number", ends)) == len(parts):
        reached.update({part.writer: part.until for part in parts})
        yield parts


def _sorted(parts: Sequence[_Part]) -> list[_Part]:
    return sorted(parts, key=attrgetter("writer"))


class _Chains:
    """Parts of chains while they are copied.

    Attributes:
        link: the next link to be copied; None after the last.
    """

    def __init__(self, source: Ledger, parts: Sequence[_Part], left: Mapping[str, tuple[int, int, int]]) -> None:
        ordered = _sorted(parts)
        self._links = _rows_of(source, LINK, "last_number", ordered)
        self._kinds = [_Source(source, codec, ordered) for codec in CODECS.values()]
        self._left = left
        self._reached = {part.writer: part.after for part in parts}
        self.link = next(self._links, None)

    def copy(self, target: Ledger, most: int) -> tuple[int, int]:
        """Copy links until so many rows are there, in one transaction; gives rows and links."""
        rows = added = 0
        seen: set[str] = set()
        engine = engine_of(target.connection)
        with target.mapped(), engine.transaction(target.connection, write=True):
            while self.link is not None and rows < most:
                writer, first, last = self.link[:3]
                if writer not in seen:
                    seen.add(writer)
                    self._go_on(target, writer)
                if first != self._reached[writer] + 1:
                    raise Corrupt(
                        "ledger-damaged",
                        f"the link {writer}/{first} does not follow the one before it, which ends at "
                        f"{self._reached[writer]}; it was not copied",
                        hint=_VERIFY,
                    )
                rows += _copy_link(target, self._kinds, self.link, self._left.get(writer, (1, 0, 0)))
                added += 1
                self._reached[writer] = last
                self.link = next(self._links, None)
        return rows, added

    def _go_on(self, target: Ledger, writer: str) -> None:
        engine_of(target.connection).lock(bare_cursor(target.connection), f"writer {writer}")
        if last_link(target.connection, writer)[0] != self._reached[writer]:
            raise Refused(
                "copy-diverges",
                f"somebody else wrote to {target.place} meanwhile, and a copy of its chain {writer} cannot go on",
                hint="stop whoever writes there; what was copied so far is whole",
            )


def _copy_stage(
    source: Ledger, target: Ledger, stage: Sequence[_Part], left: Mapping[str, tuple[int, int, int]]
) -> Generator[tuple[int, int], None, None]:
    """Copy a stage, at once where it is not too large for that; yields rows and links of each transaction."""
    for parts in _groups(stage):
        count = sum(part.until - part.after for part in parts)
        going = _Chains(source, parts, left)
        while going.link is not None:
            yield going.copy(target, count if count <= _ALL_AT_ONCE else _ROWS_AT_ONCE)


def _groups(stage: Sequence[_Part]) -> Iterator[list[_Part]]:
    """Parts that go together, in their order: as many as are not too large for one transaction, or one that is."""
    group: list[_Part] = []
    count = 0
    for part in stage:
        rows = part.until - part.after
        if group and count + rows > _ALL_AT_ONCE:
            yield group
            group, count = [], 0
        group.append(part)
        count += rows
    yield group


def _copy_link(target: Ledger, kinds: list[_Source], link: tuple[Any, ...], left: tuple[int, int, int]) -> int:
    """Copy one link; of one whose rows left for an archive those that stayed, and its hash."""
    writer, first, last, at_us, previous_hash, digest = link
    engine, cursor = engine_of(target.connection), bare_cursor(target.connection)
    sha = LinkHash(previous_hash, writer=writer, first_number=first, last_number=last, committed_at_us=at_us)
    rows = 0
    for kind in kinds:
        table = kind.codec.kind.table.name
        for part in kind.upto(writer, last):
            sha.add(kind.codec.kind.row.kind, part)
            engine.insert(cursor, table, kind.codec.columns, part)
            rows += len(part)
    may_have_left = rows < last - first + 1 and left[0] <= last and first <= left[1]
    if not may_have_left and (sha.hexdigest() != digest or rows != last - first + 1):
        raise Corrupt(
            "ledger-damaged", f"the link {writer}/{first} is not the one that was hashed; it was not copied",
            hint=_VERIFY,
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
