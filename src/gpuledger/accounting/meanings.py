"""What a reason or a cause means, in a sentence; a word that a newer version wrote says so instead of failing."""

from __future__ import annotations

from gpuledger.model.reasons import (
    CAUSE_MEANING,
    NAMING_MEANING,
    RESERVED_MEANING,
    UNKNOWN_MEANING,
    Cause,
    ReservedReason,
    UnknownReason,
)


def meaning_of(reason: str) -> tuple[str, str]:
    """The sentence of an UNKNOWN reason, and the command that helps."""
    if reason in tuple(UnknownReason):
        return UNKNOWN_MEANING[UnknownReason(reason)]
    if reason == ReservedReason.PASSTHROUGH:  # the only one that is time on a device, too
        return RESERVED_MEANING[ReservedReason.PASSTHROUGH]
    return ("this version of gpuledger does not know the reason", "upgrade gpuledger")


def naming_meaning_of(reason: str) -> tuple[str, str]:
    """Why names can be missing of a time, and the command that helps."""
    found = {str(known): meaning for known, meaning in NAMING_MEANING.items()}
    return found.get(reason) or meaning_of(reason)


def cause_sentence(cause: str) -> str:
    """The sentence of an unattributed amount's cause."""
    if cause in tuple(Cause):
        return CAUSE_MEANING[Cause(cause)]
    return "this version of gpuledger does not know the cause"
