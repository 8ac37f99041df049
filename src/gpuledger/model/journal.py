"""What each reading found, as lines to be read from oldest to newest."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much a line asks of its reader."""

    OK = "ok"
    CHANGE = "change"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLine:
    """One row of the ledger in a sentence.

    Args:
        at_us: when it began, microseconds UTC.
        until_us: when it ended; equal to ``at_us`` for a moment.
        host, device: what it is about; empty when it is about the whole host or the ledger.
        source: ``driver``, ``process``, ``device``, ``pass``, ``policy`` or ``seal``.
        sentence: what was found.
        ref: what ``explain`` takes.
        level: ``unknown`` where the span says nothing about use.
    """

    at_us: int
    until_us: int
    host: str
    device: str
    source: str
    sentence: str
    ref: str
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalReport:
    """The lines of a window, oldest first."""

    since_us: int
    until_us: int
    lines: tuple[JournalLine, ...]
