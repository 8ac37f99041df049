"""Fair share by Slurm's published cases, by cases of our own, and where floating point decides."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from gpuledger.accounting.fairshare import standings
from gpuledger.model.durations import decimal
from gpuledger.model.fairshare import ShareLine
from gpuledger.model.rounding import nearest
from gpuledger.model.shares import PARENT, Account, Algorithm, Place, ShareCount, Shares

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "data" / "vectors"


def published(name: str) -> Any:
    """One of the published cases; a skip where they are absent, in CI a failure."""
    path = VECTORS / name
    if not path.exists():
        sentence = f"no {path}: the published cases are kept outside of the project"
        if os.environ.get("CI"):
            pytest.fail(sentence)
        pytest.skip(sentence)
    return json.loads(path.read_text(encoding="utf-8"))


def tree_of(case: Any, algorithm: Algorithm) -> tuple[Shares, dict[Place, Fraction]]:
    """The tree of a published case, whose accounts' usage is that of their users."""
    below: dict[int | None, list[Any]] = {}
    for node in case["tree"]:
        below.setdefault(node["parent"], []).append(node)
    usage: dict[Place, Fraction] = {}

    def users(above: int) -> dict[str, ShareCount]:
        found: dict[str, ShareCount] = {}
        for node in below.get(above, []):
            if node["user"] is not None:
                found[node["user"]] = node["shares"]
                account = "" if node["acct"] == "root" else node["acct"]
                usage[Place(account=account, user=node["user"])] = Fraction(node["usage"])
        return found

    def accounts(above: int) -> tuple[Account, ...]:
        return tuple(
            Account(name=node["acct"], shares=node["shares"], users=users(node["id"]), accounts=accounts(node["id"]))
            for node in below.get(above, [])
            if node["user"] is None
        )

    (root,) = below[None]
    made = Shares(half_life_us=1, algorithm=algorithm, accounts=accounts(root["id"]), users=users(root["id"]))
    return made, usage


def printed(value: object) -> str:
    """As ``sshare`` prints it; nothing for what is not known."""
    if isinstance(value, Fraction):
        return decimal(nearest(value * 1_000_000), 6)
    return value if isinstance(value, str) else ""


def as_sshare(line: ShareLine) -> dict[str, str]:
    return {
        "raw_shares": str(line.shares),
        "norm_shares": printed(line.norm_shares),
        "raw_usage": str(line.usage),
        "norm_usage": printed(line.norm_usage),
        "effective_usage": printed(line.effective_usage),
        "fairshare": printed(line.factor),
        "level_fs": printed(line.level_fs),
    }


@pytest.mark.parametrize(
    ("name", "algorithm", "rows"),
    [
        ("classic_fairshare_vectors.json", Algorithm.CLASSIC, 6),
        ("classic_fairshare_parent_vectors.json", Algorithm.CLASSIC, 12),
        ("fair_tree_vectors.json", Algorithm.FAIR_TREE, 35),
    ],
)
def test_slurms_published_cases_come_out(name: str, algorithm: Algorithm, rows: int) -> None:
    """Every figure of every row, to six decimals: parent's shares, no shares, ties, the tie of test 24.4."""
    case = published(name)
    shares, usage = tree_of(case, algorithm)
    lines = {(line.place.account or "root", line.place.user): as_sshare(line) for line in standings(shares, usage)}
    assert len(case["expected"]) == rows
    for row in case["expected"]:
        if (row["account"], row["user"]) == ("root", ""):
            continue
        found = lines[row["account"], row["user"]]
        for column, wanted in row.items():
            if column in found and wanted != "":
                assert found[column] == wanted, (row["account"], row["user"], column)


def test_published_factors_of_the_classic_formula() -> None:
    """The five users of Slurm's own page."""
    shares, usage = tree_of(published("classic_fairshare_vectors.json"), Algorithm.CLASSIC)
    factors = {line.place.user: printed(line.factor) for line in standings(shares, usage)}
    assert [factors[f"User{number}"] for number in range(1, 6)] == [
        "0.408479", "0.022097", "0.125000", "0.500000", "0.749154",
    ]  # fmt: skip


