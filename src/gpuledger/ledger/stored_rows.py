"""Rows that one call has appended, read again when somebody looks: a backlog has too many to hold.

In: a ledger and numbers of one writer's chain. Out: a sequence of rows of one kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar, overload

from gpuledger.ledger.store import Ledger
from gpuledger.model.rows import Row

R = TypeVar("R", bound=Row)


class StoredRows(Sequence[R]):
    """Rows of one kind that stand under these numbers of a chain, all of which are of that kind.

    It has to be read before the ledger is closed; its length is known without.

    Args:
        ledger: open.
        kind: of the rows.
        writer: the chain.
        numbers: in order.
    """

    def __init__(self, ledger: Ledger, kind: type[R], writer: str, numbers: Sequence[range]) -> None:
        self._ledger = ledger
        self._kind = kind
        self._writer = writer
        self._numbers = [each for each in numbers if each]

    def __len__(self) -> int:
        """How many."""
        return sum(map(len, self._numbers))

    def __iter__(self) -> Iterator[R]:
        """Streamed, in the order of the chain."""
        for numbers in self._numbers:
            span = {self._writer: numbers[0] - 1}, {self._writer: numbers[-1]}
            yield from self._ledger.scan(self._kind, after=span[0], upto=span[1])

    @overload
    def __getitem__(self, place: int) -> R: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[R]: ...
    def __getitem__(self, place: int | slice) -> R | Sequence[R]:
        """One row, or some: each look reads them."""
        if isinstance(place, slice):
            return list(self)[place]
        at = place if place >= 0 else place + len(self)
        for row in islice(iter(self), max(at, 0), max(at, 0) + 1) if at >= 0 else ():
            return row
        raise IndexError(place)

    def __eq__(self, other: object) -> bool:
        """Whether another sequence holds equal rows."""
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        """Of no use, as of a list: two equal ones differ."""
        return id(self)
