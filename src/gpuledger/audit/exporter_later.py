"""Two scrapes of one endpoint: which figures moved between them, and what the second tells that the first could not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpuledger.audit import exporter_checks as checks
from gpuledger.audit.exporter_rows import NOBODY
from gpuledger.audit.exporter_scope import Judgement, Scope, UnitScope
from gpuledger.audit.exporter_scrape import Scrape
from gpuledger.audit.exporter_words import ENERGY, GPU_UTIL, POWER, canonical
from gpuledger.model.durations import several
from gpuledger.model.findings import Finding

_Key = tuple[str, frozenset[tuple[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What changed between two scrapes.

    Args:
        both: series that stand in both.
        moved: how many of them have another figure.
        energy: how many of their counters of energy moved, and of how many.
        gone: series of the first that the second lacks.
        new: series of the second that the first lacks.
    """

    both: int
    moved: int
    energy: tuple[int, int]
    gone: int
    new: int


def moved_between(first: Scrape, second: Scrape) -> Moved:
    """Figures of dcgm-exporter compared, series by series; labels in any order."""
    before, after = _figures(first), _figures(second)
    both = before.keys() & after.keys()
    moved = {key for key in both if before[key] != after[key]}
    energy = {key for key in both if canonical(key[0]) == ENERGY}
    return Moved(
        both=len(both),
        moved=len(moved),
        energy=(len(energy & moved), len(energy)),
        gone=len(before.keys() - both),
        new=len(after.keys() - both),
    )


def _figures(scrape: Scrape) -> dict[_Key, str]:
    by_block = {id(sample.labels): frozenset(sample.labels.items()) for sample in scrape.exposition.samples}
    return {
        (sample.name, by_block[id(sample.labels)]): sample.value
        for sample in scrape.exposition.samples
        if canonical(sample.name)[:5] == "DCGM_"
    }


def stuck(first: Scrape, second: Scrape, moved: Moved, seconds: int) -> Iterator[Finding]:
    """A finding where nothing moved although the device draws power or works.

    Args:
        first: the earlier scrape.
        second: the later one.
        moved: what :func:`moved_between` said of them.
        seconds: between them.
    """
    busy = any(any(unit.values(metric, pod)) for unit in first.rows.units for metric in (GPU_UTIL, POWER)
               for pod in (NOBODY, *unit.pods))  # fmt: skip
    if moved.both and not moved.moved and busy:
        counters = ", counters of energy among them" if moved.energy[1] else ""
        message = f"none of {several(moved.both, 'figure')} moved in {several(seconds, 'second')}{counters}"
        yield Finding(check=checks.STUCK, where=second.where("exporter"), message=message)


def judged_together(first: Judgement, second: Judgement) -> Judgement:
    """One judgement of two: what either could tell; mixed where they contradict each other."""
    if first.scope is second.scope or second.scope is Scope.CANNOT_TELL:
        return first
    if first.scope is Scope.CANNOT_TELL:
        return replace(second, units=_merged(first.units, second.units))
    why = f"the first scrape says {first.scope} ({first.why}), the second {second.scope} ({second.why})"
    return Judgement(scope=Scope.MIXED, why=why, units=_merged(first.units, second.units))


def _merged(first: tuple[UnitScope, ...], second: tuple[UnitScope, ...]) -> tuple[UnitScope, ...]:
    by_name = {unit.name: unit for unit in first}
    for unit in second:
        if unit.scope is not Scope.CANNOT_TELL or unit.name not in by_name:
            by_name[unit.name] = unit
    return tuple(by_name[name] for name in sorted(by_name))
