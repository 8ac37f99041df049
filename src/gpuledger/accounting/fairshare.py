"""Fair share: from shares and usage to an order, as Slurm's classic and Fair Tree algorithms make it.

In: the tree of shares, and the usage of each place. Out: a :class:`ShareLine` for each account and user. Pure; amounts
are exact until the last step. Where Slurm's floating point decides a tie, its bits decide here (decision 0015).

Who takes ``parent`` shares competes with nobody: a user reads the parent's figures, and what stands below such an
account stands beside the account's siblings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import lcm

from gpuledger.accounting.decay import ONE, half_power
from gpuledger.accounting.slurm_arithmetic import (
    DOUBLE,
    LONG_DOUBLE,
    ZERO,
    Quotient,
    divide,
    quotient,
    value_of,
)
from gpuledger.accounting.slurm_arithmetic import INFINITE as HIGHEST
from gpuledger.model.fairshare import INFINITE, NO_FACTOR, NO_LEVEL, NO_RANK, LevelFs, ShareLine
from gpuledger.model.shares import PARENT, Account, Algorithm, Place, ShareCount, Shares

_NONE = Fraction(0)
_WHOLE = Fraction(1)


class _Node:
    """An account or a user while the tree is worked out. Usage in whole units of one common fraction."""

    __slots__ = (
        "above", "below", "depth", "divides", "effective", "factor", "is_line", "level", "level_shares", "norm", "own",
        "place", "rank", "shares", "stands_below", "usage",
    )  # fmt: skip

    def __init__(self, place: Place, shares: ShareCount, above: _Node | None, *, is_line: bool) -> None:
        self.place = place
        self.shares = shares
        self.above = above
        self.is_line = is_line
        self.depth: int = above.depth + 1 if above else -1
        self.below: list[_Node] = []
        self.divides: list[_Node] = []
        self.own = self.usage = self.level_shares = 0
        self.norm = _WHOLE
        self.effective = _NONE
        self.level: Quotient | None = None
        self.factor: Fraction | None = None
        self.rank = 0
        self.stands_below = self
        if above:
            above.below.append(self)
            below = above
            while below.shares == PARENT and below.above:
                below = below.above
            self.stands_below = below
            below.divides.append(self)


def standings(shares: Shares, usage: Mapping[Place, Fraction]) -> tuple[ShareLine, ...]:
    """Where everybody stands, each account before what is below it.

    Args:
        shares: the tree.
        usage: decayed and weighted, by place, 0 or more; of an account what belongs to none of its users.
    """
    nodes = _nodes(shares)
    unit = lcm(*(amount.denominator for amount in usage.values()))
    for node in nodes:
        amount = usage.get(node.place, _NONE)
        node.own = node.usage = max(0, amount.numerator * (unit // amount.denominator))
    for node in reversed(nodes):
        if node.above:
            node.above.usage += node.usage
    for node in nodes:
        given = sum(each.shares for each in node.divides if isinstance(each.shares, int))
        for each in node.divides:
            each.level_shares = given
    root, *rest = nodes
    if shares.algorithm is Algorithm.FAIR_TREE:
        _fair_tree(root, rest)
    else:
        _classic(root, rest)
    return tuple(_line(node, root, unit) for node in rest)


def _nodes(shares: Shares) -> list[_Node]:
    """The root, then all others, each after what it stands below."""
    root = _Node(Place(account=""), 1, None, is_line=False)
    found = [root]
    _users(found, root, shares.users, "")
    waiting: list[tuple[Account, _Node]] = [(account, root) for account in reversed(shares.accounts)]
    while waiting:
        account, above = waiting.pop()
        node = _Node(Place(account=account.name), account.shares, above, is_line=account.is_place)
        found.append(node)
        _users(found, node, account.users, account.name)
        waiting.extend((each, node) for each in reversed(account.accounts))
    return found


def _users(found: list[_Node], above: _Node, users: Mapping[str, ShareCount], account: str) -> None:
    for user, shares in users.items():
        found.append(_Node(Place(account=account, user=user), shares, above, is_line=True))


def _part(number: int, of: int) -> Fraction:
    return Fraction(number, of) if of else _NONE


def _classic(root: _Node, rest: Iterable[_Node]) -> None:
    """F = 2^(-UE/S), with UE = U + (UE of the parent - U) x shares/level, and UE = U at the top."""
    lines: list[tuple[int, Fraction, _Node]] = []
    for node in rest:
        below = node.stands_below
        used = _part(node.usage, root.usage)
        if isinstance(node.shares, int):
            part = _part(node.shares, node.level_shares)
            node.norm = below.norm * part
            node.effective = used if below is root else used + (below.effective - used) * part
        else:
            node.norm = below.norm
            node.effective = used if below is root else below.effective
        exponent = node.effective / Fraction(node.norm) if node.norm else None
        node.factor = _NONE if exponent is None else Fraction(half_power(exponent), ONE)
        if node.is_line:
            lines.append((1, _NONE, node) if exponent is None else (0, exponent, node))
    lines.sort(key=lambda line: line[:2])
    before: tuple[int, Fraction] | None = None
    for place, (has_none, exponent, node) in enumerate(lines, 1):
        node.rank = lines[place - 2][2].rank if before == (has_none, exponent) else place
        before = (has_none, exponent)


def _fair_tree(root: _Node, rest: list[_Node]) -> None:
    """Levels first: LF = S/U within what a node stands below; then the tree walked from the highest level down."""
    for node in rest:
        below = node.stands_below
        node.norm = _part(node.shares, node.level_shares) if isinstance(node.shares, int) else below.norm
        node.effective = _part(node.usage, below.usage)
        node.level = _level(node)
    _walk(root.divides, _Ranks(sum(node.is_line for node in rest)), is_tied=False)


def _level(node: _Node) -> Quotient | None:
    """S is a ``double`` there, U and LF are ``long double``. An account with its parent's shares has no level."""
    if not isinstance(node.shares, int):
        return HIGHEST if node.place.user else None
    if not node.shares:
        return ZERO
    if not node.usage:
        return HIGHEST
    norm = quotient(node.shares, node.level_shares, DOUBLE)
    return divide(norm, quotient(node.usage, node.stands_below.usage, LONG_DOUBLE), LONG_DOUBLE)


