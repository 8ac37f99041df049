"""The keys of ``top``: a key and the view as it is give the view as it becomes. Nothing is read or drawn here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gpuledger.model.holders import Arrangement, Grouping, Order

_ORDERS = {"m": Order.MEMORY, "t": Order.HELD, "b": Order.BUSY, "n": Order.NAME}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a person has chosen to see.

    Args:
        arrangement: how rows are made and sorted.
        is_paused: no new looks.
        is_helping: the keys are explained.
        is_over: the view is to end.
    """

    arrangement: Arrangement = field(default_factory=Arrangement)
    is_paused: bool = False
    is_helping: bool = False
    is_over: bool = False


def pressed(key: str, view: View) -> View:
    """The view after a key; the same where the key means nothing. Another order begins with its most."""
    arrangement = view.arrangement
    match key:
        case "q" | "Q":
            return replace(view, is_over=True)
        case " ":
            return replace(view, is_paused=not view.is_paused)
        case "?" | "h":
            return replace(view, is_helping=not view.is_helping)
        case "g":
            groupings = list(Grouping)
            following = groupings[(groupings.index(arrangement.by) + 1) % len(groupings)]
            return replace(view, arrangement=replace(arrangement, by=following))
        case "r":
            return replace(view, arrangement=replace(arrangement, is_reversed=not arrangement.is_reversed))
        case "m" | "t" | "b" | "n":
            return replace(view, arrangement=replace(arrangement, order=_ORDERS[key], is_reversed=False))
        case _:
            return view
