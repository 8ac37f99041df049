"""How statements travel to a server: as many as nobody waits for an answer of go there and back at once.

In: statements with PostgreSQL's own marks, and what is bound. Out: their rows. It speaks to libpq through psycopg's
bindings, and past psycopg's cursors: a statement takes 24 microseconds of CPU so, 9 where five travel together, and 64
and 58 by a cursor (psycopg 3.3.9, measured). What is asked often is prepared once; the 200 asked last stay prepared.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.waiting import Ready, Wait

Driver = psycopg.Connection[tuple[Any, ...]]
"""A connection of psycopg."""

_OFTEN = 3
"""How often a statement is asked before it is prepared."""

CAN_PIPELINE = psycopg.Pipeline.is_supported()
"""False with a libpq older than 14, which psycopg's wheels do not bring."""

_MOST_PREPARED = 200
_MOST_MET = 2000
_DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY)
_NUMBERS = count(1)
_Key = tuple[str, tuple[int, ...]]
_Bound = tuple[Sequence[Any] | None, tuple[int, ...], Sequence[pq.Format] | None]
"""What libpq takes: values, their types and formats."""


@dataclass(slots=True)
class Asked:
    """One statement.

    Args:
        text: with ``$1`` for each mark.
        bound: what stands for the marks.
        rows: of the answer, once it is there.
        count: of rows that it gave or changed.
        said: the server's word for what was done, such as ``COMMIT``.
        is_answered: whether it is.
    """

    text: str
    bound: Sequence[Any]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    count: int = 0
    said: bytes = b""
    is_answered: bool = False


class Pipeline:
    """The way to a server and back, of one connection that is in autocommit: whoever wants a transaction says BEGIN."""

    def __init__(self, driver: Driver) -> None:
        if CAN_PIPELINE:
            # It prepares by itself what it executes often, and after a ROLLBACK has the server forget all that is
            # prepared, also what was by others (DEALLOCATE ALL: psycopg 3.3.9, _preparing.py).
            driver.prepare_threshold = None
        self._adapting = Transformer(driver.adapters)
        self._waiting: list[Asked] = []
        self._prepared: dict[_Key, bytes] = {}  # what was not asked for longest comes first
        self._leaving: list[bytes] = []  # names that the server may still hold
        self._met: dict[_Key, int] = {}
        self._depth = 0

    def ask(self, driver: Driver, text: str, bound: Sequence[Any] = ()) -> Asked:
        """Ask a statement: it goes at once, or, within :meth:`together`, when somebody waits for any answer."""
        asked = Asked(text, bound)
        self._waiting.append(asked)
        if not self._depth:
            self.flush(driver)
        return asked

    @contextmanager
    def together(self, driver: Driver, *, is_last: bool = False) -> Iterator[None]:
        """Inside, statements wait for the next that needs its answer; ``is_last``: or until the transaction ends."""
        self._depth += 1
        try:
            yield
        except BaseException:
            self._waiting.clear()
            raise
        finally:
            self._depth -= 1
        if not self._depth and not is_last:
            self.flush(driver)

    def forget(self) -> None:
        """Whatever still waits does not go."""
        self._waiting.clear()

    def flush(self, driver: Driver) -> None:
        """Send what waits, and take in the answers.

        Raises:
            psycopg.Error: the first fault; what came after it was not done, and nothing where a value cannot be bound.
        """
        asked, self._waiting = self._waiting, []
        if not asked:
            return
        bound = [self._bind(each.bound) for each in asked]
        if not CAN_PIPELINE:
            _one_by_one(driver, asked)
            return
        coming: dict[_Key, bytes] = {}
        pgconn = driver.pgconn
        pgconn.enter_pipeline_mode()
        try:
            fresh = [self._send(pgconn, each.text, values, coming) for each, values in zip(asked, bound, strict=True)]
            self._make_room(pgconn, len(coming))
            pgconn.pipeline_sync()
            answers = driver.wait(_answers(pgconn))
        except BaseException:
            self._leaving.clear()  # nobody knows which of them are gone
            _let_go(driver)
            raise
        pgconn.exit_pipeline_mode()
        self._take_in(asked, fresh, coming, iter(answers))

    def _bind(self, bound: Sequence[Any]) -> _Bound:
        """Before anything is sent: within a pipeline a fault would cost the connection."""
        if not bound:
            return None, (), None
        values = self._adapting.dump_sequence(bound, [PyFormat.AUTO] * len(bound))
        return values, self._adapting.types or (), self._adapting.formats

    def _send(self, pgconn: pq.abc.PGconn, text: str, bound: _Bound, coming: dict[_Key, bytes]) -> _Key | None:
        """Send one statement; returns what is prepared with it, whose name is in ``coming``."""
        values, types, formats = bound
        key = (text, types)
        name = self._prepared.pop(key, None)
        if name is not None:
            self._prepared[key] = name  # at the end: what is asked stays
        else:
            name = coming.get(key)
        if name is not None:
            pgconn.send_query_prepared(name, values, formats)
            return None
        met = self._met[key] = self._met.get(key, 0) + 1
        if met < _OFTEN or len(coming) >= _MOST_PREPARED:
            if len(self._met) > _MOST_MET:
                self._met.clear()
            pgconn.send_query_params(text.encode(), values, types, formats)
            return None
        name = coming[key] = b"gpuledger_%d" % next(_NUMBERS)
        pgconn.send_prepare(name, text.encode(), types)
        pgconn.send_query_prepared(name, values, formats)
        return key

    def _make_room(self, pgconn: pq.abc.PGconn, coming: int) -> None:
        """Let the server forget the oldest: at last, for before a BEGIN it would be a statement of the transaction."""
        over = len(self._prepared) + coming - _MOST_PREPARED
        for key in list(self._prepared)[:over] if over > 0 else ():
            self._leaving.append(self._prepared.pop(key))
        for name in self._leaving:
            pgconn.send_query_params(b"DEALLOCATE " + name, None)

    def _take_in(
        self,
        asked: Sequence[Asked],
        fresh: Sequence[_Key | None],
        coming: dict[_Key, bytes],
        answers: Iterator[pq.abc.PGresult],
    ) -> None:
        for each, key in zip(asked, fresh, strict=True):
            if key is not None:
                _refuse(next(answers))
                self._prepared[key] = coming[key]
                self._met.pop(key, None)
            result = next(answers)
            _refuse(result)
            each.is_answered = True
            each.count, each.said = result.command_tuples or 0, result.command_status or b""
            if result.ntuples:
                self._adapting.set_pgresult(result)
                each.rows = self._adapting.load_rows(0, result.ntuples, tuple)
        for gone in answers:
            _refuse(gone)
        self._leaving.clear()


