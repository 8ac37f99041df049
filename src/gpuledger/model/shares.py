"""Fair share in words: the tree of shares that a policy gives, and the place in it that a usage belongs to.

An account is a team, a project or a group of them; a user stands below the account that the usage is charged to. An
account that names nobody is one place, which all its users share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Literal

from gpuledger.model.missing import Missing

PARENT: Literal["parent"] = "parent"
"""Shares of a user or an account that has none of its own and stands with the account above it."""

ShareCount = int | Literal["parent"]

NOT_GIVEN = Missing("the policy gives no shares")
"""Why a policy has no fair share: it is never switched off by a word that was left out."""


class Algorithm(StrEnum):
    """How shares and usage become an order, by Slurm's names."""

    FAIR_TREE = "fair-tree"
    CLASSIC = "classic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account of the tree.

    Args:
        name: unique in the tree.
        shares: against its siblings; 0: last in line; ``parent``: its children stand beside its siblings.
        users: shares of its users by name.
        accounts: the accounts below it.
    """

    name: str
    shares: ShareCount
    users: Mapping[str, ShareCount] = field(default_factory=dict)
    accounts: tuple[Account, ...] = ()

    @property
    def is_place(self) -> bool:
        """Whether nobody stands below it, so that it is one place for all its users."""
        return not self.users and not self.accounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The fair share of a policy.

    Args:
        half_life_us: after this long a usage counts half, microseconds.
        algorithm: how an order is made.
        class_weights: patterns of classes (``H100*``) with what a device-second of them counts, in the order of the
            document; the first that fits counts, and 1 where none does.
        accounts: the accounts below the root.
        users: shares of users who stand directly below the root, in no account.
    """

    half_life_us: int
    algorithm: Algorithm = Algorithm.FAIR_TREE
    class_weights: tuple[tuple[str, Fraction], ...] = ()
    accounts: tuple[Account, ...] = ()
    users: Mapping[str, ShareCount] = field(default_factory=dict)

    def every_account(self) -> Iterator[Account]:
        """All accounts, each before those below it."""
        waiting = list(reversed(self.accounts))
        while waiting:
            account = waiting.pop()
            yield account
            waiting.extend(reversed(account.accounts))


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """A place in the tree: an account, or a user in one.

    Args:
        account: its name; empty for the root.
        user: login name; empty for the account itself.
    """

    account: str
    user: str = ""

    @property
    def words(self) -> str:
        """For people: ``alice in vision``, ``vision``, ``the root``."""
        if not self.user:
            return self.account or "the root"
        return f"{self.user} in {self.account}" if self.account else self.user
