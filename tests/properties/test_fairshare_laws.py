"""Laws of fair share, and a plain second program that must find the same: written from Slurm's pages, not from ours."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuledger.accounting.fairshare import standings
from gpuledger.model.fairshare import ShareLine
from gpuledger.model.shares import PARENT, Account, Algorithm, Place, Shares

COUNTS = st.sampled_from([0, 1, 1, 2, 3, 5, 40])
WITH_PARENT = st.sampled_from([1, 2, 3, 40, PARENT])
LAW = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def trees(draw: Any, *, parents: bool = False) -> Shares:
    """Up to three levels; names are unique."""
    counts = WITH_PARENT if parents else COUNTS
    number = 0

    def account(depth: int) -> Account:
        nonlocal number
        number += 1
        name = f"a{number}"
        users = {f"{name}u{n}": draw(counts) for n in range(draw(st.integers(0, 3)))}
        below = tuple(account(depth + 1) for _ in range(draw(st.integers(0, 2)) if depth < 2 else 0))
        shares = draw(counts) if users or below else draw(COUNTS)
        return Account(name=name, shares=shares, users=users, accounts=below)

    accounts = tuple(account(0) for _ in range(draw(st.integers(1, 3))))
    root = {f"r{n}": draw(COUNTS) for n in range(draw(st.integers(0, 2)))}
    return Shares(half_life_us=1, algorithm=draw(st.sampled_from(list(Algorithm))), accounts=accounts, users=root)


@st.composite
def cases(draw: Any, **words: Any) -> tuple[Shares, dict[Place, Fraction]]:
    """A tree and a usage for each place."""
    shares = draw(trees(**words))
    return shares, {place: Fraction(draw(st.integers(0, 6))) for place in places_of(shares)}


def places_of(shares: Shares) -> list[Place]:
    found = [Place(account="", user=user) for user in shares.users]
    for account in shares.every_account():
        found += [Place(account=account.name, user=user) for user in account.users]
        found += [Place(account=account.name)] if account.is_place else []
    return found


def ranked(lines: tuple[ShareLine, ...]) -> dict[Place, int]:
    return {line.place: line.rank for line in lines if isinstance(line.rank, int)}


def as_they_stand(lines: tuple[ShareLine, ...]) -> dict[Place, Any]:
    return {line.place: (line.rank, line.factor, line.level_fs, line.effective_usage) for line in lines}


@LAW
@given(cases())
def test_shares_of_a_level_add_up_to_one(case: tuple[Shares, dict[Place, Fraction]]) -> None:
    """Of the level in Fair Tree, of the account above in the classic formula; to none where all are 0."""
    shares, usage = case
    lines = standings(shares, usage)
    norm = {line.place.account: line.norm_shares for line in lines if not line.place.user}
    for above in {line.stands_below for line in lines}:
        level = [line for line in lines if line.stands_below == above]
        whole = norm[above] if above and shares.algorithm is Algorithm.CLASSIC else Fraction(1)
        assert sum(line.norm_shares for line in level) in (whole, 0)


@LAW
@given(cases(parents=True))
def test_ranks_are_a_permutation_with_ties(case: tuple[Shares, dict[Place, Fraction]]) -> None:
    """A rank is one more than the number of those before it, so equals leave the gap behind them."""
    shares, usage = case
    found = sorted(ranked(standings(shares, usage)).values())
    assert len(found) == len(places_of(shares))
    assert all(rank == 1 + sum(other < rank for other in found) for rank in found)


@LAW
@given(cases(parents=True), st.randoms(use_true_random=False))
def test_the_order_of_the_document_does_not_matter(case: tuple[Shares, dict[Place, Fraction]], random: Any) -> None:
    """Accounts and users shuffled on every level stand where they stood."""
    shares, usage = case

    def shuffled(accounts: tuple[Account, ...]) -> tuple[Account, ...]:
        mixed = [
            Account(name=each.name, shares=each.shares, users=mixed_users(each.users), accounts=shuffled(each.accounts))
            for each in accounts
        ]
        random.shuffle(mixed)
        return tuple(mixed)

    def mixed_users(users: Any) -> Any:
        names = list(users)
        random.shuffle(names)
        return {name: users[name] for name in names}

    other = Shares(
        half_life_us=1, algorithm=shares.algorithm, accounts=shuffled(shares.accounts), users=mixed_users(shares.users)
    )
    assert as_they_stand(standings(other, usage)) == as_they_stand(standings(shares, usage))


@LAW
@given(cases(parents=True), st.fractions(min_value=Fraction(1, 1000), max_value=1000))
def test_the_unit_of_usage_does_not_matter(case: tuple[Shares, dict[Place, Fraction]], times: Fraction) -> None:
    """Seconds or hours, ranks and factors are the same."""
    shares, usage = case
    scaled = {place: amount * times for place, amount in usage.items()}
    assert as_they_stand(standings(shares, scaled)) == as_they_stand(standings(shares, usage))


@LAW
@given(cases(), st.integers(1, 50), st.randoms(use_true_random=False))
def test_more_usage_never_raises_a_rank(case: tuple[Shares, dict[Place, Fraction]], more: int, random: Any) -> None:
    """Whoever it is, and wherever they stand."""
    shares, usage = case
    place = random.choice(places_of(shares)) if usage else None
    if place is None:
        return
    before = ranked(standings(shares, usage))[place]
    after = ranked(standings(shares, usage | {place: usage[place] + more}))[place]
    assert after >= before


@LAW
@given(cases())
def test_usage_of_the_tree_is_that_of_its_places(case: tuple[Shares, dict[Place, Fraction]]) -> None:
    """Nothing is lost on the way up, nothing is counted twice."""
    shares, usage = case
    lines = standings(shares, usage)
    assert sum(line.usage for line in lines if not line.depth) == sum(usage.values())


@LAW
@given(cases())
def test_a_second_program_finds_the_same(case: tuple[Shares, dict[Place, Fraction]]) -> None:
    """By recursion over groups of equals: factors to nine decimals, ranks exactly."""
    shares, usage = case
    lines = standings(shares, usage)
    mine = {line.place: line for line in lines}
    if shares.algorithm is Algorithm.CLASSIC:
        for place, factor in oracle_classic(shares, usage).items():
            assert abs(float(mine[place].factor) - factor) < 1e-9  # type: ignore[arg-type]
        return
    assert ranked(lines) == oracle_fair_tree(shares, usage)


def oracle_used(account: Account, usage: dict[Place, Fraction]) -> Fraction:
    total = usage.get(Place(account=account.name), Fraction(0))
    total += sum(usage.get(Place(account=account.name, user=user), Fraction(0)) for user in account.users)
    return total + sum(oracle_used(each, usage) for each in account.accounts)


def oracle_classic(shares: Shares, usage: dict[Place, Fraction]) -> dict[Place, float]:
    """UE = U + (UE of the account above - U) x shares/level; F = 2^(-UE/S)."""
    whole = sum(usage.values())
    found: dict[Place, float] = {}

    def walk(accounts: tuple[Account, ...], users: Any, above: str, norm: Fraction, effective: Fraction | None) -> None:
        entries: list[tuple[Place, int, Fraction, Account | None]] = [
            (Place(account=above, user=user), count, usage.get(Place(account=above, user=user), Fraction(0)), None)
            for user, count in users.items()
        ]
        entries += [(Place(account=each.name), each.shares, oracle_used(each, usage), each) for each in accounts]  # type: ignore[misc]
        level = sum(count for _, count, _, _ in entries)
        for place, count, used, account in entries:
            part = Fraction(count, level) if level else Fraction(0)
            own = used / whole if whole else Fraction(0)
            charged = own if effective is None else own + (effective - own) * part
            share = norm * part
            if place.user or (account and account.is_place):
                found[place] = 2.0 ** -float(charged / share) if share else 0.0
            if account:
                walk(account.accounts, account.users, account.name, share, charged)

    walk(shares.accounts, shares.users, "", Fraction(1), None)
    return found


def long_double(value: Fraction) -> Fraction:
    """The nearest number of 64 bits; ``round`` of a fraction takes a half to the even one."""
    scale = Fraction(1)
    while value * scale < 2**63:
        scale *= 2
    while value * scale >= 2**64:
        scale /= 2
    return round(value * scale) / scale


def oracle_fair_tree(shares: Shares, usage: dict[Place, Fraction]) -> dict[Place, int]:
    """Groups of equals, the best first: those of a level by LF, the children of equal accounts sorted together.

    Users who equal an account join the first group of what is below it.
    """

    def level(count: int, given: int, used: Fraction, above: Fraction) -> Fraction | float:
        if not count:
            return 0
        if not used:
            return math.inf
        return long_double(Fraction(count / given) / long_double(used / above))

    def children(account: Account) -> list[tuple[Fraction | float, Place | None, Account | None]]:
        return entries(account.accounts, account.users, account.name, oracle_used(account, usage))

    def entries(
        accounts: tuple[Account, ...], users: Any, above: str, total: Fraction
    ) -> list[tuple[Fraction | float, Place | None, Account | None]]:
        given: Any = sum(users.values()) + sum(each.shares for each in accounts)  # type: ignore[misc]
        found: list[tuple[Fraction | float, Place | None, Account | None]] = []
        for user, count in users.items():
            place = Place(account=above, user=user)
            found.append((level(count, given, usage[place], total), place, None))
        for each in accounts:
            lf = level(each.shares, given, oracle_used(each, usage), total)  # type: ignore[arg-type]
            found.append((lf, Place(account=each.name), None) if each.is_place else (lf, None, each))
        return found

    def groups(level_entries: list[tuple[Fraction | float, Place | None, Account | None]]) -> list[list[Place]]:
        found: list[list[Place]] = []
        for lf in sorted({lf for lf, _, _ in level_entries}, reverse=True):
            equal = [place for each, place, _ in level_entries if each == lf and place is not None]
            accounts = [account for each, _, account in level_entries if each == lf and account is not None]
            below = groups([entry for account in accounts for entry in children(account)])
            if equal and below:
                below[0] = equal + below[0]
            found += below or [equal]
        return [group for group in found if group]

    ranks: dict[Place, int] = {}
    for group in groups(entries(shares.accounts, shares.users, "", sum(usage.values(), Fraction(0)))):
        rank = len(ranks) + 1
        ranks |= dict.fromkeys(group, rank)
    return ranks
