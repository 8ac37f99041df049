"""``fairshare`` in three formats: figures as Slurm prints them, absence never as a zero."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from fractions import Fraction

from rich.console import Console

from gpuledger.accounting.fairshare import standings
from gpuledger.accounting.waiting_line import Request, in_line
from gpuledger.model.fairshare import FairShareReport, Outside
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, parse_moment
from gpuledger.model.reasons import ReservedReason
from gpuledger.model.reserved import ReservedGap
from gpuledger.model.shares import Account, Algorithm, Place, Shares
from gpuledger.reports.fairshare_report import MOST_WAITING, hours, to_csv, to_json, to_table

AT_US = parse_moment("2026-11-29T12:30:00Z", now_us=0)
TREE = Shares(
    half_life_us=7 * DAY_US,
    class_weights=(("H100*", Fraction(2)),),
    accounts=(Account(name="vision", shares=40, users={"alice": 1, "bob": 1}), Account(name="nlp", shares=60)),
)
USED = {Place(account="vision", user="alice"): Fraction(36_000), Place(account="nlp"): Fraction(3600, 7)}
REQUEST = Request(
    workload="w1", user="bob", team="vision", project="-", place=Place(account="vision", user="bob"),
    since_us=AT_US - DAY_US, known_until_us=AT_US, requested_class="H100-80GB", pools=("big",), ref="event:box/7",
)  # fmt: skip
STRANGER = replace(
    REQUEST, workload="w2", user="zoe", place=Missing("no account lists zoe"), requested_class="", pools=()
)


EVE = Outside(team="bio", project="-", user="eve", account="", usage=Fraction(1), why="no account is called bio")


def report(algorithm: Algorithm = Algorithm.FAIR_TREE, **words) -> FairShareReport:
    lines = standings(replace(TREE, algorithm=algorithm), USED)
    made = FairShareReport(
        at_us=AT_US, algorithm=algorithm, half_life_us=7 * DAY_US, class_weights=TREE.class_weights, policy=3,
        policy_ref="policy:box/3", since_us=0, total=sum(USED.values(), Fraction(0)), lines=lines,
        outside=(EVE,),
        waiting=in_line([STRANGER, REQUEST], lines), poolless=0, pool="", gaps=(), told=True,
    )  # fmt: skip
    return replace(made, **words)


def shown(of: FairShareReport, width: int = 120) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(to_table(of))
    return captured.get()


def test_the_table_shows_the_tree_what_is_outside_and_who_is_next() -> None:
    """Shares, usage, factor and rank on one line; the first in line first."""
    text = " ".join(shown(report()).split())
    for part in (
        "fair-tree, usage halves in 7 d, policy 3; H100* counts 2",
        "vision 40 0.400000 10.00 98.6 % 0.985915 0.405714 - -",
        "alice 1 0.500000 10.00 98.6 % 1.000000 0.500000 0.333333 3",
        "bob 1 0.500000 0.00 0 % 0.000000 inf 0.666667 2",
        "all 10.14",
        "Not in the tree <0.01 device-hours, of no user in it",
        "eve: <0.01 device-hours, no account is called bio; counts for nobody",
        "1 w1 bob in vision 2 2026-11-28T12:30:00Z H100-80GB big",
        "2 w2 zoe - 2026-11-28T12:30:00Z - -",
    ):
        assert part in text, part


def test_the_classic_table_has_factors_of_accounts_and_no_levels() -> None:
    """As sshare prints them."""
    text = shown(report(Algorithm.CLASSIC))
    assert "level fs" not in text
    assert "classic, usage halves" in text


def test_factor_and_rank_are_kept_on_a_narrow_terminal() -> None:
    """What explains them gives way."""
    lines = shown(report(), 48).splitlines()
    assert max(len(line) for line in lines) <= 48
    assert any("alice" in line and "0.333333" in line for line in lines)


def test_json_gives_every_figure_as_exact_text_and_why_one_is_missing() -> None:
    """Six decimals; a rank that there is none of is null with its reason."""
    found = to_json(report())
    assert (found["algorithm"], found["total"], found["ranked"]) == ("fair-tree", "36514.285714", 3)
    vision, alice, *_ = found["lines"]  # type: ignore[misc]
    assert (vision["rank"], sorted(vision["missing"])) == (None, ["factor", "rank"])
    assert (alice["usage"], alice["factor"], alice["rank"], alice["level_fs"]) == (
        "36000.000000",
        "0.333333",
        3,
        "0.500000",
    )
    first, second = found["waiting"]  # type: ignore[misc]
    assert (first["position"], first["workload"], first["place"]) == (1, "w1", {"account": "vision", "user": "bob"})
    assert (second["place"], second["missing"]["place"]) == (None, "no account lists zoe")


def test_csv_has_a_row_for_each_place_and_for_what_has_none() -> None:
    """Its rank is empty there, not 0."""
    rows = list(csv.DictReader(io.StringIO(to_csv(report()))))
    assert [(row["account"], row["user"], row["rank"]) for row in rows] == [
        ("vision", "", ""), ("vision", "alice", "3"), ("vision", "bob", "2"), ("nlp", "", "1"), ("", "eve", ""),
    ]  # fmt: skip


def test_what_is_unknown_and_who_tells_no_pool_is_said() -> None:
    """With its size."""
    gap = ReservedGap(
        reason=ReservedReason.UNPLACED, what="w7", seconds=7200, since_us=0, until_us=1, detail="nobody says on what"
    )
    text = shown(report(gaps=(gap,), waiting=(), pool="big", poolless=2))
    assert "unplaced: w7, 7,200 s, nobody says on what" in text
    assert "nothing waits for pool big" in text
    assert "2 more tell no pool" in text


def test_a_long_line_of_waiting_is_cut_with_its_number() -> None:
    """JSON has all of it."""
    waiting = report().waiting[:1] * (MOST_WAITING + 3)
    assert "and 3 more: --format json has all" in shown(report(waiting=waiting))


def test_without_a_transition_the_tree_of_zeros_is_not_shown() -> None:
    """It would be a zero without evidence."""
    text = shown(report(told=False))
    assert "UNKNOWN: no transition is known" in text
    assert "alice" not in text


def test_deep_below_names_stay_on_their_line() -> None:
    """Forty accounts below one another: the level is a number then."""
    account = Account(name="last", shares=1)
    for depth in reversed(range(40)):
        account = Account(name=f"level{depth}", shares=1, accounts=(account,))
    lines = standings(Shares(half_life_us=1, accounts=(account,)), {})
    rows = [row for row in shown(report(lines=lines), 120).splitlines() if "level" in row and "fs" not in row]
    assert len(rows) == 40
    assert rows[5].startswith("          level5 ")
    assert rows[39].startswith("          39: level39 ")


def test_who_was_admitted_is_marked_in_the_line() -> None:
    """In a column that is there only then; as JSON with the end of the hold."""
    one, other = report().waiting
    text = " ".join(shown(report(waiting=(replace(one, admitted_until_us=AT_US), other))).split())
    assert "1 w1 admitted bob in vision" in text
    assert "2 w2 zoe" in text
    assert "admitted" not in shown(report())
    first, second = to_json(report(waiting=(replace(one, admitted_until_us=AT_US), other)))["waiting"]  # type: ignore[misc]
    assert (first["admitted_until"], second["admitted_until"]) == ("2026-11-29T12:30:00Z", None)


def test_who_is_outside_of_the_tree_is_shown_no_empty_tree() -> None:
    """What they used, and what waits."""
    text = shown(report(lines=()))
    assert "account, user" not in text
    assert "eve: <0.01 device-hours" in text


def test_some_never_reads_as_none() -> None:
    """Nor as more digits than it has."""
    assert [hours(Fraction(n)) for n in (0, 1, 36, 3600, 12_345_678)] == ["0.00", "<0.01", "0.01", "1.00", "3429.36"]
