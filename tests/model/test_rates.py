"""Rate cards: what each holds for, which hold at a moment, and which would price a line twice."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.model.rates import RateCard, Rates, class_matches, patterns_meet


def card(pattern: str = "", meter: str = "gpu.reserved", **words: Any) -> RateCard:
    return RateCard(meter=meter, rate=Decimal(1), unit="device-hour", class_pattern=pattern, **words)


@pytest.mark.parametrize(
    ("pattern", "class_name", "holds"),
    [
        ("H100*", "H100-80GB", True),
        ("H100*", "H100-80GB/1g.10gb", False),
        ("*", "A100-SXM4-40GB", True),
        ("*", "A100-SXM4-40GB/1g.5gb", False),
        ("*/1g.5gb", "A100-SXM4-40GB/1g.5gb", True),
        ("*/*", "A100-SXM4-40GB/1g.5gb", True),
        ("A100*/1g*", "A100-SXM4-40GB/1g.5gb", True),
        ("H100-80GB", "H100-80GB-HBM3", False),
        ("a*b*c", "aXbYc", True),
        ("a.c", "abc", False),
    ],
)
def test_a_star_stops_at_the_slash(pattern: str, class_name: str, holds: bool) -> None:
    """A pattern of whole devices never prices a slice."""
    assert class_matches(pattern, class_name) == holds


def test_what_a_card_holds_for() -> None:
    """Class, pool and replicas; what it does not name, it does not ask."""
    shared = card("H100*", pool="shared", replicas=4)
    assert shared.holds_for("H100-80GB", pool="shared", replicas=4)
    assert not shared.holds_for("H100-80GB", pool="shared", replicas=8)
    assert not shared.holds_for("H100-80GB", pool="", replicas=4)
    assert card().holds_for("H100-80GB", pool="any", replicas=3)
    assert not card().holds_for("H100-80GB/1g.10gb", pool="", replicas=1)
    assert card(meter="mig.memory").holds_for("H100-80GB/1g.10gb", pool="", replicas=1)
    assert not card(meter="cpu.reserved").holds_for("cpu", pool="", replicas=1)


def test_the_cards_of_a_moment() -> None:
    """Of each scope the latest that has begun."""
    old, new, other = card("A*", effective_from_us=1), card("A*", effective_from_us=5), card("B*", effective_from_us=9)
    rates = Rates(currency="EUR", cards=(old, new, other))
    assert rates.at(0) == ()
    assert rates.at(4) == (old,)
    assert rates.at(5) == (new,)
    assert rates.at(9) == (new, other)


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (card("A*"), card("A100"), True),
        (card("A*"), card("B*"), False),
        (card("A*"), card("*B"), True),
        (card("A*", pool="x"), card("A*", pool="y"), False),
        (card("A*", pool="x"), card("A*"), True),
        (card("A*", replicas=2), card("A*", replicas=4), False),
        (card("A*", replicas=2), card("A*"), True),
        (card("A*"), card("A*"), True),
        (card("A*"), card("A*", effective_from_us=7), False),  # the later takes its place
        (card("A*"), card("A1*", effective_from_us=7), True),
        (card("*/1g.5gb"), card(meter="mig.memory"), True),  # a slice-hour is priced once
        (card("A*"), card(meter="mig.memory"), False),
        (card(meter="tokens.input", model_pattern="llama*"), card(meter="tokens.input", model_pattern="*3"), True),
        (card(meter="tokens.input"), card(meter="tokens.output"), False),
        (card(meter="cpu.reserved"), card(), False),
    ],
)
def test_two_cards_for_one_line(first: RateCard, second: RateCard, both: bool) -> None:
    """Whatever line it would be."""
    assert bool(list(Rates(cards=(first, second)).overlaps())) == both


def test_names_for_people() -> None:
    """What a card asks for."""
    assert card("H100*", pool="shared", replicas=4).words == "gpu.reserved pool shared class H100* replicas 4"
    assert card(meter="tokens.output", model_pattern="llama3*").words == "tokens.output model llama3*"


PATTERNS = st.text(alphabet="ab*/", max_size=5)


@given(PATTERNS, PATTERNS)
def test_patterns_meet_where_some_text_is_as_both(first: str, second: str) -> None:
    """Against every short text there is."""

    def texts(length: int) -> list[str]:
        return [""] if length == 0 else [text + char for text in texts(length - 1) for char in "ab/"]

    witnesses = [text for length in range(7) for text in texts(length)]
    met = any(class_matches(first, text) and class_matches(second, text) for text in witnesses)
    assert patterns_meet(first, second) == met or (patterns_meet(first, second) and len(first + second) > 6)