def account(name: str, shares: ShareCount, users: dict[str, ShareCount] | None = None, *below: Account) -> Account:
    return Account(name=name, shares=shares, users=users or {}, accounts=below)


def stand(algorithm: Algorithm, accounts: list[Account], used: dict[str, int], **words: Any) -> dict[str, ShareLine]:
    """Lines by the user, of an account by its name."""
    shares = Shares(half_life_us=1, algorithm=algorithm, accounts=tuple(accounts), **words)
    homes = dict.fromkeys(shares.users, "") | {
        user: each.name for each in shares.every_account() for user in each.users
    }
    usage = {
        Place(account=homes[name], user=name) if name in homes else Place(account=name): Fraction(amount)
        for name, amount in used.items()
    }
    return {line.place.user or line.place.account: line for line in standings(shares, usage)}


def ranks(lines: dict[str, ShareLine]) -> dict[str, Any]:
    return {name: line.rank for name, line in lines.items() if isinstance(line.rank, int)}


FAIR = Algorithm.FAIR_TREE
BOTH = pytest.mark.parametrize("algorithm", list(Algorithm))


@BOTH
def test_who_used_less_of_equal_shares_goes_first(algorithm: Algorithm) -> None:
    """And who used nothing before both."""
    lines = stand(algorithm, [account("a", 1, {"x": 1, "y": 1, "z": 1})], {"x": 5, "y": 3})
    assert ranks(lines) == {"z": 1, "y": 2, "x": 3}


def test_fair_tree_serves_the_account_first_and_then_its_users() -> None:
    """A light user of a heavy account stands behind a heavy user of a light one; the classic formula mixes them."""
    tree = [account("heavy", 1, {"light": 1, "glutton": 1}), account("small", 1, {"busy": 1})]
    used = {"light": 1, "glutton": 99, "busy": 20}
    assert ranks(stand(FAIR, tree, used)) == {"busy": 1, "light": 2, "glutton": 3}


@BOTH
def test_no_shares_is_last_even_without_usage(algorithm: Algorithm) -> None:
    """Zero is a word of the policy, not an absence."""
    lines = stand(algorithm, [account("a", 0, {"x": 1}), account("b", 1, {"y": 1, "z": 0})], {"y": 50})
    found = ranks(lines)
    assert found["y"] == 1
    assert found["x"] > 1
    assert found["z"] > 1
    assert lines["a"].norm_shares == 0


def test_nothing_used_is_an_infinite_level() -> None:
    """And all who used nothing share the first rank."""
    lines = stand(FAIR, [account("a", 3, {"x": 1, "y": 7})], {})
    assert [lines[name].level_fs for name in "axy"] == ["inf"] * 3
    assert [printed(lines[name].factor) for name in "xy"] == ["1.000000"] * 2
    assert lines["x"].effective_usage == 0


def test_equal_accounts_are_walked_as_one() -> None:
    """Their users stand among each other by level, so that nobody wins by a name."""
    tree = [account("a", 1, {"a1": 1, "a2": 1}), account("b", 1, {"b1": 1, "b2": 1})]
    lines = stand(FAIR, tree, {"a1": 1, "a2": 9, "b1": 4, "b2": 6})
    assert ranks(lines) == {"a1": 1, "b1": 2, "b2": 3, "a2": 4}


def test_a_user_equal_to_an_account_has_its_best_users_rank() -> None:
    """And the place that is left behind them stays empty."""
    inner = account("inner", 1, {"best": 3, "worst": 1})
    lines = stand(FAIR, [account("a", 1, {"u": 1}, inner)], {"u": 4, "best": 2, "worst": 2})
    assert ranks(lines) == {"u": 1, "best": 1, "worst": 3}
    assert printed(lines["worst"].factor) == "0.333333"


@BOTH
def test_an_account_without_users_is_one_place(algorithm: Algorithm) -> None:
    """All who are charged to it have its rank."""
    lines = stand(algorithm, [account("vision", 40, {"alice": 1}), account("nlp", 60)], {"alice": 10, "nlp": 90})
    assert ranks(lines) == {"alice": 1, "nlp": 2}
    assert lines["nlp"].own_usage == 90


