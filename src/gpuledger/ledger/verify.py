"""Verifying: titled checks over the whole ledger, each of which returns what it found.

Triggers stop accidents; these checks expose intent. What they cannot see is a tail cut off together with
its links and every seal that names it, or a ledger written anew from the start: the root of a seal, kept
elsewhere and given as ``kept_root``, shows that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import sqlalchemy as sa

from gpuledger.errors import Corrupt
from gpuledger.ledger import archived
from gpuledger.ledger.chain import GENESIS, Cell, LinkHash, read_heads, seal_root
from gpuledger.ledger.codec import CODECS, Codec
from gpuledger.ledger.engine import engine_of
from gpuledger.ledger.kinds import KINDS
from gpuledger.ledger.schema import IDENTITY_TEXT, LINK, SEAL
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.texts import digest_of, text_key
from gpuledger.model.rows import DriverRecord

_BATCH = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be.

    Args:
        code: kebab-case name of the check that found it.
        sentence: what is wrong, for the person at the terminal.
        where: table, writer, or reference it is about.
    """

    code: str
    sentence: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check.

    Args:
        code: kebab-case name, carried by its findings.
        title: what holds when it finds nothing.
        description: what it looks at, and what a finding means.
        find: yields (where, sentence) for each violation.
    """

    code: str
    title: str
    description: str
    find: Callable[[sa.Connection], Iterator[tuple[str, str]]]


def verify_ledger(ledger: Ledger, *, kept_root: str = "") -> list[Finding]:
    """Run every check over one snapshot of the ledger; an empty list means that all of them hold.

    Args:
        ledger: open in either mode.
        kept_root: a root printed earlier and kept elsewhere; it must be among the seals.

    Raises:
        Unavailable: ``ledger-busy`` and the like. Damage is never raised, it is a finding.
    """
    findings = []
    try:
        with ledger.snapshot():
            for check in CHECKS:
                findings.extend(_run(ledger, check))
            if kept_root:
                findings.extend(_kept(ledger, kept_root))
    except Corrupt as error:  # not even a snapshot can be begun or ended
        findings.append(Finding(code="pages", sentence=error.message, where=str(ledger.place)))
    return findings


def _run(ledger: Ledger, check: Check) -> list[Finding]:
    found = []
    try:
        with ledger.mapped(), engine_of(ledger.connection).part(ledger.connection):
            for where, sentence in check.find(ledger.connection):
                found.append(Finding(code=check.code, sentence=sentence, where=where))
    except Corrupt as error:
        found.append(Finding(code=check.code, sentence=f"cannot be checked: {error.message}", where=str(ledger.place)))
    return found


def _kept(ledger: Ledger, kept_root: str) -> list[Finding]:
    try:
        with ledger.mapped(), engine_of(ledger.connection).part(ledger.connection):
            statement = sa.select(sa.func.count()).where(SEAL.c.root == kept_root)
            if ledger.connection.execute(statement).scalar_one():
                return []
    except Corrupt as error:
        return [Finding(code="seals", sentence=f"cannot be checked: {error.message}", where=str(ledger.place))]
    sentence = "no seal has the root that was kept: the ledger was cut off before it, or written anew"
    return [Finding(code="seals", sentence=sentence, where=kept_root)]


def _pages(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    for line in engine_of(connection).damaged_pages(connection):
        yield "file", line


def _schema(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    yield from engine_of(connection).schema_findings(connection)


class _Rows:
    """All rows of one kind in the order of the chain, looked at one ahead."""

    def __init__(self, connection: sa.Connection, codec: Codec) -> None:
        self.codec = codec
        table = codec.kind.table
        statement = sa.select(*table.columns).order_by(table.c.writer, table.c.number)
        self.unplaced = 0
        self._cells = self._read(connection, statement)
        self.next: tuple[Any, ...] | None = next(self._cells, None)

    def _read(self, connection: sa.Connection, statement: sa.Select[Any]) -> Iterator[tuple[Any, ...]]:
        for batch in engine_of(connection).stream(connection, statement, {}, _BATCH):
            placed = [row for row in batch if type(row[0]) is str and type(row[1]) is int]
            self.unplaced += len(batch) - len(placed)
            yield from placed

    def take(self, writer: str, upto: int | None, *, most: int | None = None) -> list[tuple[Any, ...]]:
        """The rows of a writer up to a number (all of them without one) that were not taken yet, at most so many."""
        taken: list[tuple[Any, ...]] = []
        while self.next is not None and self.next[0] == writer and (upto is None or self.next[1] <= upto):
            if len(taken) == most:
                break
            taken.append(self.next)
            self.next = next(self._cells, None)
        return taken

    def skip_before(self, writer: str | None) -> Iterator[str]:
        """Pass over the rows of writers that have no link, up to ``writer``; yields their references."""
        while self.next is not None and (writer is None or self.next[0] < writer):
            yield self._ref(self.next)
            self.next = next(self._cells, None)

    def _ref(self, cells: tuple[Any, ...]) -> str:
        return f"{self.codec.kind.row.kind}:{cells[0]}/{cells[1]}"


def _chain(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    streams = [_Rows(connection, codec) for codec in CODECS.values()]
    links = connection.execute(sa.select(*LINK.columns).order_by(LINK.c.writer, LINK.c.first_number)).fetchall()
    writer, last_number, last_hash = "", 0, GENESIS
    left, gone = archived.numbers(connection), dict[str, int]()
    for link in links:
        if [type(cell) for cell in link] != [str, int, int, int, str, str]:
            yield "link", f"a link that cannot be read: {tuple(link)}"
            continue
        link_writer, first, last, at_us, previous_hash, digest = link
        if link_writer != writer:
            yield from _unlinked(streams, writer, link_writer)
            writer, last_number, last_hash = link_writer, 0, GENESIS
        where = f"{writer}/{first}"
        if first != last_number + 1 or last < first:
            yield where, f"the link holds numbers {first} to {last}, the chain stood at {last_number}"
        if previous_hash != last_hash:
            yield where, "the link does not follow the one before it: a link was changed or taken out"
        sha = LinkHash(previous_hash, writer=writer, first_number=first, last_number=last, committed_at_us=at_us)
        numbers: list[int] = []
        for stream in streams:
            while rows := stream.take(writer, last, most=_BATCH):
                numbers.extend(row[1] for row in rows)
                bad = list(_bad_cells(stream.codec, rows))
                yield from bad
                sha.add(stream.codec.kind.row.kind, [[_plain(cell) for cell in row] for row in rows] if bad else rows)
        low, high, _ = left.get(writer, (1, 0, 0))
        missing = last - first + 1 - len(numbers)
        if missing > 0 and low <= high and _may_have_left(numbers, first, last, low, high):
            gone[writer] = gone.get(writer, 0) + missing  # the link itself, its hash and what follows it are checked
            last_number, last_hash = last, digest
            continue
        if numbers != list(range(first, last + 1)):
            yield where, f"rows {first} to {last} are not all there, once and in order: {_odd(numbers, first, last)}"
        if sha.hexdigest() != digest:
            yield where, "the rows of the link are not those that were hashed"
        last_number, last_hash = last, digest
    yield from _unlinked(streams, writer, None)
    for name, (low, high, count) in left.items():
        if gone.get(name, 0) > count:  # fewer where it was copied before they left
            yield (
                f"{name}/{low} to {high}",
                f"{gone.get(name, 0)} rows are gone from the chain, and only {count} left it for an archive",
            )
    for stream in streams:
        if stream.unplaced:
            yield stream.codec.kind.table.name, f"{stream.unplaced} rows whose writer or number cannot be read"


def _may_have_left(numbers: list[int], first: int, last: int, low: int, high: int) -> bool:
    """Whether what is missing of a link lies where rows left for an archive, and the rest stands once and in order."""
    if any(later <= number for number, later in pairwise(numbers)) or (
        numbers and not first <= numbers[0] <= numbers[-1] <= last
    ):
        return False
    there = set(numbers)
    return all(low <= number <= high for number in range(first, last + 1) if number not in there)


def _plain(cell: Any) -> Cell:
    return cell if cell is None or type(cell) in (int, str) else repr(cell)


def _odd(numbers: list[int], first: int, last: int) -> str:
    missing = sorted(set(range(first, min(last, first + 1_000_000) + 1)) - set(numbers))
    if missing:
        return f"missing {', '.join(map(str, missing[:5]))}{' ...' if len(missing) > 5 else ''}"
    outside = [number for number in numbers if not first <= number <= last]
    return f"beside them {', '.join(map(str, outside[:5]))}" if outside else "out of order"


def _unlinked(streams: list[_Rows], writer: str, before: str | None) -> Iterator[tuple[str, str]]:
    """What is left of ``writer``, and all rows of writers between it and ``before`` that have no link."""
    for stream in streams:
        for row in stream.take(writer, None):
            yield f"{stream.codec.kind.row.kind}:{row[0]}/{row[1]}", "the row belongs to no link"
        for ref in stream.skip_before(before):
            yield ref, "the row belongs to no link"


def _bad_cells(codec: Codec, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, str]]:
    for name, column in zip(codec.columns, zip(*rows, strict=True), strict=bool(rows)):
        wrong = set(map(type, column)) - codec.types[name]
        if wrong:
            found = ", ".join(sorted(each.__name__ for each in wrong))
            yield f"{codec.kind.table.name}.{name}", f"a column of the wrong type: {found}"


def _seals(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    links = {
        (writer, int(number)): digest
        for writer, number, digest in connection.execute(sa.select(LINK.c.writer, LINK.c.last_number, LINK.c.hash))
    }
    seals = {
        row.previous_root: row
        for row in connection.execute(sa.select(SEAL.c.writer, SEAL.c.number, SEAL.c.at_us, SEAL.c.heads,
                                                SEAL.c.previous_root, SEAL.c.root))
    }  # fmt: skip
    root, before = GENESIS, dict[str, tuple[int, str]]()
    while seal := seals.pop(root, None):
        where = f"seal:{seal.writer}/{seal.number}"
        root = seal.root
        if [type(cell) for cell in seal] != [str, int, int, str, str, str]:
            yield where, "a seal that cannot be read"
            continue
        if seal_root(seal.previous_root, seal.at_us, seal.heads) != seal.root:
            yield where, "the root is not that of its time and heads"
        try:
            heads = read_heads(seal.heads)
        except ValueError as error:
            yield where, f"its heads cannot be read: {error}"
            continue
        for writer, (number, digest) in heads.items():
            if links.get((writer, number)) != digest:
                yield where, f"the chain of {writer} has no link that ends at {number} with the sealed hash"
        for writer, (number, _) in before.items():
            if writer not in heads or heads[writer][0] < number:
                yield where, f"the chain of {writer} is shorter here than in the seal before"
        before = heads
    for seal in seals.values():
        yield f"seal:{seal.writer}/{seal.number}", "the seal does not follow from the first one: one was taken out"


def _texts(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    batches = engine_of(connection).stream(connection, sa.select(*IDENTITY_TEXT.columns), {}, _BATCH)
    for key, salt, digest, json in chain.from_iterable(batches):
        try:
            encoded = json.encode()
            right = (text_key(bytes.fromhex(salt), encoded), digest_of(encoded)) == (key, digest)
        except (ValueError, TypeError, AttributeError):
            right = False
        if not right:
            yield f"identity_text {key}", "the text is not the one its key stands for"


def _keys(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    for kind in KINDS:
        columns = [kind.table.c[name] for name in kind.key]
        if not columns:
            continue
        # Not through the unique index: it would be the first thing to be wrong.
        statement = sa.select(*columns).group_by(*columns).having(sa.func.count() > 1).limit(20)
        for row in connection.execute(statement):
            yield kind.table.name, f"two rows have the key {tuple(row)}"


def _derived(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    codec = CODECS[DriverRecord]
    width = len(codec.fields)
    for batch in engine_of(connection).stream(connection, sa.select(*codec.kind.table.columns), {}, _BATCH):
        if next(_bad_cells(codec, batch), None):  # told by the chain's check; the others are still looked at
            sound = [row for row in batch if next(_bad_cells(codec, [row]), None) is None]
        else:
            sound = batch
        rows = codec.decode([cells[:width] for cells in sound])
        for row, encoded, cells in zip(rows, codec.encode(rows), sound, strict=True):
            if encoded[width - 2 :] != tuple(cells[width:]):
                yield row.ref, "natural_key or ended_at_us does not follow from the row"


CHECKS: tuple[Check, ...] = (
    Check(
        code="pages",
        title="The file can be read",
        description="SQLite's own check of pages, indexes and column types; on PostgreSQL, that tables and their keys "
        "hold the same rows. A finding means a damaged file.",
        find=_pages,
    ),
    Check(
        code="schema",
        title="Tables, indexes and triggers are those that this program made",
        description="A missing or changed trigger means that somebody made room to change rows.",
        find=_schema,
    ),
    Check(
        code="chain",
        title="Every row is the one that was hashed, in its place, without a gap",
        description="Walks each writer's links and recomputes them over the rows. A finding names the link; a row "
        "was changed, added, taken out or moved.",
        find=_chain,
    ),
    Check(
        code="seals",
        title="Every seal's heads are still in their chains",
        description="Recomputes roots and looks each sealed head up. A finding means that a chain was cut or written "
        "anew.",
        find=_seals,
    ),
    Check(
        code="texts",
        title="Every identity text is the one its key stands for",
        description="Recomputes salted keys. Deleted texts are not missed: they may be forgotten.",
        find=_texts,
    ),
    Check(
        code="keys",
        title="No two rows share a natural key",
        description="Groups each table by its natural key. A finding means that something was counted twice.",
        find=_keys,
    ),
    Check(
        code="derived",
        title="Derived columns follow from their rows",
        description="Recomputes natural_key and ended_at_us of the driver's rows.",
        find=_derived,
    ),
)
"""Every check, in the order in which they run."""
