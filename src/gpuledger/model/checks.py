"""What ``verify`` and ``doctor`` find: checks with a verdict, and what mends it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a check came to. ``found`` makes the command exit with 1, ``damaged`` with 6."""

    OK = "ok"
    FOUND = "found"
    DAMAGED = "damaged"
    NOTE = "note"
    SKIPPED = "skipped"


_FOUND = (Verdict.FOUND, Verdict.DAMAGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check.

    Args:
        name: kebab-case, e.g. ``hash-chains``.
        verdict: what it came to.
        sentence: what was looked at and what that means.
        findings: one sentence each: where derived and recorded differ, which link is broken.
        hint: what to type next; may be empty.
    """

    name: str
    verdict: Verdict
    sentence: str
    findings: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """The checks of a whole ledger.

    Args:
        ledger: its place as text.
        at_us: when it was verified, microseconds UTC.
        checks: in the order they ran.
        counts: rows by kind.
        root: the latest seal's root, to keep elsewhere; empty when nothing is sealed yet.
    """

    ledger: str
    at_us: int
    checks: tuple[Check, ...]
    counts: tuple[tuple[str, int], ...] = ()
    root: str = ""

    @property
    def ok(self) -> bool:
        """Whether no check found anything."""
        return not any(check.verdict in _FOUND for check in self.checks)

    @property
    def skipped(self) -> bool:
        """Whether something could not be checked."""
        return any(check.verdict is Verdict.SKIPPED for check in self.checks)

    @property
    def damaged(self) -> bool:
        """Whether the ledger itself is damaged: unreadable, or a broken chain or seal."""
        return any(check.verdict is Verdict.DAMAGED for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """What is missing on one machine.

    Args:
        host: the machine.
        at_us: when it was looked at, microseconds UTC.
        checks: in the order of the river: driver, naming, ledger, agent.
    """

    host: str
    at_us: int
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether no check found anything."""
        return not any(check.verdict in _FOUND for check in self.checks)
