"""Identity text: kept apart from the rows, under salted keys, so that it can be forgotten and the seals stand.

In: texts as read. Out: keys for rows, and texts for keys. A text is written in the transaction of the
first rows that refer to it. Two processes that meet the same text at the same moment may store it twice,
under two keys; both are right.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable

import sqlalchemy as sa

from gpuledger.errors import Corrupt
from gpuledger.ledger.schema import IDENTITY_TEXT
from gpuledger.model.identity import IdentityText
from gpuledger.model.rows import ProcessIdentity, Row, UsageCorrection, UsageRecord

_REMEMBERED = 10_000
_IN_ONE_QUERY = 500
_MOST_ASKED_FOR = 2000
"""More texts than this are not asked for by key: one walk through the table is faster."""


def text_key(salt: str, json: str) -> str:
    """The key of a text: SHA-256, hex, over the salt's bytes and the canonical JSON."""
    return hashlib.sha256(bytes.fromhex(salt) + json.encode()).hexdigest()


def digest_of(json: str) -> str:
    """The SHA-256, hex, by which a stored text is found."""
    return hashlib.sha256(json.encode()).hexdigest()


class TextBook:
    """The texts of one open ledger: what is stored, and what waits for the rows that refer to it."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._keys: dict[str, str] = {}  # digest to stored key, bounded
        self._waiting: dict[str, tuple[str, str, str]] = {}  # key to salt, digest, JSON
        self._waiting_by_digest: dict[str, str] = {}

    def key_of(self, text: IdentityText) -> str:
        """The key of a text: a stored one's, or a new one that the next append of a row naming it stores."""
        json = text.to_json()
        digest = digest_of(json)
        if key := self._waiting_by_digest.get(digest) or self._keys.get(digest):
            return key
        columns = IDENTITY_TEXT.c
        found = self._connection.execute(
            sa.select(sa.func.min(columns.text_key)).where(columns.digest == digest)
        ).scalar_one()
        if found is not None:
            self._remember(digest, str(found))
            return str(found)
        salt = secrets.token_hex(16)
        key = text_key(salt, json)
        self._waiting[key] = (salt, digest, json)
        self._waiting_by_digest[digest] = key
        return key

    def write(self, rows: Iterable[Row]) -> list[str]:
        """Store the waiting texts that these rows name; the caller holds the transaction. Returns their keys."""
        if not self._waiting:
            return []
        named = dict.fromkeys(_key_named(row) for row in rows)
        keys = [key for key in named if key in self._waiting]
        if keys:
            names = ("text_key", "salt", "digest", "json")
            self._connection.execute(
                sa.insert(IDENTITY_TEXT),
                [dict(zip(names, (key, *self._waiting[key]), strict=True)) for key in keys],
            )
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
        columns = (IDENTITY_TEXT.c.text_key, IDENTITY_TEXT.c.json)
        wanted = [] if keys is None else sorted(set(keys))
        if keys is None or len(wanted) > _MOST_ASKED_FOR:
            chosen = set(wanted)
            found = self._connection.execute(sa.select(*columns))
            rows = [(key, json) for key, json in found if keys is None or key in chosen]
        else:
            rows = []
            for start in range(0, len(wanted), _IN_ONE_QUERY):
                part = wanted[start : start + _IN_ONE_QUERY]
                found = self._connection.execute(sa.select(*columns).where(columns[0].in_(part)))
                rows.extend(tuple(row) for row in found)
        return {key: _read(key, json) for key, json in rows}

    def delete(self, keys: Iterable[str]) -> int:
        """Delete the text of these keys; the caller holds the transaction. Returns how many there were."""
        gone = 0
        for key in set(keys):
            gone += self._connection.execute(sa.delete(IDENTITY_TEXT).where(IDENTITY_TEXT.c.text_key == key)).rowcount
        self._keys.clear()
        return gone

    def _remember(self, digest: str, key: str) -> None:
        if len(self._keys) >= _REMEMBERED:
            self._keys.clear()
        self._keys[digest] = key


def _read(key: str, json: str) -> IdentityText:
    try:
        return IdentityText.from_json(json)
    except (ValueError, TypeError, AttributeError) as error:
        raise Corrupt(
            "ledger-damaged", f"the identity text {key} is damaged: {error}", hint="gpuledger verify"
        ) from error


def _key_named(row: Row) -> str:
    if isinstance(row, ProcessIdentity):
        return row.text_key
    if isinstance(row, UsageRecord | UsageCorrection):
        return row.subject
    return ""
