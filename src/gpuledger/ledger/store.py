"""The ledger itself: the one object through which rows are appended, scanned, summed and sealed.

In: rows of :mod:`gpuledger.model.rows`. Out: the same rows with their writer and number, values from
:mod:`.sums`, or an error of :mod:`gpuledger.errors`. One thread, one connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Literal, TypeVar, cast

import sqlalchemy as sa

from gpuledger.errors import Misconfigured, NotFound, Refused
from gpuledger.ledger import appending, archived, scanning, sums
from gpuledger.ledger.appending import Appended, Ready
from gpuledger.ledger.chain import GENESIS, heads_json, seal_root
from gpuledger.ledger.codec import CODECS
from gpuledger.ledger.engine import BUSY_TIMEOUT_MS, MARK, Opened, bare_cursor, engine_for
from gpuledger.ledger.kinds import KIND_OF, KINDS
from gpuledger.ledger.places import Place, place_of
from gpuledger.ledger.schema import LINK, SEAL
from gpuledger.ledger.sums import UsageSum
from gpuledger.ledger.texts import TextBook
from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.rows import Row, Seal, Watch

R = TypeVar("R", bound=Row)

_REF = re.compile(r"([a-z]+):(.+)/([0-9]{1,18})", re.DOTALL)
_KIND_BY_NAME = {kind.row.kind: kind for kind in KINDS}
_STORES = ("psycopg", "sqlalchemy", "sqlite3")


class Ledger:
    """An open ledger. Made by :meth:`open`; closes itself as a context manager.

    Attributes:
        place: where it lies: a path, or a server's database; as text it holds no password.
    """

    def __init__(self, opened: Opened, *, mode: str) -> None:
        self.place = opened.place
        self._opened = opened
        self._engine = engine_for(opened.place)
        self._connection = opened.connection
        self._mode = mode
        self._texts = TextBook(opened.connection)

    @classmethod
    def open(
        cls,
        place: str | Place,
        *,
        mode: Literal["read", "append"],
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    ) -> Ledger:
        """Open the ledger at a path, ``sqlite:///PATH`` or ``postgresql://...``.

        Args:
            place: where it lies; :func:`gpuledger.ledger.places.resolve_place` finds the default.
            mode: ``append`` creates the file (mode 0640) and its parents, and brings the tables up to date,
                all or nothing; on a server ``gpuledger migrate`` does. ``read`` creates and changes nothing and needs
                no write permission.
            busy_timeout_ms: how long to wait for another writer.

        Raises:
            Misconfigured, Unavailable, Corrupt: as :func:`gpuledger.ledger.places.place_of` and ``open_connection`` of
                :mod:`.sqlite` and :mod:`.postgres` say.
        """
        where = place_of(place)
        opened = engine_for(where).open_connection(where, mode=mode, busy_timeout_ms=busy_timeout_ms)
        ledger = cls(opened, mode=mode)
        if mode == "append":
            try:
                with ledger.mapped():
                    ledger._engine.prepare(opened)
            except BaseException:
                ledger.close()
                raise
        return ledger

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if type(error).__module__.partition(".")[0] in _STORES:
                with self.mapped():  # of what was asked of the connection itself
                    raise cast("Exception", error)
        finally:
            self.close()

    def close(self) -> None:
        """Let the file go; a second call does nothing."""
        self._connection.close()

    @property
    def connection(self) -> sa.Connection:
        """The connection, for :mod:`.verify` and statements that have no method here. Read only, please."""
        return self._connection

    def mapped(self) -> AbstractContextManager[None]:
        """Inside, what the store raises becomes the errors people meet."""
        return self._engine.errors_of(self._opened)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Every read inside sees the ledger as it was at the first one, whatever is appended meanwhile."""
        with self.mapped(), self._engine.transaction(self._connection, write=False):
            yield

    # Writing

    def append(self, rows: Sequence[Row], *, writer: str, at_us: int) -> Appended:
        """Append what is new of ``rows`` in one transaction, as one link of the writer's chain.

        Args:
            rows: any kinds, any order; what the ledger knows already is counted, not added.
            writer: the chain, ``HOST.ROLE``.
            at_us: now, microseconds UTC.

        Raises:
            Unavailable: ``ledger-busy``, ``ledger-full``, ``ledger-io``; nothing of ``rows`` was added.
            Refused: ``read-only`` on a ledger opened to read.
            TypeError: a row holds a float, a truth value or an absence where none may be: a bug.
        """
        self._refuse_reader()
        with self.mapped():
            return appending.append_rows(self._connection, self._texts, rows, writer=writer, at_us=at_us)

    def append_made(
        self,
        make: Callable[[], Sequence[Row] | None],
        *,
        writer: str,
        at_us: int,
        are_new: bool = False,
        scopes: Sequence[str] = (),
    ) -> Appended | None:
        """As :meth:`append`, with the rows that ``make`` gives once nobody else can judge.

        What ``make`` reads of this ledger holds until its rows are there, as far as everybody who writes such rows
        comes this way. Where it raises, or gives None, nothing is added; None then comes back.

        Args:
            make: gives the rows; called once.
            writer, at_us: as of :meth:`append`.
            are_new: it has looked, and none of its rows is known.
            scopes: what it judges about, by names. Without any it is alone among all who judge; with some it waits for
                those who name one of the same, and for those who name none. (SQLite has one writer at a time anyway.)

        Raises:
            Unavailable: as :meth:`append`; ``ledger-busy`` also when another added one of its rows meanwhile.
        """
        self._refuse_reader()
        with self.mapped():
            return appending.append_made(
                self._connection, self._texts, make, writer=writer, at_us=at_us, are_new=are_new, scopes=scopes
            )

    def append_if(
        self, provided: Callable[[], bool], rows: Sequence[Row], *, writer: str, at_us: int, ready: Ready | None = None
    ) -> Appended | None:
        """As :meth:`append`, if ``provided`` holds once nobody else can append so; else None, and nothing is added.

        What stands ``ready`` goes into the same transaction and link. It is for those who book what they derived: they
        exclude each other, and wait for no one who judges.
        """
        self._refuse_reader()
        with self.mapped():
            return appending.again_after_a_race(
                self._connection,
                lambda alone: appending.append_made(
                    self._connection, self._texts, lambda: rows if provided() else None,
                    writer=writer, at_us=at_us, ready=ready, alone=("booking", *alone),
                ),
            )  # fmt: skip

    def seal(self, at_us: int, *, writer: str) -> Seal:
        """Append a seal over the heads of all chains, itself a row of ``writer``'s chain."""
        self._refuse_reader()
        with self.mapped():
            with self._engine.transaction(self._connection, write=True, alone=("seal",)):
                heads = heads_json(self.heads())
                previous = self._latest_root()
                root = seal_root(previous, at_us, heads)
                seal = Seal(at_us=at_us, heads=heads, previous_root=previous, root=root)
                (row,) = appending.append_in_transaction(self._connection, [seal], writer=writer, at_us=at_us)
            return cast("Seal", row)

    def forget(self, keys: Iterable[str]) -> tuple[int, str]:
        """Delete the text of these keys for good, also from SQLite's write-ahead log.

        Without keys only the log is emptied: what a call before could not finish.

        Returns:
            How many there were, and where their bytes may still be, in a sentence; empty where they are nowhere.

        Raises:
            Unavailable: ``log-in-use``; the texts are deleted, and not yet gone from the log.
        """
        self._refuse_reader()
        with self.mapped():
            with self._engine.transaction(self._connection, write=True, alone=("forgetting",)):
                gone = self._texts.delete(keys)
            return gone, self._engine.erase_traces(self._opened)

    def _refuse_reader(self) -> None:
        if self._mode != "append":
            raise Refused("read-only", f"{self.place} was opened to read", hint="open it to append")

    # Texts

    def key_of(self, text: IdentityText, *, is_new: bool = False) -> str:
        """The key of a text for rows to refer to; stored with the next append of a row that names it.

        With ``is_new`` it is not looked for among the stored ones: a text that stands twice does no harm.
        """
        if is_new:  # the store is not asked
            return self._texts.key_of(text, is_new=True)
        with self.mapped():
            return self._texts.key_of(text)

    def texts(self, keys: Iterable[str] | None = None) -> dict[str, IdentityText]:
        """Stored texts by key, all without ``keys``; forgotten and unknown keys are left out."""
        with self.mapped():
            return self._texts.texts(keys)

    # Reading

    def scan(
        self,
        kind: type[R],
        *,
        since_us: int | None = None,
        until_us: int | None = None,
        hosts: Collection[str] | None = None,
        pids: Collection[tuple[str, int]] | None = None,
        devices: Collection[str] | None = None,
        after: Mapping[str, int] | None = None,
        upto: Mapping[str, int] | None = None,
        order: Literal["number", "time"] = "number",
        descending: bool = False,
        limit: int | None = None,
        batch: int = scanning.BATCH,
    ) -> Iterator[R]:
        """Rows of one kind, streamed; the arguments are those of :class:`.scanning.Wanted`.

        Finish it before the next append through the same ledger.
        """
        wanted = scanning.Wanted(
            since_us=since_us, until_us=until_us, hosts=hosts, devices=devices, pids=pids, after=after, upto=upto,
            order=order, descending=descending, limit=limit,
        )  # fmt: skip
        with self.mapped():
            writers = self.writers() if after is not None or upto is not None else ()
            yield from cast("Iterator[R]", scanning.scan_rows(self._connection, KIND_OF[kind], wanted, writers, batch))

    def get(self, ref: str) -> Row:
        """The row behind ``KIND:WRITER/NUMBER``.

        Raises:
            Misconfigured: ``bad-ref`` when it is no such reference.
            NotFound: ``no-such-row`` when the ledger holds none.
        """
        parts = _REF.fullmatch(ref)
        kind = _KIND_BY_NAME.get(parts[1]) if parts else None
        if parts is None or kind is None:
            raise Misconfigured(
                "bad-ref",
                f"{ref!r} is not a reference",
                hint=f"KIND:WRITER/NUMBER, with KIND one of {', '.join(sorted(_KIND_BY_NAME))}",
            )
        codec, table = CODECS[kind.row], kind.table
        statement = codec.select.where(table.c.writer == parts[2], table.c.number == int(parts[3]))
        with self.mapped():
            found = self._connection.execute(statement).first()
        if found is None:
            raise NotFound("no-such-row", f"the ledger holds no {ref}", hint="gpuledger journal --format json")
        return codec.decode([tuple(found)])[0]

    def newest(self, kind: type[R]) -> list[R]:
        """The last row of a kind in each writer's chain: where it stands is known, however long the history."""
        codec, table = CODECS[kind], KIND_OF[kind].table
        last = codec.select.order_by(table.c.number.desc()).limit(1)
        with self.mapped():
            found = [self._connection.execute(last.where(table.c.writer == name)).first() for name in self._writers()]
        return cast("list[R]", codec.decode([tuple(row) for row in found if row is not None]))

    def latest(
        self, kind: type[R], *, hosts: Collection[str] | None = None, devices: Collection[str] | None = None
    ) -> R | Missing:
        """The row of a kind that is last in time; Missing when there is none."""
        rows = list(self.scan(kind, hosts=hosts, devices=devices, order="time", descending=True, limit=1))
        return rows[0] if rows else Missing(f"no {kind.kind} row yet")

    def count(self, kind: type[Row]) -> int:
        """Number of rows of a kind."""
        with self.mapped():
            return int(
                self._connection.execute(sa.select(sa.func.count()).select_from(KIND_OF[kind].table)).scalar_one()
            )

    def heads(self) -> dict[str, tuple[int, str]]:
        """Every chain's last number and link hash, by writer."""
        with self.mapped():
            return {writer: appending.last_link(self._connection, writer) for writer in self._writers()}

    def marks(self) -> dict[str, int]:
        """Every writer's last number, all as of one moment."""
        with self.mapped():
            return appending.last_numbers(self._connection)

    def writers(self) -> tuple[str, ...]:
        """Every writer's name, sorted."""
        with self.mapped():
            return tuple(self._writers())

    def _writers(self) -> list[str]:
        # From name to next name by the index: a busy agent's chain has a link a second.
        names: list[str] = []
        following = f"SELECT MIN(writer) FROM {LINK.name} WHERE writer > {MARK}"  # noqa: S608 the schema's own name
        cursor = bare_cursor(self._connection)
        while True:
            cursor.execute(following, (names[-1] if names else "",))
            name = cursor.fetchall()[0][0]
            if name is None:
                return names
            names.append(str(name))

    def latest_root(self) -> str | Missing:
        """Root of the last seal, for keeping elsewhere; Missing before the first."""
        with self.mapped():
            root = self._latest_root()
        return Missing("no seal yet") if root == GENESIS else root

    def _latest_root(self) -> str:
        # The last of the chain of roots, whichever writer made it: the one that no other names as previous.
        later = SEAL.alias("later")
        unfollowed = ~sa.exists().where(later.c.previous_root == SEAL.c.root)
        root = self._connection.execute(
            sa.select(SEAL.c.root).where(unfollowed).order_by(SEAL.c.at_us.desc()).limit(1)
        ).scalar()
        return GENESIS if root is None else str(root)

    def span_of(self, kinds: Iterable[type[Row]]) -> tuple[int | Missing, int | Missing]:
        """The earliest and the latest moment that rows of these kinds speak of, microseconds UTC."""
        chosen = tuple(kinds)
        return self._edge(sa.func.min, "starts", chosen), self._edge(sa.func.max, "ends", chosen)

    def last_moment(self, kinds: Iterable[type[Row]]) -> int | Missing:
        """The latest moment that rows of these kinds speak of: an index tells it, however long the history."""
        return self._edge(sa.func.max, "ends", tuple(kinds))

    def _edge(self, edge: Callable[..., sa.ColumnElement[int]], side: str, kinds: Iterable[type[Row]]) -> int | Missing:
        with self.mapped():
            found = [self._connection.execute(sa.select(edge(getattr(KIND_OF[row], side)))).scalar() for row in kinds]
            found += archived.edges(self._connection, [row.kind for row in kinds], side)
        moments = [int(moment) for moment in found if moment is not None]
        return (min if side == "starts" else max)(moments) if moments else Missing("the ledger is empty")

    # Sums

    def sum_usage(
        self, meter: str, since_us: int | None = None, until_us: int | None = None, by: Sequence[str] = ()
    ) -> list[UsageSum]:
        """Sums of one meter over the hours that begin in [since, until); ``by``: subject, host, device,
        hour_us, day_us."""
        with self.mapped():
            return sums.sum_usage(self._connection, meter, since_us, until_us, by)

    def settled_since(
        self, meter: str, since_us: int | None = None, until_us: int | None = None, by: Sequence[str] = ()
    ) -> dict[tuple[str | int, ...], int]:
        """Of what was open when recorded, the sums that the driver has settled since, by the keys of a sum."""
        with self.mapped():
            return sums.settled_since(self._connection, meter, since_us, until_us, by)

    def watched_spans(
        self, devices: Iterable[tuple[str, str]], since_us: int | None = None, until_us: int | None = None
    ) -> list[Watch]:
        """What was watched of these devices and their hosts, merged, and the first look ever at each."""
        with self.mapped():
            return sums.watched_spans(self._connection, devices, since_us, until_us)

    def coalesced_watches(
        self, since_us: int | None = None, until_us: int | None = None, source: str = "driver"
    ) -> list[Watch]:
        """Watches merged into maximal spans of one host, device, method, interval and status."""
        with self.mapped():
            return sums.coalesced_watches(self._connection, since_us, until_us, source)
