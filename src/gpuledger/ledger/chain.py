"""The hash chain: pure functions from rows to link hashes and from heads to seal roots.

The canonical form of a link is the previous hash, then one JSON array: the link's own
``[writer, first, last, committed_at_us]``, then each row as ``[kind, column, column, ...]`` in the
order of its table's columns; ASCII only, no blanks, NULL as ``null``. SHA-256 over it is the link's hash,
so a dozen lines in any language can check a ledger.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

GENESIS = "0" * 64
"""The previous hash of a writer's first link, and the previous root of the first seal."""

Cell = int | str | None
"""What a column holds."""

_CHUNK = 1000


_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False, check_circular=False).encode
"""The canonical JSON of a value. ``json.dumps`` makes an encoder each time, a tenth of the price of a small link."""


class LinkHash:
    """The hash of one link, fed with its rows in order, so that no link has to fit in memory twice.

    Args:
        previous_hash: of the writer's link before, or :data:`GENESIS`.
        writer, first_number, last_number, committed_at_us: the link's own columns.
    """

    def __init__(
        self, previous_hash: str, *, writer: str, first_number: int, last_number: int, committed_at_us: int
    ) -> None:
        self._sha = hashlib.sha256(previous_hash.encode())
        self._waiting: list[list[Cell]] = [[writer, first_number, last_number, committed_at_us]]
        self._opening = "["

    def add(self, kind: str, rows: Sequence[Sequence[Cell]]) -> None:
        """Rows of one kind, in order, each with all columns of its table."""
        for start in range(0, len(rows), _CHUNK):
            self._waiting += [[kind, *row] for row in rows[start : start + _CHUNK]]
            if len(self._waiting) > _CHUNK:
                self._take()

    def _take(self) -> None:
        """Take in what waits, all kinds at once: a small link is one text."""
        if self._waiting:
            self._sha.update(f"{self._opening}{_json(self._waiting)[1:-1]}".encode())
            self._waiting.clear()
            self._opening = ","

    def add_encoded(self, rows: str) -> None:
        """Rows as :meth:`add` would write them, joined by commas; at least one."""
        self._take()
        self._sha.update(f",{rows}".encode())

    def hexdigest(self) -> str:
        """The link's hash; further rows may still be added to a continued computation."""
        self._take()
        ended = self._sha.copy()
        ended.update(b"]")
        return ended.hexdigest()


def link_hash(
    previous_hash: str,
    rows: Iterable[tuple[str, Sequence[Sequence[Cell]] | Iterator[str]]],
    *,
    writer: str,
    first_number: int,
    last_number: int,
    committed_at_us: int,
) -> str:
    """The hash of one link over (kind, rows) groups in order; an iterator gives rows as text, as a link has them."""
    sha = LinkHash(
        previous_hash,
        writer=writer,
        first_number=first_number,
        last_number=last_number,
        committed_at_us=committed_at_us,
    )
    for kind, group in rows:
        if isinstance(group, Iterator):
            for encoded in group:
                sha.add_encoded(encoded)
        else:
            sha.add(kind, group)
    return sha.hexdigest()


def heads_json(heads: Mapping[str, tuple[int, str]]) -> str:
    """The canonical text of all chains' heads: writer to [last number, link hash], keys sorted."""
    return _json({writer: list(heads[writer]) for writer in sorted(heads)})


def read_heads(text: str) -> dict[str, tuple[int, str]]:
    """The inverse of :func:`heads_json`.

    Raises:
        ValueError: when the text is not what :func:`heads_json` writes.
    """
    try:
        document = json.loads(text)
        heads = {str(writer): (int(number), str(digest)) for writer, (number, digest) in document.items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not the heads of chains: {error}") from None
    if heads_json(heads) != text:
        raise ValueError("not in canonical form")
    return heads


def seal_root(previous_root: str, at_us: int, heads: str) -> str:
    """The root of a seal over the root before, its time, and its heads as text."""
    return hashlib.sha256(f"{previous_root}{_json([at_us, heads])}".encode()).hexdigest()
