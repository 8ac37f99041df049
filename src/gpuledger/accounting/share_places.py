"""Where a usage belongs in the tree of shares: by the account it was charged to, and the user who made it.

The account is the project, if an account is called so (what Slurm calls an account comes in as the project), else the
team. Nothing is spread: what finds no place of its own stays with its account, or outside the tree, and is shown there.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from gpuledger.model.missing import Missing
from gpuledger.model.shares import Account, Place, Shares
from gpuledger.model.usage import NO_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Where a usage belongs.

    Args:
        place: whose rank it has; Missing where the tree names nobody.
        counts_at: the place that its usage is added to; Missing where it counts nowhere.
    """

    place: Place | Missing
    counts_at: Place | Missing


class Places:
    """The tree of one policy, by the names of its accounts and users."""

    def __init__(self, shares: Shares) -> None:
        self._root_users = frozenset(shares.users) - {NO_NAME}
        self._accounts = {account.name: account for account in shares.every_account() if account.name != NO_NAME}
        self._below = {name: tuple(_all_below(account)) for name, account in self._accounts.items()}
        self._accounts_of: dict[str, list[str]] = defaultdict(list)
        for name, account in self._accounts.items():
            for user in account.users.keys() - {NO_NAME}:
                self._accounts_of[user].append(name)
        self._known: dict[tuple[str, str, str], Charge] = {}

    def of(self, user: str, team: str, project: str) -> Charge:
        """Where the usage of a user belongs; ``-`` for what nobody names."""
        key = (user, team, project)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._find(user, team, project)
        return found

    def _find(self, user: str, team: str, project: str) -> Charge:
        name = next((each for each in (project, team) if each in self._accounts), "")
        if not name:
            return self._without_account(user, team, project)
        account = self._accounts[name]
        if user in account.users and user != NO_NAME:
            return _at(Place(account=name, user=user))
        if account.is_place:
            return _at(Place(account=name))
        homes = [each for each in self._accounts_of.get(user, ()) if each in self._below[name]]
        if len(homes) == 1:
            return _at(Place(account=homes[0], user=user))
        why = f"{name} lists {user} in {' and in '.join(homes)}" if homes else f"{name} does not list {user}"
        return Charge(place=Missing(why), counts_at=Place(account=name))

    def _without_account(self, user: str, team: str, project: str) -> Charge:
        if user in self._root_users:
            return _at(Place(account="", user=user))
        named = [each for each in (project, team) if each != NO_NAME]
        homes = self._accounts_of.get(user, [])
        if not named and len(homes) == 1:
            return _at(Place(account=homes[0], user=user))
        if named:
            why = f"no account is called {' or '.join(dict.fromkeys(named))}"
        elif homes:
            why = f"it names no account, and {user} stands in {' and in '.join(homes)}"
        else:
            why = "it names no account" if user == NO_NAME else f"it names no account, and no account lists {user}"
        return Charge(place=Missing(why), counts_at=Missing(why))


def _at(place: Place) -> Charge:
    return Charge(place=place, counts_at=place)


def _all_below(account: Account) -> list[str]:
    names: list[str] = []
    for each in account.accounts:
        names += [each.name, *_all_below(each)]
    return names
