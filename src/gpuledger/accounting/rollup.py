"""Rollup: amounts to the answer of ``usage``. Sums by what people ask; what has no name stays apart, whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuledger.accounting import coverage as covering
from gpuledger.accounting import living
from gpuledger.accounting.amounts import Amount, Grain, OpenContext
from gpuledger.accounting.meanings import cause_sentence
from gpuledger.accounting.owners import Naming
from gpuledger.errors import Misconfigured
from gpuledger.model.meters import GPU_BUSY, GPU_CONTEXT, Grade, Meter
from gpuledger.model.missing import Missing
from gpuledger.model.moments import iso
from gpuledger.model.problem import Problem
from gpuledger.model.quantities import Coverage
from gpuledger.model.reasons import UNATTRIBUTED
from gpuledger.model.usage import BY, NO_NAME, TIME_BY, UnattributedLine, UsageReport, UsageRow

NOT_SAMPLED = Missing("no SM activity was sampled")
NOT_ASKED = Missing("busy time stands beside context time only")

_GRAINS: dict[str, frozenset[Grain]] = {
    "hour": frozenset({Grain.HOUR}),
    "day": frozenset({Grain.HOUR, Grain.DAY}),
    "month": frozenset({Grain.HOUR, Grain.DAY}),
}
"""The grains fine enough for each grouping by time."""


def parse_by(text: str) -> tuple[str, ...]:
    """Groupings as people type them: ``service,day``. Empty text asks for the total alone.

    Raises:
        Misconfigured: ``bad-grouping`` when a word is none of :data:`~gpuledger.model.usage.BY`, or stands twice.
    """
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for place, word in enumerate(words):
        if word not in BY:
            raise Misconfigured("bad-grouping", f"cannot group by {word!r}", hint=f"--by takes {', '.join(BY)}")
        if word in words[:place]:
            raise Misconfigured("bad-grouping", f"{word!r} stands twice in --by", hint="name each grouping once")
    return words


class Grouping:
    """Gives every named amount its group.

    Args:
        by: groupings, out of :data:`~gpuledger.model.usage.BY`.
        naming: resolves subjects.
        classes: the class of each ``(host, device)``; ``-`` where none was seen.

    ``explain`` uses it too, to find the amounts behind one row.
    """

    def __init__(self, by: Sequence[str], naming: Naming, classes: Mapping[tuple[str, str], str]) -> None:
        self._naming = naming
        self._classes = classes
        self._pickers: list[Callable[[Amount], str]] = [self._picker(word) for word in by]
        self._only = self._pickers[0] if len(self._pickers) == 1 else None
        self._grains = frozenset(Grain).intersection(*(_GRAINS[word] for word in by if word in _GRAINS))

    def key(self, amount: Amount) -> tuple[str, ...]:
        """The values of ``by`` for an amount that has a name."""
        if amount.grain not in self._grains:
            raise ValueError(f"an amount of grain {amount.grain} is too coarse for this grouping")
        return (self._only(amount),) if self._only else tuple(pick(amount) for pick in self._pickers)

    def _picker(self, word: str) -> Callable[[Amount], str]:
        match word:
            case "service":
                return lambda amount: self._naming.service(amount.subject)
            case "user" | "team" | "project" | "workload" | "subject":
                return lambda amount: str(getattr(self._naming.owner(amount.subject, amount.at_us), word))
            case "class":
                return lambda amount: self._classes.get((amount.host, amount.device), NO_NAME)
            case "device" | "host":
                return lambda amount: str(getattr(amount, word))
            case "host-owner":
                return lambda amount: self._naming.host_owner(amount.host, amount.at_us)
            case "hour":
                return lambda amount: iso(amount.at_us)
            case "day":
                return lambda amount: iso(amount.at_us)[:10]
            case "month":
                return lambda amount: iso(amount.at_us)[:7]
        raise ValueError(f"not a grouping: {word}")


@dataclass(slots=True)
class _Sum:
    """A running sum of one group."""

    quantity: int = 0
    settled: int = 0
    observed: int = 0
    provisional: int = 0
    busy_ms: int = 0
    counted: bool = False
    sampled: bool = False

    def add(self, amount: Amount) -> None:
        self.counted = True
        self.quantity += amount.quantity
        self.settled += amount.settled
        self.observed += amount.observed
        self.provisional += amount.quantity if amount.provisional else 0

    def add_busy(self, amount: Amount) -> None:
        self.sampled = True
        self.busy_ms += amount.quantity


def roll_up(
    *,
    meter: Meter,
    by: Sequence[str],
    since_us: int,
    until_us: int,
    amounts: Iterable[Amount],
    naming: Naming,
    classes: Mapping[tuple[str, str], str],
    coverage: Iterable[Coverage],
    open_contexts: Iterable[OpenContext] = (),
    problems: Iterable[Problem] = (),
    seen_once: Mapping[str, int] | None = None,
    unsampled: bool = False,
) -> UsageReport:
    """Sum one meter by what is asked.

    ``total = rows + unattributed`` exactly: an amount without a name goes to its cause, whatever else is
    known of it. Groups whose sum is 0 on every count are left out.

    Args:
        meter: what is summed.
        by: groupings, in the order of the rows' keys; none for the total alone.
        since_us, until_us: the window.
        amounts: of ``meter``; where that is ``gpu.context``, those of ``gpu.busy`` may come too and stand beside.
        naming, classes: as in :class:`Grouping`.
        coverage: spans of every device, filling the window.
        open_contexts: of this window; only ``gpu.context`` lists them.
        seen_once: contexts without a length, counted by subject; only ``gpu.context`` lists them.
        problems, unsampled: handed through.
    """
    grouping = Grouping(by, naming, classes)
    named: dict[tuple[str, ...], _Sum] = defaultdict(_Sum)
    unnamed: dict[str, _Sum] = defaultdict(_Sum)
    for amount in amounts:
        if amount.subject.startswith(UNATTRIBUTED):
            line = unnamed[amount.subject.removeprefix(UNATTRIBUTED)]
        else:
            line = named[grouping.key(amount)]
        if amount.meter == meter.name:
            line.add(amount)
        elif meter is GPU_CONTEXT and amount.meter == GPU_BUSY.name:
            line.add_busy(amount)
        else:
            raise ValueError(f"an amount of {amount.meter} does not belong to {meter.name}")
    beside = meter is GPU_CONTEXT
    rows = [
        UsageRow(
            key=key,
            quantity=line.quantity,
            settled=line.settled,
            observed=line.observed,
            provisional=line.provisional,
            busy_ms=_busy(line, beside=beside),
        )
        for key, line in named.items()
        if _says_something(line)
    ]
    causes = [
        UnattributedLine(
            cause=cause,
            meaning=cause_sentence(cause),
            quantity=line.quantity,
            settled=line.settled,
            observed=line.observed,
            provisional=line.provisional,
            busy_ms=_busy(line, beside=beside),
        )
        for cause, line in unnamed.items()
        if _says_something(line)
    ]
    unknown, watched = covering.size(coverage)
    contexts = tuple(open_contexts) if Grade.SETTLED in meter.grades else ()
    times = [place for place, word in enumerate(by) if word in TIME_BY]
    return UsageReport(
        meter=meter.name,
        unit=meter.unit,
        note=meter.sentence,
        sampled=Grade.SAMPLED in meter.grades,
        since_us=since_us,
        until_us=until_us,
        by=tuple(by),
        rows=tuple(sorted(rows, key=lambda row: ([row.key[place] for place in times], -row.quantity, row.key))),
        unattributed=tuple(sorted(causes, key=lambda line: (-line.quantity, line.cause))),
        unsettled=living.unsettled(contexts, naming, at_us=until_us - 1),
        unknown=unknown,
        sizes=covering.by_reason(unknown),
        watched=watched,
        never_accounted=living.never_accounted(contexts, naming, at_us=until_us - 1),
        problems=tuple(problems),
        seen_once=living.seen_once(seen_once or {}, naming, at_us=until_us - 1) if meter is GPU_CONTEXT else (),
        unsampled=unsampled,
    )


def _says_something(line: _Sum) -> bool:
    # A record that a correction took back entirely leaves no line; a busy sample without a context does not make one.
    return line.counted and bool(line.quantity or line.settled or line.observed or line.provisional)


def _busy(line: _Sum, *, beside: bool) -> int | Missing:
    if not beside:
        return NOT_ASKED
    return line.busy_ms if line.sampled else NOT_SAMPLED
