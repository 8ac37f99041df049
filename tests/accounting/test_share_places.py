"""Where a usage belongs: by account, then by user; what has no place says why."""

from __future__ import annotations

import pytest

from gpuledger.accounting.share_places import Places
from gpuledger.model.missing import Missing
from gpuledger.model.shares import Account, Place, Shares

TREE = Shares(
    half_life_us=1,
    users={"root": 1},
    accounts=(
        Account(
            name="vision", shares=40, users={"alice": 1},
            accounts=(
                Account(name="lab-a", shares=1, users={"bob": 1, "both": 1}),
                Account(name="lab-b", shares=1, users={"both": 1}),
            ),
        ),
        Account(name="nlp", shares=60),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("user", "team", "project", "place"),
    [
        ("alice", "vision", "-", Place(account="vision", user="alice")),
        ("alice", "other", "vision", Place(account="vision", user="alice")),  # Slurm's account comes in as the project
        ("bob", "vision", "-", Place(account="lab-a", user="bob")),  # the only home below the team
        ("both", "vision", "lab-b", Place(account="lab-b", user="both")),
        ("anybody", "nlp", "-", Place(account="nlp")),
        ("-", "nlp", "-", Place(account="nlp")),
        ("root", "-", "-", Place(account="", user="root")),
        ("root", "nowhere", "-", Place(account="", user="root")),
        ("bob", "-", "-", Place(account="lab-a", user="bob")),  # nobody says a team, and the tree has one bob
    ],
)
def test_a_usage_finds_its_place(user: str, team: str, project: str, place: Place) -> None:
    """The project before the team, the account itself before those below it."""
    charge = Places(TREE).of(user, team, project)
    assert (charge.place, charge.counts_at) == (place, place)


def test_nobody_is_not_a_name() -> None:
    """A tree that lists ``-`` is no place for what nobody is named for."""
    users = {"-": 1, "al": 1}
    places = Places(
        Shares(
            half_life_us=1, users=users,
            accounts=(Account(name="-", shares=1, users=users), Account(name="a", shares=1, users=users)),
        )
    )  # fmt: skip
    for charge in (places.of("-", "-", "-"), places.of("-", "a", "-")):
        assert isinstance(charge.place, Missing)
    assert places.of("al", "-", "-").place == Place(account="", user="al")
    assert places.of("al", "a", "-").place == Place(account="a", user="al")


@pytest.mark.parametrize(
    ("user", "team", "project", "counts_at", "why"),
    [
        ("carol", "vision", "-", "vision", "vision does not list carol"),
        ("both", "vision", "-", "vision", "vision lists both in lab-a and in lab-b"),
        ("eve", "bio", "x", "", "no account is called x or bio"),
        ("both", "-", "-", "", "it names no account, and both stands in lab-a and in lab-b"),
        ("eve", "-", "-", "", "it names no account, and no account lists eve"),
        ("-", "-", "-", "", "it names no account"),
    ],
)
def test_what_has_no_place_stays_where_it_is_and_says_why(
    user: str, team: str, project: str, counts_at: str, why: str
) -> None:
    """With its account as a whole, or nowhere; with nobody else."""
    charge = Places(TREE).of(user, team, project)
    assert isinstance(charge.place, Missing)
    assert charge.place.reason == why
    if counts_at:
        assert charge.counts_at == Place(account=counts_at)
    else:
        assert isinstance(charge.counts_at, Missing)