def _one_by_one(driver: Driver, asked: Sequence[Asked]) -> None:
    """Each statement a round trip, by the driver's cursors."""
    for each in asked:
        cursor = psycopg.RawCursor(driver)
        cursor.execute(each.text.encode(), each.bound or None)
        each.is_answered = True
        each.count, each.said = cursor.rowcount, (cursor.statusmessage or "").encode()
        if cursor.description is not None:
            each.rows = cursor.fetchall()


def _refuse(result: pq.abc.PGresult) -> None:
    if result.status not in _DONE:
        raise error_from_result(result)


def _answers(pgconn: pq.abc.PGconn) -> Generator[Wait, Ready | int, list[pq.abc.PGresult]]:
    """The answers to all that was sent, one each; the driver waits where there is something to wait for."""
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            pgconn.consume_input()
    found: list[pq.abc.PGresult] = []
    while True:
        while pgconn.is_busy():
            yield Wait.R
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            continue
        if result.status == pq.ExecStatus.PIPELINE_SYNC:
            return found
        found.append(result)


def _let_go(driver: Driver) -> None:
    """After a fault on the way: out of the pipeline, or the connection is closed, for nothing of it can be trusted."""
    with suppress(psycopg.Error):
        driver.pgconn.exit_pipeline_mode()
    if driver.pgconn.pipeline_status != pq.PipelineStatus.OFF:
        driver.close()  # else it would stay in the pipeline for good, and look open


_PIPELINES: WeakKeyDictionary[Driver, Pipeline] = WeakKeyDictionary()


def pipeline_of(driver: Driver) -> Pipeline:
    """The pipeline of a connection."""
    pipeline = _PIPELINES.get(driver)
    if pipeline is None:
        pipeline = _PIPELINES[driver] = Pipeline(driver)
    return pipeline
