"""Rate cards: what a unit of a meter costs, where and from when. Values only; no record ever holds a price.

A class pattern is a class with ``*`` for any run of characters but ``/``: a pattern without a slash means whole
devices, one with a slash means MIG slices of a parent. A card without a class means every whole device, or every slice
for ``mig.memory``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.model.missing import Missing

NO_RATES = Missing("the policy gives no rates")
"""A site that sets no rate card loses nothing: usage comes first."""

UNITS: dict[str, tuple[str, ...]] = {
    "gpu.reserved": ("device-hour", "replica-hour"),
    "cpu.reserved": ("hour",),
    "mig.memory": ("GiB-hour",),
    "tokens.input": ("1M-tokens",),
    "tokens.output": ("1M-tokens",),
    "tokens.cached": ("1M-tokens",),
    "tokens.reasoning": ("1M-tokens",),
}
"""The meters that money may follow from, each with the units in which it is priced."""

BASES = ("memory", "compute")
"""What a MIG slice is a part of its device by: memory slices, or compute slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCard:
    """One rate.

    Args:
        meter: what is counted; a key of :data:`UNITS`.
        rate: money for one unit, in the currency of the rates; 0 or more.
        unit: one of the meter's units.
        pool: the pool it holds in; empty for every pool.
        class_pattern: the classes it holds for; empty for all of its meter's kind.
        replicas: replicas of each device that it holds for; None for any number.
        basis: of slices: ``memory`` or ``compute``; empty for what is no slice.
        model_pattern: of tokens: models with ``*``; empty for all.
        effective_from_us: from when it holds, microseconds UTC.
        line: of the document.
    """

    meter: str
    rate: Decimal
    unit: str
    pool: str = ""
    class_pattern: str = ""
    replicas: int | None = None
    basis: str = ""
    model_pattern: str = ""
    effective_from_us: int = 0
    line: int = 0

    @property
    def scope(self) -> tuple[str, str, str, int | None, str]:
        """What it holds for: a later card of the same scope takes its place."""
        return (self.meter, self.pool, self.class_pattern, self.replicas, self.model_pattern)

    @property
    def words(self) -> str:
        """How people name it: ``gpu.reserved pool shared class H100* replicas 4``."""
        parts = [self.meter]
        parts += [f"pool {self.pool}"] if self.pool else []
        parts += [f"class {self.class_pattern}"] if self.class_pattern else []
        parts += [f"replicas {self.replicas}"] if self.replicas is not None else []
        parts += [f"model {self.model_pattern}"] if self.model_pattern else []
        return " ".join(parts)

    @property
    def pattern(self) -> str:
        """Its classes as one pattern, the empty one spelled out."""
        return self.class_pattern or ("*/*" if self.meter == "mig.memory" else "*")

    def holds_for(self, class_name: str, *, pool: str, replicas: int) -> bool:
        """Whether a device or slice of a class is priced by it, by whichever meter.

        Args:
            class_name: ``H100-80GB``, ``A100-SXM4-40GB/1g.5gb``.
            pool: where it stands; empty where that is not known.
            replicas: of each device; 1 where it is not shared.
        """
        return (
            self.meter in ("gpu.reserved", "mig.memory")
            and self.pool in ("", pool)
            and self.replicas in (None, replicas)
            and class_matches(self.pattern, class_name)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """All rates of a policy.

    Args:
        currency: ISO 4217; empty where money is never spoken of.
        cards: in the order of the document.
        never: whether the policy says ``money: never``: no price is ever shown.
    """

    currency: str = ""
    cards: tuple[RateCard, ...] = ()
    never: bool = False

    def at(self, at_us: int) -> tuple[RateCard, ...]:
        """The cards that hold at a moment: of each scope the latest that has begun."""
        latest: dict[tuple[str, str, str, int | None, str], RateCard] = {}
        for card in self.cards:
            held = latest.get(card.scope)
            if card.effective_from_us <= at_us and (held is None or held.effective_from_us <= card.effective_from_us):
                latest[card.scope] = card
        return tuple(card for card in self.cards if latest.get(card.scope) is card)

    def overlaps(self) -> Iterator[tuple[RateCard, RateCard]]:
        """Every two cards by which one line could be priced twice at some time, the later one second."""
        for place, second in enumerate(self.cards):
            for first in self.cards[:place]:
                if _both_price(first, second):
                    yield first, second


def _both_price(first: RateCard, second: RateCard) -> bool:
    if first.scope == second.scope:
        return first.effective_from_us == second.effective_from_us
    devices = {"gpu.reserved", "mig.memory"}
    if first.meter != second.meter and not {first.meter, second.meter} <= devices:
        return False
    pools = first.pool == second.pool or "" in (first.pool, second.pool)
    replicas = first.replicas == second.replicas or None in (first.replicas, second.replicas)
    models = patterns_meet(first.model_pattern or "*", second.model_pattern or "*", wall="")
    classes = first.meter not in devices or patterns_meet(first.pattern, second.pattern)
    return pools and replicas and models and classes


def class_matches(pattern: str, class_name: str) -> bool:
    """Whether a class is as a pattern in which ``*`` stands for anything but a slash."""
    wanted, given = pattern.split("/"), class_name.split("/")
    return len(wanted) == len(given) and all(
        re.fullmatch(".*".join(map(re.escape, re.split(r"\*+", part))), each, re.DOTALL) is not None
        for part, each in zip(wanted, given, strict=True)
    )


def patterns_meet(first: str, second: str, *, wall: str = "/") -> bool:
    """Whether any text is as both patterns.

    Args:
        first, second: texts with ``*`` for anything but the wall.
        wall: what ``*`` does not cross; empty: it crosses everything.
    """
    reached: set[tuple[int, int]] = set()
    waiting: Sequence[tuple[int, int]] = [(0, 0)]
    while waiting:
        further: list[tuple[int, int]] = []
        for state in waiting:
            if state in reached:
                continue
            reached.add(state)
            further += _steps(first, second, *state, wall)
        waiting = further
    return (len(first), len(second)) in reached


def _steps(first: str, second: str, at: int, on: int, wall: str) -> Iterator[tuple[int, int]]:
    """Where both patterns can stand after one more character, or after a star that stands for nothing."""
    one = first[at] if at < len(first) else ""
    two = second[on] if on < len(second) else ""
    if one == "*":
        yield at + 1, on
        if two and two != "*" and two != wall:
            yield at, on + 1
    if two == "*":
        yield at, on + 1
        if one and one != "*" and one != wall:
            yield at + 1, on
    if one and one == two:
        yield at + 1, on + 1
