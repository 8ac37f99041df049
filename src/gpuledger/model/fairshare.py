"""The answer to "who is next": where each account and user stands, and in which order the waiting would be taken."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.model.reserved import NO_TRANSITION, ReservedGap
from gpuledger.model.shares import Algorithm, Place, ShareCount

INFINITE: Literal["inf"] = "inf"
"""The level of who has shares and has used nothing."""

LevelFs = Fraction | Literal["inf"] | Missing

NO_LEVEL = Missing("only Fair Tree has levels, and an account that takes its parent's shares has none")
NO_RANK = Missing("an account is no place in the line; its users are")
NO_FACTOR = Missing("Fair Tree ranks users, not accounts")
NOT_ADMITTED = Missing("nothing holds a place for it")
NOT_IN_TREE = Missing("the tree of shares has no place for it")
NOT_TOLD = Missing("no transition is known up to then, so nobody told who used what")
"""Of every figure that usage makes, where nothing was told by then: the zeros of the tree are no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareLine:
    """Where one account or user stands.

    Args:
        place: which.
        depth: accounts above it.
        shares: as the policy gives them.
        level_shares: shares of all that it competes with, its own included.
        stands_below: the account whose shares it divides: the nearest above that has shares of its own.
        norm_shares: of its level (Fair Tree), or of the whole (classic); with its parent's shares that of
            ``stands_below``.
        usage: decayed and weighted device-seconds of it and of all below it.
        own_usage: the part of an account's usage that belongs to none of its users.
        norm_usage: its part of the usage of the whole tree.
        effective_usage: its part of the usage of ``stands_below`` (Fair Tree), or what it is charged with (classic).
        level_fs: normalized shares by effective usage; :data:`INFINITE` for who has used nothing.
        factor: 0 to 1, the larger the sooner.
        rank: 1 is first in line; equals share a rank.
    """

    place: Place
    depth: int
    shares: ShareCount
    level_shares: int
    stands_below: str
    norm_shares: Fraction
    usage: Fraction
    own_usage: Fraction
    norm_usage: Fraction
    effective_usage: Fraction
    level_fs: LevelFs
    factor: Fraction | Missing
    rank: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPart:
    """What one class adds to somebody's usage.

    Args:
        class_name: which.
        weight: what a device-second of it counts.
        device_seconds: as reserved, not decayed.
        decayed: decayed, not weighted.
        usage: decayed and weighted.
    """

    class_name: str
    weight: Fraction
    device_seconds: Fraction
    decayed: Fraction
    usage: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """A usage that no place of the tree names.

    Args:
        team, project, user: who answers for it; ``-`` where nobody is named.
        account: the account that it is charged to all the same; empty for none, so that it counts nowhere.
        usage: decayed and weighted.
        why: in a clause.
    """

    team: str
    project: str
    user: str
    account: str
    usage: Fraction
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A workload that waits, in the order that fair share gives.

    Args:
        workload: its id.
        user, team, project: whose it is; ``-`` where nobody is named.
        place: its place in the tree; Missing where it has none.
        rank, factor: of that place.
        since_us: since when it waits.
        known_until_us: until when it is known to wait: now, or the end of what was told.
        requested_class: may be empty.
        pools: the pools that it can run in, as far as that is told.
        ref: of the event.
        admitted_until_us: until when ``admit`` holds its place; Missing where it was not admitted, or that has lapsed.
    """

    workload: str
    user: str
    team: str
    project: str
    place: Place | Missing
    rank: int | Missing
    factor: Fraction | Missing
    since_us: int
    known_until_us: int
    requested_class: str
    pools: tuple[str, ...]
    ref: str
    admitted_until_us: int | Missing = NOT_ADMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class FairShareReport:
    """Who used less of what they may, at one moment.

    Args:
        at_us: the moment.
        algorithm, half_life_us, class_weights: as the policy gives them.
        policy, policy_ref: version that is in effect, and its reference.
        since_us: the first hour that still counts.
        total: usage of the whole tree, decayed and weighted device-seconds.
        lines: the tree, each account before what is below it.
        outside: usage that no place names, largest first.
        waiting: in order.
        poolless: of the waiting, how many tell no pool, where one pool is asked for and they are left out.
        pool: the pool asked for; empty for all.
        gaps: what reservations do not tell, sized.
        told: whether any transition is known up to the moment.
        first_us: the first transition of the ledger, at any moment; Missing where none is known.
        problems: what was imperfect.
    """

    at_us: int
    algorithm: Algorithm
    half_life_us: int
    class_weights: tuple[tuple[str, Fraction], ...]
    policy: int
    policy_ref: str
    since_us: int
    total: Fraction
    lines: tuple[ShareLine, ...]
    outside: tuple[Outside, ...]
    waiting: tuple[Waiting, ...]
    poolless: int
    pool: str
    gaps: tuple[ReservedGap, ...]
    told: bool
    first_us: int | Missing = NO_TRANSITION
    problems: tuple[Problem, ...] = ()

    @property
    def ranked(self) -> int:
        """How many places have a rank."""
        return sum(not isinstance(line.rank, Missing) for line in self.lines)
