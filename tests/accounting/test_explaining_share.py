"""Every factor with its numbers, as a person would check them by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from gpuledger.accounting.answering import Answering
from gpuledger.accounting.decay import ONE, Decay
from gpuledger.accounting.explaining_share import _below, _listed, explain_share
from gpuledger.accounting.fairshare import standings
from gpuledger.accounting.share_places import Places
from gpuledger.accounting.share_usage import weigh
from gpuledger.model.explanation import Explanation
from gpuledger.model.fairshare import NOT_TOLD, FairShareReport
from gpuledger.model.lifecycle import Placement
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, HOUR_US, parse_moment
from gpuledger.model.problem import Problem
from gpuledger.model.reasons import ReservedReason
from gpuledger.model.reserved import PLACED, ReservedGap
from gpuledger.model.shares import PARENT, Account, Algorithm, Place, Shares
from gpuledger.model.workload_rows import PlacementRow

AT_US = parse_moment("2026-11-29T12:30:00Z", now_us=0)
H100 = PlacementRow.of(Placement(class_name="H100-80GB", count=2))
TREE = Shares(
    half_life_us=7 * DAY_US,
    class_weights=(("H100*", Fraction(2)),),
    accounts=(
        Account(name="vision", shares=40, users={"alice": 1, "bob": 1, "guest": PARENT}),
        Account(name="nlp", shares=60),
    ),
)


def explain(
    name: str, *, algorithm: Algorithm = Algorithm.FAIR_TREE, gaps: tuple[ReservedGap, ...] = (), told: bool = True,
    weight: str = "2", problems: tuple[Problem, ...] = (),
):  # fmt: skip
    shares = replace(TREE, algorithm=algorithm, class_weights=(("H100*", Fraction(weight)),))
    who = {"al": ("alice", "vision"), "ca": ("carol", "nlp"), "dan": ("dan", "vision"), "eve": ("eve", "bio")}
    values = {key: {"user": user, "team": team} for key, (user, team) in who.items()}
    sums = {
        (key, PLACED + H100.placement, 0): (2 * seconds, seconds * ONE)
        for key, seconds in (("al", 900), ("ca", 300), ("dan", 100), ("eve", 10))
    }
    usage = weigh(
        sums, placements={H100.placement: H100}, answering=Answering(values=values, versions=[]),
        places=Places(shares), weights=shares.class_weights,
    )  # fmt: skip
    lines = standings(shares, usage.by_place)
    decay = Decay(half_life_us=shares.half_life_us, at_us=AT_US)
    report = FairShareReport(
        at_us=AT_US, algorithm=algorithm, half_life_us=shares.half_life_us, class_weights=shares.class_weights,
        policy=3, policy_ref="policy:box/3", since_us=decay.first_us,
        total=sum((line.usage for line in lines if not line.depth), Fraction(0)), lines=lines, outside=usage.outside,
        waiting=(), poolless=0, pool="", gaps=gaps, told=told, problems=problems,
    )  # fmt: skip
    return explain_share(report, shares=shares, usage=usage, decay=decay, name=name)


def said(node: Explanation) -> str:
    """All of a tree as text."""

    def lines(each: Explanation) -> Iterator[str]:
        yield " ".join([each.title, *each.refs, *(f"{name}={value}" for name, value in each.figures)])
        for child in each.children:
            yield from lines(child)

    return "\n".join(lines(node))


def test_fair_tree_is_explained_level_by_level() -> None:
    """Sums, formula and numbers; the classes with their weights; decay; where the policy stands."""
    text = said(explain("alice"))
    for part in (
        "fair share of alice at 2026-11-29T12:30:00Z, by Fair Tree policy:box/3",
        "alice in vision rank=4 of 4 factor=0.250000",
        "class H100-80GB device_seconds_reserved=3600.000000 an_hour_counts_on_average=0.500000",
        "decayed_to=1800.000000 each_counts=2 usage=3600.000000",
        "vision among those below the root S=40/100 = 0.400000 U=4000.000000/5200.000000 = 0.769231 level_S/U=0.520000",
        "alice in vision among those below vision S=1/2 = 0.500000 U=3600.000000/4000.000000 = 0.900000",
        "3 places before it; factor (4 - 4 + 1)/4 = 0.250000",
        "decay: half after 7 d, by whole hours; an hour now counts whole an_hour_ago_counts=0.995883",
        "class weights: H100* 2; every other class 1",
        "nothing is known to be missing",
        "gpuledger explain user:alice --meter gpu.reserved --until 2026-11-29T12:30:00Z",
    ):
        assert part in text, part


def test_the_classic_formula_is_explained_with_what_is_charged_from_above() -> None:
    """UE and S down to the power of two."""
    text = said(explain("bob", algorithm=Algorithm.CLASSIC))
    for part in (
        "S=40/100 = 0.400000 U=4000.000000/5200.000000 = 0.769231 UE=U = 0.769231, at the top",
        "S=0.400000 x 1/2 = 0.200000",
        "UE=0.000000 + (0.769231 - 0.000000) x 1/2 = 0.384615",
        "factor 2^(-UE/S) = 2^-(0.384615/0.200000) = 0.263692",
    ):
        assert part in text, part
    assert "takes the shares and the effective usage of vision" in said(explain("guest", algorithm=Algorithm.CLASSIC))


def test_parents_shares_equals_and_accounts_are_explained() -> None:
    """Who used nothing is equal to who takes the parent's shares; an account is one place, or has no rank."""
    text = said(explain("guest"))
    assert "takes its parent's shares: it is the highest among those below vision" in text
    assert "it shares this rank with bob in vision" in text
    assert "one place for all of them" in said(explain("nlp"))
    vision = said(explain("vision"))
    assert "400.000000 of it by users whom the tree does not name" in vision
    assert "an account has no rank; its users have" in vision
    assert "gpuledger explain team:vision" in vision


