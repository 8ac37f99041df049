"""What is remembered of an open ledger's workloads between two calls, so that one transition costs little.

In: the ledger, in the transaction that judges. Out: lives, owners' texts, who holds which device, the teams of the
policy in force; whatever another process may have changed meanwhile is read anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from gpuledger.ledger.archived import archived_until
from gpuledger.ledger.engine import others_wrote, own_changes
from gpuledger.ledger.store import Ledger
from gpuledger.model.identity import IdentityText
from gpuledger.model.rows import Row
from gpuledger.operations.in_force import InForce
from gpuledger.operations.lives import Life
from gpuledger.operations.occupancy import Occupancy
from gpuledger.operations.pools import Pools

_REMEMBERED = 20_000
"""Workloads and texts beyond which all are let go: a bound, not a tuning."""


class Memory:
    """What is remembered of an open ledger between two calls, and looked over again once anybody else has written."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._stamp = (-1, -1)
        self._others = -1
        self.occupancy = Occupancy(ledger)
        self.lives: dict[str, Life] = {}
        self.texts: dict[str, IdentityText] = {}
        self._in_force = InForce(ledger)
        self._knows_policy = False
        self._archived_us = -1
        self._teams = frozenset[str]()
        self._pools = Pools(ledger, self._in_force.policy)

    def catch_up(self) -> None:
        """Drop what may have changed; in the transaction, so that it holds until its rows are written."""
        self._others = others_wrote(self._ledger.connection)
        if (self._others, own_changes(self._ledger.connection)) != self._stamp:
            for name in self.occupancy.catch_up():
                self.lives.pop(name, None)
            news = self.occupancy.news
            if news is None or news.has_policy:
                self._knows_policy = False
            if news is None or news.has_archive:
                self._archived_us = -1
            self.texts.clear()  # some may be forgotten
        if len(self.lives) > _REMEMBERED or len(self.texts) > _REMEMBERED:
            self.lives.clear()
            self.texts.clear()

    def wrote(self, writer: str, added: Sequence[Row]) -> None:
        """What this process has just written is known."""
        if added:
            self.occupancy.wrote(writer, added)
        # the number of others as it was in the transaction: whoever wrote since is not missed
        self._stamp = (self._others, own_changes(self._ledger.connection))

    def archived_until(self) -> int:
        """Before which moment the events are archived; 0 where none are."""
        if self._archived_us < 0:
            self._archived_us = archived_until(self._ledger)
        return self._archived_us

    def teams_in_force(self, now_us: int) -> frozenset[str]:
        """The teams that the policy in force lists; empty where it lists none, or there is no policy."""
        self._look_at_policy(now_us)
        return self._teams

    def pools_in_force(self, now_us: int) -> Pools:
        """The rules of pools in the policy in force."""
        self._look_at_policy(now_us)
        return self._pools

    def _look_at_policy(self, now_us: int) -> None:
        if self._in_force.look(now_us, is_newest_known=self._knows_policy):
            self._teams = self._in_force.policy.teams
            self._pools = Pools(self._ledger, self._in_force.policy)
        self._knows_policy = True


_MEMORIES: WeakKeyDictionary[Ledger, Memory] = WeakKeyDictionary()


def memory_of(ledger: Ledger) -> Memory:
    """What is remembered of a ledger for as long as it is open."""
    memory = _MEMORIES.get(ledger)
    if memory is None:
        memory = _MEMORIES[ledger] = Memory(ledger)
    return memory


def forget_memory(ledger: Ledger) -> None:
    """Remember nothing of it: a call failed, and what it had worked out was not written."""
    _MEMORIES.pop(ledger, None)
