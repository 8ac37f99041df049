"""Rates of a policy document: understood with their lines, or refused with them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gpuledger.errors import BadInput
from gpuledger.model.missing import Missing
from gpuledger.model.moments import parse_moment
from gpuledger.model.rates import Rates
from gpuledger.sources import policy_rates
from gpuledger.sources.yaml_nodes import compose

NOW = parse_moment("2026-11-29", now_us=0)
GOOD = """\
rates:
  currency: EUR
  cards:
    - {meter: gpu.reserved, pool: whole, class: H100-80GB, rate: "2.40", unit: device-hour, effective_from: 2026-11-01}
    - {meter: gpu.reserved, pool: shared, replicas: 4, rate: "0.55", unit: replica-hour}
    - {meter: mig.memory, class: "*/1g.10gb", rate: "0.03", unit: GiB-hour, basis: memory}
    - {meter: tokens.output, model: "llama3*", rate: "0.40", unit: 1M-tokens}
"""


def parsed(text: str, **words: bool) -> Rates | Missing:
    return policy_rates.rates(compose(text, path="p.yaml"), effective_from_us=NOW, **words)


def test_the_example_of_the_design() -> None:
    """Every card, with its line; a card without a date holds from the policy's own."""
    rates = parsed(GOOD)
    assert isinstance(rates, Rates)
    assert (rates.currency, rates.never) == ("EUR", False)
    assert [card.line for card in rates.cards] == [4, 5, 6, 7]
    assert [card.rate for card in rates.cards] == [Decimal("2.40"), Decimal("0.55"), Decimal("0.03"), Decimal("0.40")]
    assert [card.effective_from_us for card in rates.cards] == [parse_moment("2026-11-01", now_us=0), NOW, NOW, NOW]
    assert (rates.cards[1].replicas, rates.cards[2].basis, rates.cards[3].model_pattern) == (4, "memory", "llama3*")


def test_money_never() -> None:
    """Every price is switched off; and a document that says nothing has no rates."""
    never = parsed("money: never")
    assert isinstance(never, Rates)
    assert (never.never, never.cards) == (True, ())
    assert isinstance(parsed("owners: {}"), Missing)


def test_digits_stay_as_written() -> None:
    """Quoted or not, a rate is never a float."""
    rates = parsed(GOOD.replace('"2.40"', "2.40").replace('"0.55"', "1"))
    assert isinstance(rates, Rates)
    assert [str(card.rate) for card in rates.cards[:2]] == ["2.40", "1"]


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ("currency: EUR", "currency: euro", "policy-bad-value", 2),
        ("  currency: EUR\n", "", "policy-missing-key", 2),
        ("currency: EUR", "currency: EUR\n  colour: red", "policy-unknown-key", 3),
        ("pool: whole, ", "pool: whole, team: x, ", "policy-unknown-key", 4),
        ("meter: gpu.reserved, pool: whole", "meter: gpu.context, pool: whole", "policy-bad-value", 4),
        ("unit: device-hour", "unit: GiB-hour", "policy-bad-value", 4),
        (', rate: "2.40"', "", "policy-missing-key", 4),
        ('"2.40"', '"-2.40"', "policy-bad-value", 4),
        ('"2.40"', '"2,40"', "policy-bad-value", 4),
        ('"2.40"', "1e3", "policy-bad-value", 4),
        ('"2.40"', ".inf", "policy-bad-value", 4),
        ("2026-11-01", "soon", "policy-bad-time", 4),
        ("replicas: 4, ", "", "policy-missing-key", 5),
        ("replicas: 4", "replicas: 0", "policy-bad-value", 5),
        ("replicas: 4", "replicas: 1/4", "policy-bad-value", 5),
        (", basis: memory", "", "policy-missing-key", 6),
        ("basis: memory", "basis: weight", "policy-bad-value", 6),
        ("*/1g.10gb", "A100*", "policy-bad-value", 6),
        ("*/1g.10gb", "*/1g.10gb/x", "policy-bad-value", 6),
        ("*/1g.10gb", "[AH]100/1g.10gb", "policy-bad-value", 6),
        ('model: "llama3*"', "pool: whole", "policy-bad-value", 7),
        ("pool: whole, ", "pool: whole, model: x, ", "policy-bad-value", 4),
        ("pool: whole, ", "pool: whole, basis: memory, ", "policy-bad-value", 4),
        ("rates:", "money: never\nrates:", "policy-bad-value", 1),
        ("rates:", "money: sometimes\nrates:", "policy-bad-value", 1),
        ("pool: whole, ", "", "policy-overlapping-rates", 5),  # any pool meets the pool shared, with any replicas
        ('mig.memory, class: "*/1g.10gb"', 'gpu.reserved, pool: whole, class: "H100*"', "policy-bad-value", 6),
    ],
)  # fmt: skip
def test_what_cannot_be_priced_is_refused(old: str, new: str, code: str, line: int) -> None:
    """With its line, before it is applied."""
    assert old in GOOD
    with pytest.raises(BadInput) as refused:
        parsed(GOOD.replace(old, new, 1))
    assert (refused.value.code, refused.value.line) == (code, line)


def test_overlapping_cards_for_who_tells_of_them() -> None:
    """An audit gets them as they stand; applying refuses them and names both lines."""
    text = GOOD + '    - {meter: gpu.reserved, class: "*/1g.10gb", rate: "1", unit: device-hour, basis: compute}\n'
    with pytest.raises(BadInput, match="at line 6") as refused:
        parsed(text)
    assert refused.value.line == 8
    rates = parsed(text, overlapping=True)
    assert isinstance(rates, Rates)
    assert len(list(rates.overlaps())) == 1
