"""What is always queued, how often something else is given, and how much is held: by class, over a window.

In: admissions, held spans and owned devices. Out: a :class:`CapacityReport`. All amounts are exact fractions.

A percentile is that of the nearest rank over whole microseconds: of n waits in order, the one at place ceil(n x p),
so it is always a wait that somebody had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm

from gpuledger.model.capacity import EVERY, Admission, CapacityLine, CapacityReport, HeldSpan, Outcome
from gpuledger.model.lifecycle import CPU
from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.model.usage import NO_NAME

ANY_CARD = "gpu"
"""The class, in any case of letters, of a card whose kind is not told: no placement by it is a fallback."""

NOTHING_STARTED = Missing("nothing that waited started in the window")
NOBODY_ASKED = Missing("nobody told since when it waited")
NOT_REQUESTED = Missing("no request for it is known in this time")
NOT_COMPARED = Missing("no request could be held against a placement whose class is known")
ONLY_ASKED = Missing("either of several was asked for; what is held counts for the class that was given")
CARD_UNTOLD = Missing("some who asked for it hold cards whose class is not told")
NO_DEVICES = Missing("class cpu holds no devices")
NEVER_HELD = Missing("nothing was held")
NOT_OWNED = Missing("no agent has seen a device of this class")


def alternatives(requested: str) -> tuple[str, ...]:
    """The classes that meet a request: ``A|B`` is met by either."""
    return tuple(part for part in (each.strip() for each in requested.split("|")) if part)


def is_any_card(class_name: str) -> bool:
    """Whether a class only says that it is a GPU."""
    return class_name.casefold() == ANY_CARD


def fell_back(admission: Admission) -> bool | Missing:
    """Whether something else was given than asked for; Missing where the request or the placement is not known."""
    wanted, placed = alternatives(admission.requested), admission.placed
    if not wanted or not placed or is_any_card(placed):
        return NOT_COMPARED
    return placed not in wanted and (placed == CPU or not any(is_any_card(each) for each in wanted))


def nearest_rank(ordered: Sequence[int], percent: int) -> int:
    """The value at place ceil(n x percent / 100) of values in order."""
    return ordered[max(-(-len(ordered) * percent // 100), 1) - 1]


def union_us(spans: Iterable[tuple[int, int]]) -> int:
    """Microseconds in which at least one of the spans lies."""
    total = last_us = 0
    for since_us, until_us in sorted(spans):
        begins_us = max(since_us, last_us) if total else since_us
        if until_us > begins_us:
            total += until_us - begins_us
            last_us = until_us
    return total


def held_over(spans: Iterable[HeldSpan], since_us: int, until_us: int) -> tuple[Fraction, int | Missing, Fraction]:
    """Most devices held at once and when first, and the mean over the window; all exact."""
    cut = [
        (max(span.since_us, since_us), min(span.until_us, until_us), span.amount)
        for span in spans
        if span.since_us < until_us and span.until_us > since_us and span.amount
    ]
    scale = lcm(*(amount.denominator for _, _, amount in cut))
    changes: Counter[int] = Counter()
    for begins_us, ends_us, amount in cut:
        whole = amount.numerator * (scale // amount.denominator)
        changes[begins_us] += whole
        changes[ends_us] -= whole
    level = peak = total = 0
    peak_at_us: int | Missing = NEVER_HELD
    last_us = since_us
    for at_us in sorted(changes):
        total += level * (at_us - last_us)
        level, last_us = level + changes[at_us], at_us
        if level > peak:
            peak, peak_at_us = level, at_us
    length_us = until_us - since_us
    return Fraction(peak, scale), peak_at_us, Fraction(total, scale * length_us) if length_us else Fraction(0)


def capacity(
    *,
    since_us: int,
    until_us: int,
    admissions: Iterable[Admission],
    held: Iterable[HeldSpan],
    owned: Mapping[str, int],
    class_name: str = "",
) -> CapacityReport:
    """The answer of ``capacity``.

    Args:
        since_us, until_us: the window, half-open, microseconds UTC.
        admissions: of every workload, any order; what does not touch the window is left out.
        held: of every workload, any order.
        owned: known devices by class.
        class_name: only this class, and requests that it meets; empty for all.
    """
    asked = [each for each in admissions if _touches(each, since_us, until_us)]
    spans = [span for span in held if span.since_us < until_us and span.until_us > since_us]
    by_class: dict[str, list[Admission]] = {}
    for each in asked:
        by_class.setdefault(_line_of(each), []).append(each)
    held_by: dict[str, list[HeldSpan]] = {}
    for span in spans:
        held_by.setdefault(span.class_name, []).append(span)
    names = {*by_class, *(name for name in held_by if name), *owned}
    if class_name:
        names = {name for name in names if class_name in (name, *alternatives(name))}
    uncertain = {
        name
        for each in asked
        if is_any_card(each.placed)
        for name in alternatives(each.requested)
        if name != each.placed
    }
    window = (since_us, until_us)
    lines = [
        _line(
            name,
            by_class.get(name, ()),
            _held(name, held_by.get(name, ()), uncertain, window),
            owned.get(name, NOT_OWNED),
            window,
        )
        for name in sorted(names, key=lambda name: (name.casefold(), name))
    ]
    shown = set(names)
    chosen = [each for each in asked if _line_of(each) in shown]
    all_held = [span for span in spans if span.class_name in shown and span.class_name != CPU]
    known = [owned[name] for name in names if name in owned]
    all_known = {span.class_name for span in all_held} <= {*owned, ""}
    overall = _line(
        EVERY,
        chosen,
        held_over(all_held, *window) if all_held else (NEVER_HELD, NEVER_HELD, NEVER_HELD),
        sum(known) if known and all_known else _not_all(known),
        window,
    )
    return CapacityReport(
        since_us=since_us,
        until_us=until_us,
        lines=tuple(lines),
        overall=overall,
        answered=bool(asked or spans),
        problems=_problems(spans),
    )


def _not_all(known: Sequence[int]) -> Missing:
    return Missing("no agent has seen devices of every class that is held") if known else NOT_OWNED


def _touches(admission: Admission, since_us: int, until_us: int) -> bool:
    asked_us = admission.until_us if isinstance(admission.asked_us, Missing) else admission.asked_us
    return asked_us < until_us and (admission.until_us >= since_us)


def _line_of(admission: Admission) -> str:
    return "|".join(alternatives(admission.requested)) or admission.placed or NO_NAME


def _held(
    name: str, spans: Sequence[HeldSpan], uncertain: set[str], window: tuple[int, int]
) -> tuple[Fraction | Missing, int | Missing, Fraction | Missing]:
    why: Missing | None = None
    if name == CPU:
        why = NO_DEVICES
    elif len(alternatives(name)) > 1:
        why = ONLY_ASKED
    elif name in uncertain:
        why = CARD_UNTOLD
    return held_over(spans, *window) if why is None else (why, why, why)


def _line(
    name: str,
    admissions: Sequence[Admission],
    held: tuple[Fraction | Missing, int | Missing, Fraction | Missing],
    owned: int | Missing,
    window: tuple[int, int],
) -> CapacityLine:
    since_us, until_us = window
    inside = [each for each in admissions if since_us <= each.until_us < until_us]
    started = [each for each in inside if each.outcome is Outcome.STARTED]
    waits = sorted(each.until_us - each.asked_us for each in started if not isinstance(each.asked_us, Missing))
    spans = [
        (max(each.asked_us, since_us), min(each.until_us, until_us))
        for each in admissions
        if not isinstance(each.asked_us, Missing)
    ]
    verdicts = [(each, fell_back(each)) for each in started]
    compared = [(each, verdict) for each, verdict in verdicts if not isinstance(verdict, Missing)]
    instead = Counter(each.placed for each, verdict in compared if verdict)
    peak, peak_at_us, mean = held
    return CapacityLine(
        class_name=name,
        started=len(started),
        gave_up=_count(inside, lambda each: each.outcome is Outcome.GAVE_UP),
        # one that started or gave up after the window still waited at its end
        waiting=_count(
            admissions,
            lambda each: (
                (each.until_us >= until_us and not isinstance(each.asked_us, Missing))
                or each.outcome is Outcome.WAITING
            ),
        ),
        unasked=_count(started, lambda each: isinstance(each.asked_us, Missing)),
        wait_p50_us=nearest_rank(waits, 50) if waits else NOTHING_STARTED,
        wait_p95_us=nearest_rank(waits, 95) if waits else NOTHING_STARTED,
        waited_us=union_us(spans) if spans else (NOBODY_ASKED if admissions else NOT_REQUESTED),
        compared=len(compared),
        fallbacks=sum(instead.values()) if compared else NOT_COMPARED,
        instead=tuple(sorted(instead.items(), key=lambda each: (-each[1], each[0]))),
        peak=peak,
        peak_at_us=peak_at_us,
        mean=mean,
        owned=owned,
    )


def _count(admissions: Sequence[Admission], wanted: Callable[[Admission], bool]) -> int:
    return sum(1 for each in admissions if wanted(each))


def _problems(spans: Sequence[HeldSpan]) -> tuple[Problem, ...]:
    unplaced = sum(1 for span in spans if not span.class_name)
    if not unplaced:
        return ()
    message = f"{unplaced:,} spans held devices of which no placement is known; they are in no class, and in no peak"
    return (Problem(code="unplaced", message=message),)