@BOTH
def test_what_an_account_used_beside_its_users_counts_for_it_and_is_not_spread(algorithm: Algorithm) -> None:
    """The users' own usage is theirs alone."""
    lines = stand(algorithm, [account("a", 1, {"x": 1, "y": 1}), account("b", 1, {"z": 1})], {"x": 1, "a": 50, "z": 20})
    assert (lines["a"].usage, lines["a"].own_usage, lines["x"].usage, lines["y"].usage) == (51, 50, 1, 0)
    assert ranks(lines)["z"] < ranks(lines)["x"]


def test_root_users_compete_with_accounts() -> None:
    """As in Slurm, where every cluster's root has one."""
    lines = stand(FAIR, [account("a", 1, {"x": 1})], {"x": 5, "root": 1}, users={"root": 1})
    assert ranks(lines) == {"root": 1, "x": 2}
    assert lines["root"].norm_shares == Fraction(1, 2)


@BOTH
def test_a_users_parent_shares_read_the_parents_figures(algorithm: Algorithm) -> None:
    """Two of them are equal, whatever each has used."""
    tree = [account("a", 1, {"p": PARENT, "q": PARENT, "x": 1}), account("b", 1, {"y": 1})]
    lines = stand(algorithm, tree, {"p": 9, "q": 1, "y": 30})
    assert lines["p"].rank == lines["q"].rank
    assert lines["p"].norm_shares == lines["a"].norm_shares
    assert lines["x"].level_shares == 1


def test_who_stands_below_a_parent_account_competes_one_level_higher() -> None:
    """Its shares are counted among its parent's siblings."""
    inner = account("inner", PARENT, {"y": 30})
    lines = stand(FAIR, [account("a", 1, {"x": 10}, inner)], {"x": 1, "y": 3})
    assert (lines["y"].stands_below, lines["y"].level_shares, lines["y"].norm_shares) == ("a", 40, Fraction(3, 4))
    assert lines["y"].rank == lines["x"].rank == 1


def test_a_tie_of_fractions_that_slurms_division_breaks() -> None:
    """22/17 three times: the double of 40/170 is a little less than that of 50/170 by the same measure."""
    lines = stand(FAIR, [account("a", 1, {"p": 40, "q": 50, "r": 50, "s": 30})], {"p": 20, "q": 25, "r": 25, "s": 40})
    assert lines["q"].rank == lines["r"].rank == 1
    assert lines["p"].rank == 3
    exact = [lines[name].norm_shares / lines[name].effective_usage for name in "pqr"]
    assert exact == [Fraction(22, 17)] * 3


def stands(algorithm: Algorithm, accounts: list[Account], used: dict[tuple[str, str], int]) -> dict[str, ShareLine]:
    """As :func:`stand`, of users in several accounts: lines by ``user in account``, usage by (account, user)."""
    shares = Shares(half_life_us=1, algorithm=algorithm, accounts=tuple(accounts))
    usage = {Place(account=name, user=user): Fraction(amount) for (name, user), amount in used.items()}
    return {line.place.words: line for line in standings(shares, usage)}


def test_one_user_in_two_accounts_has_a_rank_in_each() -> None:
    """By hand: nlp's level is (1/2)/(20/60), vision's (1/2)/(40/60); what al used in one says nothing in the other."""
    tree = [account("vision", 1, {"al": 1, "bo": 1}), account("nlp", 1, {"al": 1, "cy": 1})]
    lines = stands(FAIR, tree, {("vision", "al"): 30, ("vision", "bo"): 10, ("nlp", "cy"): 20})
    assert ranks(lines) == {"al in nlp": 1, "cy in nlp": 2, "bo in vision": 3, "al in vision": 4}
    assert (lines["nlp"].level_fs, lines["al in nlp"].level_fs) == (Fraction(3, 2), "inf")
    classic = stands(Algorithm.CLASSIC, tree, {("vision", "al"): 30, ("vision", "bo"): 10, ("nlp", "cy"): 20})
    # UE of al in nlp: 0 + (20/60 - 0) x 1/2 = 1/6, of al in vision 30/60 + (40/60 - 30/60) x 1/2 = 7/12; S = 1/4 each
    assert printed(classic["al in nlp"].factor) == "0.629961"
    assert printed(classic["al in vision"].factor) == "0.198425"


