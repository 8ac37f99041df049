"""``shares`` of a policy: what is understood, and every refusal with its line."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpuledger.accounting.fairshare import standings
from gpuledger.accounting.share_places import Places
from gpuledger.errors import BadInput
from gpuledger.model.missing import Missing
from gpuledger.model.moments import DAY_US, MINUTE_US
from gpuledger.model.shares import PARENT, Account, Algorithm, Place, Shares
from gpuledger.sources import policy_file

WHOLE = """\
shares:
  half_life: 7d
  algorithm: classic
  class_weights: {"H100*": 2, "*/1g.*": 1/7, "L4": 0.5}
  users: {root: 1}
  tree:
    vision:
      shares: 40
      users: {alice: 1, bob: parent}
      accounts:
        lab: {shares: parent, users: {carol: 3}}
    nlp: {shares: 60}
"""


def parse(text: str) -> Shares:
    shares = policy_file.parse(text, path="p.yaml", now_us=0)[0].shares
    assert isinstance(shares, Shares)
    return shares


def test_a_whole_tree() -> None:
    """Accounts below accounts, parent's shares, users in no account, weights as exact fractions."""
    shares = parse(WHOLE)
    assert (shares.half_life_us, shares.algorithm) == (7 * DAY_US, Algorithm.CLASSIC)
    assert shares.class_weights == (("H100*", Fraction(2)), ("*/1g.*", Fraction(1, 7)), ("L4", Fraction(1, 2)))
    assert shares.users == {"root": 1}
    lab = Account(name="lab", shares=PARENT, users={"carol": 3})
    vision = Account(name="vision", shares=40, users={"alice": 1, "bob": PARENT}, accounts=(lab,))
    assert shares.accounts == (vision, Account(name="nlp", shares=60))


def test_a_deep_tree() -> None:
    """Forty accounts below one another, as Slurm takes them; the place of the last is found."""
    text = "z: {shares: 1, users: {u: 1}}"
    for depth in reversed(range(40)):
        text = f"a{depth}: {{shares: 1, accounts: {{{text}}}}}"
    shares = parse(f"shares: {{half_life: 7d, tree: {{{text}}}}}")
    assert len(list(shares.every_account())) == 41
    assert Places(shares).of("u", "a0", "-").place == Place(account="z", user="u")
    *_, last = standings(shares, {Place(account="z", user="u"): Fraction(1)})
    assert (last.depth, last.rank) == (41, 1)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("shares: {half_life: , tree: {a: {shares: 1}}}", "write half_life: 7d"),
        ("shares: {half_life: [7d], tree: {a: {shares: 1}}}", "write half_life: 7d"),
        ("shares: {half_life: 7d, tree: {a: {shares: }}}", "write shares: 1"),
        ("shares: {half_life: 7d, class_weights: {L4: }, tree: {a: {shares: 1}}}", 'class_weights: {"L4": 2}'),
    ],
)
def test_what_is_left_empty_is_told_with_a_value_that_fits(text: str, hint: str) -> None:
    """Not with the word TEXT, where a number belongs."""
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert caught.value.hint.startswith(hint)


def test_fair_tree_is_the_default_as_in_slurm_and_weights_are_one() -> None:
    """Only what is no decision has a default."""
    shares = parse("shares: {half_life: 90m, tree: {a: {shares: 1}}}")
    assert (shares.half_life_us, shares.algorithm, shares.class_weights) == (90 * MINUTE_US, Algorithm.FAIR_TREE, ())


def test_a_policy_without_shares_says_so() -> None:
    """And is not read as everybody equal."""
    assert isinstance(policy_file.parse("services: []", path="p", now_us=0)[0].shares, Missing)


@pytest.mark.parametrize(
    ("text", "code", "line", "words"),
    [
        ("services: []\nshares:\n  tree: {a: {shares: 1}}", "policy-missing-key", 3, "`half_life`"),
        ("shares: {half_life: 0d, tree: {}}", "policy-bad-value", 1, "not a half-life"),
        ("shares:\n  half_life: off\n  tree: {}", "policy-bad-value", 2, "not a half-life"),
        ("shares:\n  half_life: 7\n  tree: {}", "policy-bad-value", 2, "'7' is not a half-life"),
        ("shares:\n  half_life: 99999999w\n  tree: {}", "policy-bad-value", 2, "hundred years"),
        ("shares: {half_life: 7d}", "policy-missing-key", 1, "`tree`"),
        ("shares: {half_life: 7d, tree: {}}", "policy-bad-value", 1, "nobody a share"),
        ("shares: {half_life: 7d, tree: {a: 1}}", "policy-bad-value", 1, "must be a mapping"),
        ("shares: {half_life: 7d, tree: {a: {users: {x: 1}}}}", "policy-missing-key", 1, "lacks `shares`"),
        ("shares:\n  half_life: 7d\n  algorithm: lottery\n  tree: {}", "policy-bad-value", 3, "no algorithm"),
        ("shares:\n  half_life: 7d\n  tree:\n    a: {shares: -1}", "policy-bad-value", 4, "no number of shares"),
        ("shares:\n  half_life: 7d\n  tree:\n    a: {shares: 1.5}", "policy-bad-value", 4, "no number of shares"),
        ("shares:\n  half_life: 7d\n  tree:\n    a: {shares: parent}", "policy-bad-value", 4, "names nobody"),
        ("shares:\n  half_life: 7d\n  users: {u: parent}\n  tree: {}", "policy-bad-value", 3, "no account"),
        ("shares: {half_life: 7d, class_weights: {L4: -2}, tree: {}}", "policy-bad-value", 1, "no weight"),
        ("shares: {half_life: 7d, class_weights: {L4: 1/0}, tree: {}}", "policy-bad-value", 1, "no weight"),
        ("shares: {half_life: 7d, halflife: 7d, tree: {}}", "policy-unknown-key", 1, "'halflife'"),
        (
            "shares:\n  half_life: 7d\n  tree:\n    a:\n      shares: 1\n      accounts:\n        a: {shares: 1}",
            "policy-duplicate-key", 7, "twice in the tree",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_acted_on_is_refused_with_its_line(text: str, code: str, line: int, words: str) -> None:
    """A half-life that is missing is an error, never `off`."""
    with pytest.raises(BadInput) as refused:
        policy_file.parse(text, path="p.yaml", now_us=0)
    assert (refused.value.code, refused.value.line) == (code, line)
    assert words in refused.value.message
    assert refused.value.hint
