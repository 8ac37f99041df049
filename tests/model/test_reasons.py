"""The closed vocabulary of blind spots: each reason has its sentence and what helps."""

from __future__ import annotations

import re

from gpuledger.model.reasons import CAUSE_MEANING, UNKNOWN_MEANING, Cause, UnknownReason


def test_every_reason_says_what_it_means_and_what_helps() -> None:
    """A reason that a person cannot act on is half an answer."""
    assert set(UNKNOWN_MEANING) == set(UnknownReason)
    assert all(sentence and command for sentence, command in UNKNOWN_MEANING.values())


def test_every_cause_says_what_it_means() -> None:
    """Printed beside the amount that got no name."""
    assert set(CAUSE_MEANING) == set(Cause)
    assert all(CAUSE_MEANING.values())


def test_the_words_are_kebab_case() -> None:
    """They are stored, printed and matched by scripts."""
    words = [str(word) for word in (*UnknownReason, *Cause)]
    assert not [word for word in words if not re.fullmatch(r"[a-z]+(-[a-z]+)*", word)]
