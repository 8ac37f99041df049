"""Imperfect evidence as a value: shown beside the result, never swallowed."""

from __future__ import annotations

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