def test_the_figures_of_a_class_multiply_out() -> None:
    """From what was reserved to what counts; of a class that counts nothing, decay is shown all the same."""
    for weight in ("2", "1/3", "0"):
        (used, *_) = explain("alice", weight=weight).children[0].children
        figures = dict(used.children[0].figures)
        seconds, average, decayed, usage = (
            Fraction(str(figures[name]))
            for name in ("device_seconds_reserved", "an_hour_counts_on_average", "decayed_to", "usage")
        )
        assert (seconds, average, decayed) == (3600, Fraction(1, 2), seconds * average)
        assert usage == decayed * Fraction(str(figures["each_counts"])) == 1800 * Fraction(weight)


def test_an_account_is_what_stands_below_it_and_what_it_used_itself() -> None:
    """The parts add up to its usage."""
    (used, *_) = explain("vision").children[0].children
    parts = {child.title: Fraction(str(dict(child.figures)["usage"])) for child in used.children}
    assert parts == {"class H100-80GB": 400, "alice in vision": 3600}
    assert used.title.startswith("its usage: 4000.000000 device-seconds")


def test_below_an_account_of_many_the_rest_is_added_up() -> None:
    """The most first; nobody who used nothing."""
    users = [f"u{number}" for number in range(30)]
    shares = Shares(half_life_us=1, accounts=(Account(name="big", shares=1, users=dict.fromkeys(users, 1)),))
    lines = standings(shares, {Place(account="big", user=user): Fraction(n) for n, user in enumerate(users)})
    parts = _listed(_below(lines, lines[0]))
    amounts = [Fraction(str(dict(part.figures)["usage"])) for part in parts]
    assert (parts[0].title, parts[-1].title, len(parts)) == ("u29 in big", "9 more", 21)
    assert sum(amounts) == sum(range(30)) == lines[0].usage


def test_where_nothing_was_told_nothing_is_explained() -> None:
    """A rank out of zeros would be no answer."""
    found = explain("alice", told=False)
    assert found.figures[1] == ("rank", NOT_TOLD)
    assert not found.children


def test_usage_outside_of_the_tree_is_explained_where_it_is() -> None:
    """With whom it counts for; of who is nowhere, nothing."""
    assert "vision does not list dan device_seconds=400.000000 team=vision project=- counts_for=vision" in said(
        explain("dan")
    )
    assert "no account is called bio device_seconds=40.000000 team=bio project=- counts_for=nobody" in said(
        explain("eve")
    )
    assert isinstance(explain("nobody"), Missing)


def test_what_is_unknown_stands_beside_it_with_its_size() -> None:
    """In nobody's usage."""
    gap = ReservedGap(
        reason=ReservedReason.UNPLACED, what="w7", seconds=7200, since_us=AT_US - 2 * HOUR_US, until_us=AT_US,
        detail="lab says that it runs, and not on what",
    )  # fmt: skip
    text = said(explain("alice", gaps=(gap,)))
    assert "unplaced: w7, lab says that it runs, and not on what seconds=7200" in text
    assert "nothing is known to be missing" not in text
    problem = Problem(code="as-of-unknown", message="1 workload of declared history still ran")
    text = said(explain("alice", problems=(problem,)))
    assert "as-of-unknown: 1 workload of declared history still ran" in text
    assert "nothing is known to be missing" not in text
