"""Imperfect evidence as a value: shown beside the result, never swallowed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something was done, on evidence that was not perfect.

    Args:
        code: kebab-case name, e.g. ``conflict``, ``bad-sentinel``, ``broken-line``.
        message: one sentence for the person at the terminal.
        where: file and line, device, or reference it is about; may be empty.
    """

    code: str
    message: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.message} [{self.code}]" if self.where else f"{self.message} [{self.code}]"


_SHOWN = 8
"""Names that are listed of those there are."""


def unknown_name(what: str, name: str, known: Iterable[str]) -> Problem:
    """Of a name that was asked about and that nothing knows: the answer is empty for it, which is no "none".

    Args:
        what: of what it is a name: ``team``, ``pool``.
        name: as it was asked.
        known: the names there are.
    """
    names = sorted(set(known))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    there = f"known: {', '.join(names[:_SHOWN])}{more}" if names else f"no {what} is known at all"
    return Problem(code="unknown-name", message=f"nothing knows a {what} called {name!r}; {there}")
