"""The policy in force, for whoever asks many times a second: understood once, looked over when another is applied."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from gpuledger.accounting.owners import Naming
from gpuledger.ledger import workloads
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.texts import read_text
from gpuledger.model.identity import IdentityText
from gpuledger.model.policy import Policy
from gpuledger.operations.usage import policies

_REMEMBERED = 200_000
"""Texts beyond which all are let go: a bound, not a tuning."""


class InForce:
    """The policy that holds at a moment, and who answers for a subject by it.

    Args:
        ledger: open in either mode.

    Attributes:
        policy: the one in force at the last look; an empty one where none is.
        number: its version; 0 where none is.
        zone: where periods begin.
        texts: identity texts, each that was asked for.
        naming: resolves their subjects.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._newest = -1
        self._versions: list[tuple[int, Policy]] = []
        self.texts: dict[str, IdentityText] = {}
        self.policy = Policy(effective_from_us=0)
        self.number = -1
        self.zone: tzinfo = UTC
        self.naming = Naming(texts=self.texts)

    def look(self, now_us: int, *, is_newest_known: bool = False) -> bool:
        """Look at what is in force now. Returns whether owners may have changed since the last look.

        Args:
            now_us: the moment.
            is_newest_known: no policy was applied since the last look.
        """
        is_newest_known = is_newest_known and self._newest >= 0
        newest = self._newest if is_newest_known else workloads.newest_policy(self._ledger.connection)
        if newest != self._newest:
            versions = policies(self._ledger, now_us=now_us)
            self._newest = newest if len(versions) == newest else -1  # one may be applied ahead of this clock
            if versions != self._versions:
                self._versions = versions
                self.naming = Naming(texts=self.texts, versions=versions)
                self.number = -1
        number = max((n for n, (since_us, _) in enumerate(self._versions, 1) if since_us <= now_us), default=0)
        if number == self.number:
            return False
        self.number = number
        self.policy = self._versions[number - 1][1] if number else Policy(effective_from_us=0)
        self.zone = ZoneInfo(self.policy.zone) if self.policy.zone else UTC
        return True

    @property
    def changes_us(self) -> list[int]:
        """The moments at which owners can change, sorted."""
        return sorted({since_us for since_us, _ in self._versions})

    def roles(self, user: str) -> tuple[str, ...]:
        """The roles that the policy gives a user."""
        known = self.policy.users.get(user)
        return known.roles if known else ()

    def need(self, subjects: Collection[str]) -> None:
        """Make the texts of these subjects known."""
        unread = {key for key in subjects if key and key not in self.texts}
        if unread:
            if len(self.texts) > _REMEMBERED:
                self.texts.clear()
                unread = {key for key in subjects if key}
            self.texts.update(self._ledger.texts(unread))

    def learn(self, stored: Mapping[str, str]) -> None:
        """Make known what came with something else: the JSON of texts, by their keys."""
        self.texts.update({key: read_text(key, json) for key, json in stored.items() if key not in self.texts})
