"""Reserved time rolled up: exact products of seconds, devices and share, by what people ask; owned time beside.

Pure. Sums are fractions until a report rounds them, once.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from gpuledger.accounting.owners import Naming
from gpuledger.errors import Misconfigured
from gpuledger.model.identity import IdentityText
from gpuledger.model.meters import GPU_RESERVED, Meter
from gpuledger.model.moments import DAY_US, HOUR_US, SECOND_US, iso
from gpuledger.model.reserved import (
    LABEL,
    NOT_OWNED,
    PRODUCTS,
    RESERVED_BY,
    OwnedTime,
    ReservedAmount,
    ReservedGap,
    ReservedReport,
    ReservedRow,
    factor,
)
from gpuledger.model.usage import NO_NAME, TIME_BY

_OWNED_BY = frozenset({"class", "host", "host-owner", "device", *TIME_BY})
"""Groupings by which owned devices can be told apart."""

_TIME = {"hour": slice(None), "day": slice(10), "month": slice(7)}


def parse_reserved_by(text: str) -> tuple[str, ...]:
    """Groupings of reserved time as people type them: ``team,label:qos``. Empty text asks for the total alone.

    Raises:
        Misconfigured: ``bad-grouping`` when a word is none of them, or stands twice.
    """
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for place, word in enumerate(words):
        if word not in RESERVED_BY and not (word.startswith(LABEL) and word != LABEL):
            raise Misconfigured(
                "bad-grouping", f"cannot group by {word!r}", hint=f"--by takes {', '.join(RESERVED_BY)}, label:NAME"
            )
        if word in words[:place]:
            raise Misconfigured("bad-grouping", f"{word!r} stands twice in --by", hint="name each grouping once")
    return words


@dataclass(slots=True)
class _Sum:
    seconds: int = 0
    whole: dict[int, int] = field(default_factory=dict)
    """Numerators by denominator: to add fractions one by one costs ten times as much."""
    provisional: Fraction = Fraction(0)

    def add(self, amount: ReservedAmount, each: Fraction) -> None:
        self.seconds += amount.seconds
        self.whole[each.denominator] = self.whole.get(each.denominator, 0) + amount.seconds * each.numerator
        if amount.provisional:
            self.provisional += amount.seconds * each

    @property
    def quantity(self) -> Fraction:
        return sum((Fraction(number, of) for of, number in self.whole.items()), Fraction(0))


def roll_up_reserved(
    *,
    meter: Meter,
    by: Sequence[str],
    since_us: int,
    until_us: int,
    amounts: Iterable[ReservedAmount],
    naming: Naming,
    texts: dict[str, IdentityText],
    owned: Iterable[OwnedTime] = (),
    gaps: Iterable[ReservedGap] = (),
    told: bool = True,
) -> ReservedReport:
    """Sum one meter of reserved time by what is asked. Groups that hold nothing are left out.

    Args:
        meter: what is summed.
        by: groupings, in the order of the rows' keys; none for the total alone.
        since_us, until_us: the window.
        amounts: of ``meter``, fine enough for the groupings by time.
        naming, texts: resolve subjects.
        owned: physical devices known in the window, cut as finely as ``by`` needs.
        gaps, told: handed through.
    """
    unit, per_unit = PRODUCTS[meter.name]
    sums: dict[tuple[str, ...], _Sum] = defaultdict(_Sum)
    pickers = [_picker(word, naming, texts) for word in by]
    factors: dict[str, Fraction] = {}
    for amount in amounts:
        key = amount.placement.placement
        if key not in factors:
            factors[key] = factor(meter.name, amount.placement) * Fraction(1, per_unit)
        each = factors[key]
        devices = json.loads(amount.placement.devices) if "device" in by else []
        if devices:
            for device in devices:
                sums[tuple(pick(amount, device) for pick in pickers)].add(amount, each * Fraction(1, len(devices)))
        else:
            sums[tuple(pick(amount, NO_NAME) for pick in pickers)].add(amount, each)
    beside = _owned(owned, by, naming) if meter is GPU_RESERVED and _OWNED_BY.issuperset(by) else {}
    rows = [
        ReservedRow(
            key=key,
            seconds=line.seconds,
            quantity=line.quantity,
            provisional=line.provisional,
            owned=beside.get(key, NOT_OWNED),
        )
        for key, line in sums.items()
        if line.seconds or line.quantity
    ]
    times = [place for place, word in enumerate(by) if word in TIME_BY]
    held = {row.key for row in rows}
    # time in which nothing was reserved is no place that somebody could use more
    is_of_places = bool(by) and not times and told
    idle = sorted(((key, size) for key, size in beside.items() if is_of_places and key not in held), key=_largest)
    return ReservedReport(
        meter=meter.name,
        unit=unit,
        note=meter.sentence,
        since_us=since_us,
        until_us=until_us,
        by=tuple(by),
        rows=tuple(sorted(rows, key=lambda row: ([row.key[place] for place in times], -row.quantity, row.key))),
        gaps=in_order(gaps),
        told=told,
        idle=tuple(idle),
        owned=sum(beside.values(), Fraction(0)) if beside else NOT_OWNED,
    )


def _largest(group: tuple[tuple[str, ...], Fraction]) -> tuple[Fraction, tuple[str, ...]]:
    return -group[1], group[0]


def group_of(
    by: Sequence[str], naming: Naming, texts: dict[str, IdentityText]
) -> Callable[[ReservedAmount], tuple[str, ...]]:
    """Gives an amount its group; of a placement of several devices none."""
    pickers = [_picker(word, naming, texts) for word in by]
    return lambda amount: tuple(pick(amount, NO_NAME) for pick in pickers)


def in_order(gaps: Iterable[ReservedGap]) -> tuple[ReservedGap, ...]:
    """What reservations do not tell, largest first."""
    return tuple(sorted(gaps, key=lambda gap: (-abs(gap.seconds), gap.reason, gap.what, gap.since_us)))


def _picker(word: str, naming: Naming, texts: dict[str, IdentityText]) -> Callable[[ReservedAmount, str], str]:
    match word:
        case "service":
            return lambda amount, _: naming.service(amount.subject)
        case "user" | "team" | "project" | "workload" | "subject":
            return lambda amount, _: str(getattr(naming.owner(amount.subject, amount.at_us), word))
        case "class":
            return lambda amount, _: amount.placement.class_name
        case "region":
            return lambda amount, _: amount.placement.region or NO_NAME
        case "host":
            return lambda amount, _: amount.placement.machine or NO_NAME
        case "host-owner":
            return lambda amount, _: naming.host_owner(amount.placement.machine, amount.at_us)
        case "device":
            return lambda _, device: device
        case "hour" | "day" | "month":
            return lambda amount, _: iso(amount.at_us)[_TIME[word]]
    values: dict[str, str] = {}
    name = word.removeprefix(LABEL)

    def label(amount: ReservedAmount, _: str) -> str:
        if amount.subject not in values:
            text = texts.get(amount.subject)
            labels = json.loads(text.labels) if text is not None and text.labels else {}
            values[amount.subject] = str(labels.get(name, NO_NAME))
        return values[amount.subject]

    return label


def _owned(owned: Iterable[OwnedTime], by: Sequence[str], naming: Naming) -> dict[tuple[str, ...], Fraction]:
    """Device-seconds of what is known to be there, by group."""
    found: dict[tuple[str, ...], Fraction] = defaultdict(Fraction)
    for span in owned:
        for since_us, until_us in cut(span.since_us, span.until_us, step_us=grain_us(by)):
            values = {
                "class": span.class_name,
                "host": span.host,
                "device": span.device,
                "host-owner": naming.host_owner(span.host, since_us),
                **{word: iso(since_us - since_us % HOUR_US)[_TIME[word]] for word in TIME_BY},
            }
            found[tuple(values[word] for word in by)] += Fraction(until_us - since_us, SECOND_US)
    return found


def grain_us(by: Iterable[str]) -> int:
    """How finely time is cut for these groupings: an hour, a day, or 0 for the window as a whole."""
    words = set(by)
    if words & {"hour", "host-owner"}:
        return HOUR_US
    return DAY_US if words & {"day", "month"} else 0


def cut(since_us: int, until_us: int, *, step_us: int) -> Iterable[tuple[int, int]]:
    """A span cut at whole steps; as it is where the step is 0."""
    at_us = since_us
    while at_us < until_us:
        end_us = min(until_us, at_us - at_us % step_us + step_us) if step_us else until_us
        yield at_us, end_us
        at_us = end_us
