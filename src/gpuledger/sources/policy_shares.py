"""The ``shares`` of a policy document: half-life, algorithm, weights of classes, and the tree, with line numbers.

In: the mapping under ``shares``. Out: :class:`~gpuledger.model.shares.Shares`. Nothing has a default that could
switch fair share off unseen: a half-life that is not given is an error.
"""

from __future__ import annotations

import re
from fractions import Fraction

from gpuledger.model.moments import DAY_US, HOUR_US, MINUTE_US
from gpuledger.model.shares import PARENT, Account, Algorithm, ShareCount, Shares
from gpuledger.sources.yaml_nodes import MappingReader

MOST_SHARES = 2**31 - 1
"""Slurm keeps shares in 32 bits, two values of which mean something else."""

MOST_WEIGHT = 1_000_000

LONGEST_HALF_LIFE_US = 36_525 * DAY_US
"""A hundred years: as good as no decay, and still a number."""

_SPAN = re.compile(r"([1-9]\d{0,8})([mhdw])")
_UNITS_US = {"m": MINUTE_US, "h": HOUR_US, "d": DAY_US, "w": 7 * DAY_US}
_HALF_LIFE_HINT = (
    "write half_life: 7d, which is Slurm's default; a very long one (3650d) hardly decays, and none is off"
)
_WEIGHT = re.compile(r"\d{1,9}(?:\.\d{1,9}|/[1-9]\d{0,8})?")


def parse_shares(shares: MappingReader) -> Shares:
    """Understand the mapping under ``shares``.

    Raises:
        BadInput: ``policy-missing-key``, ``policy-unknown-key`` or ``policy-bad-value``; each names the line.
    """
    shares.refuse_unknown(("half_life", "algorithm", "class_weights", "tree", "users"))
    tree = shares.mapping("tree", required=True)
    assert tree is not None
    seen: set[str] = set()
    found = Shares(
        half_life_us=_half_life(shares),
        algorithm=_algorithm(shares),
        class_weights=_weights(shares),
        accounts=tuple(_account(tree, name, entry, seen) for name, entry in tree.entries()),
        users=_users(shares),
    )
    for user, count in found.users.items():
        if count == PARENT:
            message = f"{user!r} stands in no account whose shares it could take"
            raise shares.error("policy-bad-value", message, "users", "give it shares of its own")
    if not found.accounts and not found.users:
        raise shares.error("policy-bad-value", "an empty `tree` gives nobody a share", "tree", _TREE_HINT)
    return found


_TREE_HINT = "write tree: {TEAM: {shares: 40, users: {NAME: 1}}}"


def _half_life(shares: MappingReader) -> int:
    if "half_life" not in shares.names:
        message = "`shares` lacks `half_life`: how fast usage is forgotten is for the policy to say"
        raise shares.error("policy-missing-key", message, "half_life", _HALF_LIFE_HINT)
    written = shares.written("half_life", _HALF_LIFE_HINT)
    span = _SPAN.fullmatch(written.strip())
    if span is None:
        message = f"{written!r} is not a half-life: a number above 0 and m, h, d or w"
        raise shares.error("policy-bad-value", message, "half_life", _HALF_LIFE_HINT)
    half_life_us = int(span[1]) * _UNITS_US[span[2]]
    if half_life_us > LONGEST_HALF_LIFE_US:
        message = f"a half-life of {written} is longer than a hundred years"
        raise shares.error("policy-bad-value", message, "half_life", _HALF_LIFE_HINT)
    return half_life_us


def _algorithm(shares: MappingReader) -> Algorithm:
    if "algorithm" not in shares.names:
        return Algorithm.FAIR_TREE
    written = shares.written("algorithm")
    try:
        return Algorithm(written)
    except ValueError:
        hint = f"one of {', '.join(Algorithm)}; `parent` is no algorithm but the shares of a user or an account"
        raise shares.error("policy-bad-value", f"{written!r} is no algorithm", "algorithm", hint) from None


def _weights(shares: MappingReader) -> tuple[tuple[str, Fraction], ...]:
    weights = shares.mapping("class_weights")
    if weights is None:
        return ()
    found: list[tuple[str, Fraction]] = []
    for pattern in weights.names:
        written = weights.written(pattern, f'class_weights: {{"{pattern}": 2}}')
        weight = Fraction(written) if _WEIGHT.fullmatch(written) else Fraction(-1)
        if not 0 <= weight <= MOST_WEIGHT:
            message = f"{written!r} is no weight: 0 or more, as 2, 0.5 or 1/3"
            raise weights.error("policy-bad-value", message, pattern, f'class_weights: {{"{pattern}": 2}}')
        found.append((pattern, weight))
    return tuple(found)


def _account(above: MappingReader, name: str, entry: MappingReader, seen: set[str]) -> Account:
    entry.refuse_unknown(("shares", "users", "accounts"))
    if name in seen:
        message = f"the account {name!r} stands twice in the tree; a usage could not tell which is meant"
        raise above.error("policy-duplicate-key", message, name, "give each account a name of its own")
    seen.add(name)
    if "shares" not in entry.names:
        raise entry.error("policy-missing-key", f"the account {name!r} lacks `shares`", "shares", "add shares: 1")
    below = entry.mapping("accounts")
    account = Account(
        name=name,
        shares=_count(entry, "shares"),
        users=_users(entry),
        accounts=tuple(_account(below, each, node, seen) for each, node in below.entries()) if below else (),
    )
    if account.shares == PARENT and account.is_place:
        message = f"the account {name!r} takes its parent's shares, and names nobody who could use them"
        raise entry.error("policy-bad-value", message, "shares", "name its users, or give it shares of its own")
    return account


def _users(entry: MappingReader) -> dict[str, ShareCount]:
    users = entry.mapping("users")
    if users is None:
        return {}
    for name in users.names:
        if not name.strip() or not name.isprintable():
            raise users.error("policy-bad-value", f"{name!r} is not a name", name, "names are printable text")
    return {name: _count(users, name) for name in users.names}


def _count(mapping: MappingReader, key: str) -> ShareCount:
    written = mapping.written(key, f"write {key}: 1")
    if written == PARENT:
        return PARENT
    if not re.fullmatch(r"\d{1,10}", written) or int(written) > MOST_SHARES:
        message = f"{written!r} is no number of shares: a whole number from 0 on, or `parent`"
        raise mapping.error("policy-bad-value", message, key, f"write {key}: 1")
    return int(written)
