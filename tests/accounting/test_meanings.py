"""Meanings: every word has a sentence, also one from the future."""

from __future__ import annotations

from gpuledger.accounting.meanings import cause_sentence, meaning_of, naming_meaning_of
from gpuledger.model.reasons import RESERVED_MEANING, Cause, ReservedReason, UnknownReason


def test_every_reason_and_cause_has_a_sentence() -> None:
    """No blind spot is without its meaning and what helps."""
    for reason in UnknownReason:
        meaning, command = meaning_of(reason.value)
        assert meaning
        assert command
    assert all(cause_sentence(cause.value) for cause in Cause)


def test_of_naming_a_reason_means_something_else() -> None:
    """Nobody looked at a device, or nobody took names: two different things; what naming never has is as elsewhere."""
    for reason in (UnknownReason.EVENTS_LOST, UnknownReason.WATCH_GAP, UnknownReason.BEFORE_WATCH):
        assert "name" in naming_meaning_of(reason)[0]
        assert naming_meaning_of(reason) != meaning_of(reason)
    assert naming_meaning_of(UnknownReason.DEVICE_LOST) == meaning_of(UnknownReason.DEVICE_LOST)
    assert "does not know" in naming_meaning_of("host-silent")[0]


def test_a_word_of_a_newer_version_says_so() -> None:
    """An older program reads a newer ledger without failing and without inventing."""
    assert "does not know" in meaning_of("host-silent")[0]
    assert "does not know" in cause_sentence("cosmic-ray")


def test_a_device_handed_through_is_told_as_reservations_tell_it() -> None:
    """The one reason that reserved time and time on a device share."""
    assert meaning_of("passthrough") == RESERVED_MEANING[ReservedReason.PASSTHROUGH]
