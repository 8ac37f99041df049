"""Absence that says why.

A reading the driver could not give is ``Missing("driver: not supported")``. It has no truth value
and no arithmetic, so that it can never turn into a zero by accident. ``None`` only means
"argument not given".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn


@dataclass(frozen=True, slots=True)
class Missing:
    """A value that is not known, with the reason.

    Args:
        reason: short text such as ``driver: not supported``; shown to people.
    """

    reason: str

    def __bool__(self) -> NoReturn:
        raise TypeError(f"a missing value has no truth value ({self.reason}); test isinstance(x, Missing)")

    def __int__(self) -> NoReturn:
        raise TypeError(f"a missing value is not a number ({self.reason})")

    __index__ = __int__

    def __str__(self) -> str:
        return f"UNKNOWN ({self.reason})"
