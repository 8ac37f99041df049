"""The words of fair share: accounts in the order of the tree, and places as people read them."""

from __future__ import annotations

from gpuledger.model.shares import Account, Place, Shares


def test_every_account_comes_before_those_below_it() -> None:
    """In the order of the document."""
    lab = Account(name="lab", shares=1, users={"bob": 1})
    tree = Shares(
        half_life_us=1,
        accounts=(
            Account(name="vision", shares=40, users={"alice": 1}, accounts=(lab,)),
            Account(name="nlp", shares=60),
        ),
    )
    assert [account.name for account in tree.every_account()] == ["vision", "lab", "nlp"]
    assert [account.is_place for account in tree.every_account()] == [False, False, True]


def test_places_read_as_people_say_them() -> None:
    """A user in an account, an account, a user in none."""
    places = [Place(account="vision", user="alice"), Place(account="vision"), Place(account="", user="root")]
    assert [place.words for place in places] == ["alice in vision", "vision", "root"]
    assert Place(account="").words == "the root"
