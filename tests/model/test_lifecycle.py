"""The words of a lifecycle: states, placements, transitions; what may not be said is refused by name."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from gpuledger.errors import Misconfigured
from gpuledger.model.lifecycle import (
    CPU,
    ENDED,
    FOLLOWS,
    HOLDING,
    METERED,
    Placement,
    State,
    Transition,
    event_id_of,
    parse_labels,
    parse_share,
    parse_state,
)


def transition(**words: object) -> Transition:
    """A sensible one, changed."""
    base: dict[str, object] = {"workload": "w", "event_id": "1", "state": State.RUNNING, "at_us": 5, "source": "ctl"}
    return Transition(**base | words)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "words",
    [{"class_name": "L\04"}, {"region": "e\nu"}, {"machine": "n\ud800"}, {"pool": "p" * 513}, {"devices": ("a\0",)}],
)
def test_a_placement_has_names_that_a_ledger_can_hold(words: dict[str, object]) -> None:
    """Asked by whoever tells of one; what an older ledger holds can still be read."""
    placement = Placement(**{"class_name": "L4"} | words)  # type: ignore[arg-type]
    with pytest.raises(Misconfigured, match="printable characters") as caught:
        placement.refuse_odd_names()
    assert caught.value.code == "bad-placement"
    Placement(class_name="L4", region="Zürich", devices=("a",)).refuse_odd_names()


def test_only_running_is_metered_and_what_is_metered_holds() -> None:
    """The table of states says so."""
    assert frozenset({State.RUNNING}) == METERED
    assert METERED <= HOLDING
    assert not HOLDING & ENDED
    assert set(FOLLOWS) == {None, *State}


def test_every_state_can_come_to_its_end() -> None:
    """No workload can be stuck holding devices: from everywhere a stop can be reached."""
    for state in State:
        reached = {state}
        while more := {each for known in reached for each in FOLLOWS[known]} - reached:
            reached |= more
        assert reached >= ENDED


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"share": Fraction(0)}, "share of 0"),
        ({"share": Fraction(5, 4)}, "share of 5/4"),
        ({"share": 0.5}, "not exact"),
        ({"share": Fraction(1, 2**63)}, "finer than any that can be kept"),
        ({"count": 10_000}, "10000 devices"),
        ({"count": 0}, "0 devices"),
        ({"class_name": CPU}, "1 devices of class cpu"),
        ({"class_name": ""}, "no class"),
        ({"devices": ("b", "a"), "count": 2}, "sorted"),
        ({"devices": ("a",), "count": 2}, "as many"),
    ],
)
def test_a_placement_that_cannot_be_is_refused(words: dict[str, object], said: str) -> None:
    """By name, with what to type instead."""
    with pytest.raises(Misconfigured, match=said) as caught:
        Placement(**{"class_name": "L4"} | words)  # type: ignore[arg-type]
    assert caught.value.code == "bad-placement"
    assert caught.value.hint


def test_a_placement_key_is_of_all_of_it() -> None:
    """Two that differ in anything differ in their key; the same twice has one."""
    one = Placement(class_name="L4", devices=("a", "b"), count=2, share=Fraction(1, 2))
    others = [
        replace(one, class_name="T4"), replace(one, region="eu"), replace(one, machine="m"), replace(one, pool="p"),
        replace(one, devices=("a", "c")), replace(one, devices=()), replace(one, share=Fraction(1, 4)),
    ]  # fmt: skip
    assert len({one.key, *(other.key for other in others)}) == len(others) + 1
    assert replace(one).key == one.key
    assert [one.words, Placement(class_name=CPU, count=0).words] == ["1/2 of 2 x L4", "cpu"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"state": "pausing"}, "unknown-state"),
        ({"workload": ""}, "bad-transition"),
        ({"workload": "a\nb"}, "bad-transition"),
        ({"event_id": ""}, "bad-transition"),
        ({"source": ""}, "bad-transition"),
        ({"user": "x" * 513}, "bad-transition"),
        ({"at_us": -1}, "bad-transition"),
        ({"at_us": 1.5}, "bad-transition"),
        ({"at_us": 253_402_300_799_000_000}, "bad-transition"),
        ({"labels": (("b", "1"), ("a", "2"))}, "bad-transition"),
        ({"labels": (("a", "1"), ("a", "2"))}, "bad-transition"),
        ({"labels": (("a", "1\t"),)}, "bad-transition"),
    ],
)
def test_a_transition_that_says_nothing_usable_is_refused(words: dict[str, object], code: str) -> None:
    """Before it comes near a ledger."""
    with pytest.raises(Misconfigured) as caught:
        transition(**words)
    assert caught.value.code == code


def test_a_state_may_be_given_as_its_word() -> None:
    """As a control plane in Python would."""
    assert transition(state="stopped").state is State.STOPPED
    assert parse_state("failed") is State.FAILED


def test_labels_are_one_canonical_text() -> None:
    """Sorted by name, each once; a pair without its sign is refused."""
    assert transition(labels=parse_labels(["qos=LS", "app=x=y"])).labels_json == '{"app": "x=y", "qos": "LS"}'
    assert transition().labels_json == ""
    for pairs in (["qos"], ["=x"], ["a=1", "a=2"]):
        with pytest.raises(Misconfigured):
            parse_labels(pairs)


def test_a_share_is_an_exact_fraction() -> None:
    """However it is typed."""
    assert parse_share("1/3") == Fraction(1, 3)
    assert parse_share("0.25") == Fraction(1, 4)
    assert [parse_share(text) for text in (".5", "1.", "2.5e-1", " 1 ")] == [
        Fraction(1, 2), Fraction(1), Fraction(1, 4), Fraction(1),
    ]  # fmt: skip
    for text in ("half", "1/0", "", ".", "nan", "1e999999999", "1/-4", "9" * 5000):
        with pytest.raises(Misconfigured) as caught:
            parse_share(text)
        assert caught.value.code == "bad-placement"
        assert len(caught.value.message) < 100


def test_an_event_without_an_id_has_one_of_its_content() -> None:
    """The same twice is the same; anything else is another."""
    assert event_id_of("w", "running", 5) == event_id_of("w", "running", 5)
    assert event_id_of("w", "running", 5) != event_id_of("w", "running", 6)
    assert event_id_of("ab", "c") != event_id_of("a", "bc")
