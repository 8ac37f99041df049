"""Identity text: kept apart from the rows, under salted keys, so that it can be forgotten and the seals stand.

In: texts as read. Out: keys for rows, and texts for keys. A text is written in the transaction of the
first rows that refer to it. Two processes that meet the same text at the same moment may store it twice,
under two keys; both are right.

A text that was forgotten and is read again gets a new key: what it named before stays forgotten, also
where the process that reads it had the old key in memory. Only rows that were made before the text was
forgotten and are appended after it still refer to the old key; they were read before, and stay forgotten.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import fields
from json import loads
from operator import attrgetter

import sqlalchemy as sa

from gpuledger.errors import Corrupt
from gpuledger.ledger.engine import MARK, bare_cursor, engine_of
from gpuledger.ledger.schema import IDENTITY_TEXT
from gpuledger.model.identity import IdentityText
from gpuledger.model.rows import ProcessIdentity, Row, UsageCorrection, UsageRecord
from gpuledger.model.workload_rows import WorkloadEvent

_SLOTS = [(field.name, getattr(IdentityText, field.name).__set__) for field in fields(IdentityText)]
_KEYS: dict[type[Row], Callable[[Row], str]] = {
    ProcessIdentity: attrgetter("text_key"),
    **dict.fromkeys((WorkloadEvent, UsageRecord, UsageCorrection), attrgetter("subject")),
}
"""What gives the key of the text that a row names."""
_REMEMBERED = 10_000
_IN_ONE_QUERY = 500
_COLUMNS = ("text_key", "salt", "digest", "json")
_MOST_ASKED_FOR = 2000
"""More texts than this are not asked for by key: one walk through the table is faster."""


def text_key(salt: bytes, json: bytes) -> str:
    """The key of a text: SHA-256, hex, over the salt and the canonical JSON, UTF-8."""
    return hashlib.sha256(salt + json).hexdigest()


def digest_of(json: bytes) -> str:
    """The SHA-256, hex, by which a stored text is found: of its canonical JSON, UTF-8."""
    return hashlib.sha256(json).hexdigest()


class TextBook:
    """The texts of one open ledger: what is stored, and what waits for the rows that refer to it."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._keys: dict[str, str] = {}  # digest to stored key, bounded
        self._waiting: dict[str, tuple[str, str, str]] = {}  # key to salt, digest, JSON
        self._waiting_by_digest: dict[str, str] = {}

    def key_of(self, text: IdentityText, *, is_new: bool = False) -> str:
        """The key of a text: a stored one's, or a new one that the next append of a row naming it stores."""
        json = text.to_json()
        encoded = json.encode()
        digest = digest_of(encoded)
        if key := self._waiting_by_digest.get(digest):
            return key
        if not is_new:
            if (key := self._keys.get(digest)) and self._is_stored(key):
                return key
            cursor = bare_cursor(self._connection)  # a storm brings thousands of new texts in one look
            cursor.execute(f"SELECT min(text_key) FROM {IDENTITY_TEXT.name} WHERE digest = {MARK}", (digest,))  # noqa: S608 the schema's own name
            ((found,),) = cursor.fetchall()
            if found is not None:
                self._remember(digest, str(found))
                return str(found)
        salt = os.urandom(16)
        key = text_key(salt, encoded)
        self._waiting[key] = (salt.hex(), digest, json)
        self._waiting_by_digest[digest] = key
        return key

    def write(self, rows: Iterable[Row]) -> list[str]:
        """Store the waiting texts that these rows name; the caller holds the transaction. Returns their keys."""
        if not self._waiting:
            return []
        named = dict.fromkeys(key_of(row) for row in rows if (key_of := _KEYS.get(type(row))) is not None)
        keys = [key for key in named if key in self._waiting]
        if keys:
            texts = [(key, *self._waiting[key]) for key in keys]
            engine_of(self._connection).insert(bare_cursor(self._connection), IDENTITY_TEXT.name, _COLUMNS, texts)
        return keys

    def written(self, keys: Iterable[str]) -> None:
        """These keys are now committed."""
        for key in keys:
            _, digest, _ = self._waiting.pop(key)
            del self._waiting_by_digest[digest]
            self._remember(digest, key)

    def texts(self, keys: Iterable[str] | None = None) -> dict[str, IdentityText]:
        """Stored texts by key, all of them without ``keys``; what is not there or was forgotten is left out.

        Raises:
            Corrupt: ``ledger-damaged`` when a text is none that this program wrote.
        """
        statement = f"SELECT text_key, json FROM {IDENTITY_TEXT.name}"  # noqa: S608 the schema's own name
        cursor = bare_cursor(self._connection)
        wanted = [] if keys is None else sorted(set(keys))
        if keys is None or len(wanted) > _MOST_ASKED_FOR:
            chosen = set(wanted)
            cursor.execute(statement)
            return {key: read_text(key, json) for key, json in cursor.fetchall() if keys is None or key in chosen}
        found: dict[str, IdentityText] = {}
        for start in range(0, len(wanted), _IN_ONE_QUERY):
            part = wanted[start : start + _IN_ONE_QUERY]
            cursor.execute(f"{statement} WHERE text_key IN ({', '.join([MARK] * len(part))})", part)
            found.update((key, read_text(key, json)) for key, json in cursor.fetchall())
        return found

    def delete(self, keys: Iterable[str]) -> int:
        """Delete the text of these keys; the caller holds the transaction. Returns how many there were."""
        gone = 0
        for key in sorted(set(keys)):  # in one order, so that two who forget the same do not wait for each other
            gone += self._connection.execute(sa.delete(IDENTITY_TEXT).where(IDENTITY_TEXT.c.text_key == key)).rowcount
        if gone:
            engine_of(self._connection).rewrite_kept(self._connection, IDENTITY_TEXT)
        self._keys.clear()
        return gone

    def _is_stored(self, key: str) -> bool:
        """Whether a remembered text is still there: somebody else may have forgotten it."""
        cursor = bare_cursor(self._connection)
        cursor.execute(f"SELECT 1 FROM {IDENTITY_TEXT.name} WHERE text_key = {MARK}", (key,))  # noqa: S608 the schema's own name
        return bool(cursor.fetchall())

    def _remember(self, digest: str, key: str) -> None:
        if len(self._keys) >= _REMEMBERED:
            self._keys.clear()
        self._keys[digest] = key


def read_text(key: str, json: str) -> IdentityText:
    """The text that stands under a key.

    Raises:
        Corrupt: ``ledger-damaged`` when it is none that this program wrote.
    """
    # Each slot set past the frozen __init__: that is half the time in which the names of a month are read.
    try:
        values = loads(json)
        text = object.__new__(IdentityText)
        for name, set_slot in _SLOTS:
            set_slot(text, values.pop(name, ""))
    except (ValueError, TypeError, AttributeError) as error:
        raise _damaged(key, str(error)) from error
    if values:
        raise _damaged(key, f"no text has {', '.join(sorted(values))}")
    return text


def _damaged(key: str, why: str) -> Corrupt:
    return Corrupt("ledger-damaged", f"the identity text {key} is damaged: {why}", hint="gpuledger verify")
