"""The way from a number back to its evidence: a tree of titled nodes."""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.model.missing import Missing

Figure = str | int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One step of the way: a total, a record, or a row of evidence.

    Args:
        title: what it is, in a sentence.
        figures: name and value pairs, in reading order; units last in the name (``context_ms``).
        refs: references of the rows meant, what ``explain`` takes.
        children: what it rests on.
    """

    title: str
    figures: tuple[tuple[str, Figure], ...] = ()
    refs: tuple[str, ...] = ()
    children: tuple[Explanation, ...] = ()
