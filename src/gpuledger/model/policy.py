"""The policy: who answers for what. Values only; reading YAML is a source's work."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuledger.model.missing import Missing
from gpuledger.model.quotas import Quota
from gpuledger.model.rates import NO_RATES, Rates
from gpuledger.model.shares import NOT_GIVEN as NO_SHARES
from gpuledger.model.shares import Shares

MATCH_FIELDS: tuple[str, ...] = (
    "unit", "exe", "command", "user", "container", "image", "pod", "namespace", "cgroup", "slurm_account",
)  # fmt: skip
"""What a service rule may match on: fields of an identity's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRule:
    """Names a service. First match wins; every pattern must be found in its field.

    Args:
        service: the name it gives.
        team: the team that answers for it; empty: the user's team.
        project: may be empty.
        match: field of the identity text to compiled pattern, searched, not anchored.
    """

    service: str
    team: str = ""
    project: str = ""
    match: Mapping[str, re.Pattern[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserOwner:
    """A user's team and roles."""

    team: str = ""
    project: str = ""
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOwner:
    """A machine's owner, region and pool."""

    owner: str = ""
    region: str = ""
    pool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRule:
    """What holds in one pool of machines.

    Args:
        source: whose reservations count there; empty: anybody's.
        is_release_confirmed: whether devices are free only once the runtime, the kubelet or the agent has said so.
    """

    source: str = ""
    is_release_confirmed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One policy document, understood.

    Args:
        effective_from_us: from when owners hold, microseconds UTC. Service rules hold for all time.
        services: rules in order.
        users, namespaces, hosts: owners by name; a namespace maps to its team.
        pools: rules by pool.
        shares: the fair share; Missing where the document gives none.
        quotas: what users, teams and roles may hold at once, or use in a period; all that match apply.
        zone: time zone in which periods begin; empty: UTC.
        rates: what units cost; Missing where the document gives none.
    """

    effective_from_us: int
    services: tuple[ServiceRule, ...] = ()
    users: Mapping[str, UserOwner] = field(default_factory=dict)
    namespaces: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, HostOwner] = field(default_factory=dict)
    pools: Mapping[str, PoolRule] = field(default_factory=dict)
    quotas: tuple[Quota, ...] = ()
    zone: str = ""
    shares: Shares | Missing = NO_SHARES
    rates: Rates | Missing = NO_RATES

    @property
    def teams(self) -> frozenset[str]:
        """Every team that it names as an owner; with them the accounts of its shares, which can be teams too."""
        named = {rule.team for rule in self.services} | {user.team for user in self.users.values()}
        named |= set(self.namespaces.values())
        if named - {""} and not isinstance(self.shares, Missing):
            named |= {account.name for account in self.shares.every_account()}
        return frozenset(named) - {""}

    def pool_of(self, pool: str, machine: str) -> str:
        """The pool of a placement: the one it names, else that of its machine; empty where neither is known."""
        return pool or (self.hosts[machine].pool if machine in self.hosts else "")