@BOTH
def test_nobody_has_shares(algorithm: Algorithm) -> None:
    """Where all of a level have none they are equal, and nothing is divided by nothing."""
    lines = stand(algorithm, [account("a", 1, {"x": 0, "y": 0}), account("b", 1, {"z": 1})], {"x": 5})
    assert lines["x"].rank == lines["y"].rank == 2
    assert lines["z"].rank == 1
    assert [lines[name].norm_shares for name in "xy"] == [0, 0]
    assert (lines["x"].level_shares, lines["a"].norm_shares) == (0, Fraction(1, 2))


def test_accounts_without_shares_are_equal_and_walked_as_one() -> None:
    """Their users stand among each other by level: who has used nothing goes first."""
    lines = stand(FAIR, [account("a", 0, {"x": 1}), account("b", 0, {"y": 1}), account("c", 1, {"z": 1})], {"x": 5})
    assert ranks(lines) == {"z": 1, "y": 2, "x": 3}


@BOTH
def test_parents_below_parents_stand_with_the_nearest_that_has_shares(algorithm: Algorithm) -> None:
    """Three levels down, and still one of four shares of the account."""
    deep = account("deep", PARENT, {"z": 1})
    lines = stand(
        algorithm, [account("a", 1, {"x": 2}, account("inner", PARENT, {"y": 1}, deep))], {"x": 2, "y": 1, "z": 1}
    )
    assert [(lines[name].stands_below, lines[name].level_shares) for name in "xyz"] == [("a", 4)] * 3
    if algorithm is FAIR:  # each has used what it may
        assert ranks(lines) == {"x": 1, "y": 1, "z": 1}
        return
    # by hand, UE of a being 1: of x 2/4 + (1 - 2/4) x 2/4 = 3/4 by 2/4, of y and z 1/4 + (1 - 1/4) x 1/4 = 7/16 by 1/4
    assert [printed(lines[name].factor) for name in "xyz"] == ["0.353553", "0.297302", "0.297302"]
    assert ranks(lines) == {"x": 1, "y": 2, "z": 2}


def test_users_of_a_parent_account_at_the_top_stand_among_its_accounts() -> None:
    """Classic by hand: 1/8, 3/8 and 4/8 of the whole, each used in full: 2^-1."""
    tree = [account("a", PARENT, {"x": 1, "y": 3}), account("b", 4, {"z": 1})]
    lines = stand(Algorithm.CLASSIC, tree, {"x": 1, "y": 3, "z": 4})
    assert [lines[name].norm_shares for name in "xyz"] == [Fraction(1, 8), Fraction(3, 8), Fraction(1, 2)]
    assert [printed(lines[name].factor) for name in "xyz"] == ["0.500000"] * 3
    assert ranks(lines) == {"x": 1, "y": 1, "z": 1}


def test_nothing_used_at_all_is_the_whole_factor_for_whoever_has_shares() -> None:
    """Classic: 2^0, and 0 without shares."""
    lines = stand(Algorithm.CLASSIC, [account("a", 1, {"x": 1, "y": 0}), account("b", 0, {"z": 1})], {})
    assert [printed(lines[name].factor) for name in "xyz"] == ["1.000000", "0.000000", "0.000000"]
    assert ranks(lines) == {"x": 1, "y": 2, "z": 2}


def test_a_tie_goes_on_into_the_account_that_ties() -> None:
    """Fair Tree: u, and the best of both equal accounts below, share one rank; the gap is kept."""
    tree = [
        account("top", 1, {"u": 1}, account("p", 1, {"p1": 1, "p2": 1}), account("q", 1, {"q1": 1})),
    ]
    lines = stand(FAIR, tree, {"u": 4, "p1": 1, "p2": 3, "q1": 4})
    # levels of u, p, q: 1 each; below p and q, walked as one: p1 (1/2)/(1/4) = 2, q1 1, p2 (1/2)/(3/4)
    assert ranks(lines) == {"u": 1, "p1": 1, "q1": 3, "p2": 4}
    assert printed(lines["p2"].factor) == "0.250000"