class _Ranks:
    """Gives ranks from the first place down; equals share one, and those after them leave the gap."""

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self._next = self._last = 1

    def give(self, node: _Node, *, is_tied: bool) -> None:
        if not is_tied:
            self._last = self._next
        node.rank = self._last
        node.factor = Fraction(self._lines - self._last + 1, self._lines)
        self._next += 1


def _walk(siblings: Iterable[_Node], ranks: _Ranks, *, is_tied: bool) -> None:
    """Give ranks to all below, from the highest level to the lowest.

    Among equals users come first; they share a rank, and an account equal to them begins with it. Equal accounts are
    walked as one, their children among each other by level.
    """
    ordered = sorted(
        ((node.level, node) for node in siblings if node.level is not None),
        key=lambda pair: (-pair[0][0], -pair[0][1], not pair[1].is_line),
    )
    before: Quotient | None = None
    merged: list[_Node] = []
    starts_tied = False
    for place, (level, node) in enumerate(ordered):
        ties = is_tied if place == 0 else level == before
        before = level
        if node.is_line:
            ranks.give(node, is_tied=ties)
            continue
        if not merged:
            starts_tied = ties
        merged += node.divides
        following = ordered[place + 1] if place + 1 < len(ordered) else None
        if following is None or following[0] != level:
            _walk(merged, ranks, is_tied=starts_tied)
            merged = []


def _line(node: _Node, root: _Node, unit: int) -> ShareLine:
    level: LevelFs = NO_LEVEL
    if node.level is not None and node.shares != PARENT:
        level = INFINITE if node.level == HIGHEST else _NONE if node.level == ZERO else value_of(node.level)
    return ShareLine(
        place=node.place,
        depth=node.depth,
        shares=node.shares,
        level_shares=node.level_shares,
        stands_below=node.stands_below.place.account,
        norm_shares=node.norm,
        usage=Fraction(node.usage, unit),
        own_usage=_NONE if node.place.user else Fraction(node.own, unit),
        norm_usage=_part(node.usage, root.usage),
        effective_usage=node.effective,
        level_fs=level,
        factor=NO_FACTOR if node.factor is None else node.factor,
        rank=node.rank if node.is_line else NO_RANK,
    )
