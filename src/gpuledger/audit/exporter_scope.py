"""Whose figures an exporter puts on pods: those of the pod's processes, or those of the whole device.

Judged by what was really emitted, never by a version. Only ``DCGM_FI_DEV_GPU_UTIL`` and ``DCGM_FI_DEV_FB_USED`` can be
of a process (dcgm-exporter's change #594); everything else is of the device, whatever label it carries. What one that
maps processes leaves in a scrape:

- pods of one device with figures of their own;
- the device's own row, without a pod, beside them.

What one leaves that does not: each pod of a device with the same figure, the device's; or one pod on its only row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from gpuledger.audit.exporter_rows import NOBODY, Pod, Rows, Unit
from gpuledger.audit.exporter_words import FB_USED, GPU_UTIL, MAPPED, PROF
from gpuledger.audit.exposition_forms import DeviceHolders

_Values = dict[Pod, frozenset[Decimal]]


class Scope(StrEnum):
    """Whose figures stand on the rows of pods."""

    PROCESS = "process"
    DEVICE = "device"
    MIXED = "mixed"
    CANNOT_TELL = "cannot-tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitScope:
    """What the figures of one device or instance came to.

    Args:
        name: of the device or instance.
        scope: process, device, or cannot-tell.
        why: in one sentence.
        evidence: the figures that it rests on.
        by_values: whether figures of two pods prove it, rather than the shape of the rows.
    """

    name: str
    scope: Scope
    why: str
    evidence: tuple[str, ...] = ()
    by_values: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one text came to: the scope of all of it, and of each unit."""

    scope: Scope
    why: str
    units: tuple[UnitScope, ...]


def judge(rows: Rows, holders: Sequence[DeviceHolders] = ()) -> Judgement:
    """The scope of the figures on pods.

    Args:
        rows: of one text, or of two scrapes of one endpoint.
        holders: what the exporter's own log says of devices and pods.
    """
    units = [_unit(unit, queried=rows.queried) for unit in rows.units if unit.pods]
    units += [_holders(held) for held in holders]
    told = {unit.scope for unit in units} - {Scope.CANNOT_TELL}
    if not units:
        return Judgement(scope=Scope.CANNOT_TELL, why=_nobody(rows), units=())
    if len(told) > 1:
        count = {scope: sum(1 for unit in units if unit.scope is scope) for scope in sorted(told)}
        why = " and ".join(f"{number} by {scope}" for scope, number in count.items()) + ": exporters differ"
        return Judgement(scope=Scope.MIXED, why=why, units=tuple(units))
    scope = told.pop() if told else Scope.CANNOT_TELL
    clearest = min((unit for unit in units if unit.scope is scope), key=lambda unit: (not unit.by_values, unit.name))
    return Judgement(scope=scope, why=clearest.why, units=tuple(units))


def _nobody(rows: Rows) -> str:
    if not rows.samples:
        return "there is no figure of dcgm-exporter"
    if rows.pod_label or "exported_pod" in rows.labels:
        return "no row names a pod: nobody holds a device, or the exporter does not know who does"
    return "no row has a label for pods: the exporter does not ask the kubelet, or this is no cluster"


def _unit(unit: Unit, *, queried: bool) -> UnitScope:
    """One device or instance that has pods."""
    mapped = [metric for metric in MAPPED if any(pod != NOBODY for pod in unit.figures.get(metric, {}))]
    if not mapped:
        return _only_device_figures(unit)
    own: list[str] = []
    copied: list[str] = []
    for metric in mapped:
        values = {pod: unit.values(metric, pod) for pod in unit.figures[metric] if pod != NOBODY}
        device = unit.values(metric, NOBODY)
        shown = _shown(metric, values, device, has_row=NOBODY in unit.figures[metric])
        verdict = _metric(values, device, has_row=NOBODY in unit.figures[metric])
        if verdict is Scope.PROCESS:
            own.append(shown)
        elif verdict is Scope.DEVICE:
            copied.append(shown)
    several = len({pod for metric in mapped for pod in unit.figures[metric]} - {NOBODY})
    if own:
        why = (
            f"{several} pods of one device have figures of their own"
            if several > 1
            else "the pod's figure is not the device's, which stands beside it"
        )
        return UnitScope(name=unit.name, scope=Scope.PROCESS, why=why, evidence=tuple(own), by_values=True)
    twins = queried and not any(NOBODY in unit.figures[metric] for metric in mapped) and _memory_only(unit, mapped)
    if copied and twins:
        why = (
            "pods of one device have the same memory and no utilisation, in the answer to a query that may have left "
            "the device's own row out: copies of one model look so, and so does the device's figure"
        )
        return UnitScope(name=unit.name, scope=Scope.CANNOT_TELL, why=why, evidence=tuple(copied))
    if copied:
        why = f"{several} pods that are not idle share one device, and each has the same figure: the device's"
        return UnitScope(name=unit.name, scope=Scope.DEVICE, why=why, evidence=tuple(copied), by_values=True)
    return _by_shape(unit, mapped, several, queried=queried)


def _memory_only(unit: Unit, mapped: Sequence[str]) -> bool:
    """Whether no pod has a utilisation above 0, so that memory alone would tell."""
    return not any(any(unit.values(GPU_UTIL, pod)) for pod in unit.figures.get(GPU_UTIL, {})) and FB_USED in mapped


def _metric(values: _Values, device: frozenset[Decimal], *, has_row: bool) -> Scope:
    """What one metric's figures prove by themselves."""
    figures = [figure for figure in values.values() if figure]
    if not any(any(figure) for figure in figures):
        return Scope.CANNOT_TELL  # idle
    distinct = sorted(set(figures), key=sorted)
    compared = distinct[:_MOST_COMPARED]
    if any(one.isdisjoint(other) for one in compared for other in compared if one is not other):
        return Scope.PROCESS
    if has_row and device and all(one.isdisjoint(device) for one in distinct):
        return Scope.PROCESS
    if len(distinct) == 1 and len(figures) > 1:
        return Scope.DEVICE
    return Scope.CANNOT_TELL


def _by_shape(unit: Unit, mapped: Sequence[str], several: int, *, queried: bool) -> UnitScope:
    """A unit whose figures prove nothing: what the rows that stand there say."""
    metric = mapped[0]
    has_row = any(NOBODY in unit.figures[each] for each in mapped)
    idle = not any(any(unit.values(each, pod)) for each in mapped for pod in unit.figures[each] if pod != NOBODY)
    evidence = tuple(
        _shown(
            each,
            {pod: unit.values(each, pod) for pod in unit.figures[each] if pod != NOBODY},
            unit.values(each, NOBODY),
            has_row=NOBODY in unit.figures[each],
        )
        for each in mapped
    )
    if has_row:
        busy = [each for each in mapped if any(unit.values(each, NOBODY))]
        if idle and busy:
            reads = f"{shown_figures(unit.values(busy[0], NOBODY))} {_unit_of(busy[0])}"
            why = f"every pod reads 0 while the device reads {reads}: idle pods and unmapped processes look alike"
        elif idle:
            why = "all of it is idle: a figure of 0 is the device's and the pod's alike"
        else:
            why = "one pod holds the device, and its figure is the device's own: both scopes would say so"
        return UnitScope(name=unit.name, scope=Scope.CANNOT_TELL, why=why, evidence=evidence)
    if idle:
        why = "idle: a figure of 0 is the device's and the pod's alike"
    elif several > 1:
        why = "the pods' figures agree in part only: the text holds several moments"
    elif unit.instance:
        why = "one pod on the instance's row: it has the instance to itself, or others that share it are not named"
    elif queried:
        why = "one pod a device, in the answer to a query that may have left the device's own row out"
    else:
        why = (
            f"the one row of {metric} names a pod: it is the device's own row with a pod's name on it "
            "(an exporter that maps processes leaves the device's row beside the pod's)"
        )
        return UnitScope(name=unit.name, scope=Scope.DEVICE, why=why, evidence=evidence)
    return UnitScope(name=unit.name, scope=Scope.CANNOT_TELL, why=why, evidence=evidence)


def _only_device_figures(unit: Unit) -> UnitScope:
    """A unit with pods on figures that no exporter can split."""
    for metric in sorted(unit.figures, key=lambda name: (not name.startswith(PROF), name)):
        values = {pod: unit.values(metric, pod) for pod in unit.figures[metric] if pod != NOBODY}
        figures = [figure for figure in values.values() if figure]
        if metric.startswith(PROF) and len(figures) > 1 and len(set(figures)) == 1 and any(figures[0]):
            shown = _shown(metric, values, frozenset(), has_row=False)
            why = f"{len(figures)} pods that are not idle share one device, and each has the same figure: the device's"
            return UnitScope(name=unit.name, scope=Scope.DEVICE, why=why, evidence=(shown,), by_values=True)
    why = f"pods stand on figures of the device only; neither {' nor '.join(MAPPED)} is there with a figure"
    return UnitScope(name=unit.name, scope=Scope.CANNOT_TELL, why=why)


def _holders(held: DeviceHolders) -> UnitScope:
    """What the exporter's log of devices and pods says of the figures it will emit."""
    if held.sharing:
        why = (
            f"the exporter's log gives each of {len(held.pods)} pods a row of the device; whose figure, it does not say"
        )
        return UnitScope(name=held.device, scope=Scope.CANNOT_TELL, why=why, evidence=held.pods)
    if len(held.pods) > 1 and held.joined:
        why = (
            f"the exporter's log puts the device's figures on {held.joined}, one of {len(held.pods)} pods that hold it"
        )
        return UnitScope(name=held.device, scope=Scope.DEVICE, why=why, evidence=held.pods, by_values=True)
    why = f"the exporter's log knows one pod on the device, {', '.join(held.pods) or 'none'}"
    return UnitScope(name=held.device, scope=Scope.CANNOT_TELL, why=why, evidence=held.pods)


_MOST_COMPARED = 200
"""Pods of one device compared with each other; single figures that differ decide at the first pair."""

_MOST_SHOWN = 4


def _shown(metric: str, values: _Values, device: frozenset[Decimal], *, has_row: bool) -> str:
    """``DCGM_FI_DEV_GPU_UTIL: team-a/x 71, team-b/y 12, the device 83``."""
    parts = [f"{pod} {shown_figures(figures)}" for pod, figures in sorted(values.items())]
    if len(parts) > _MOST_SHOWN:
        parts[_MOST_SHOWN:] = [f"{len(parts) - _MOST_SHOWN} more pods"]
    parts.append(f"the device {shown_figures(device)}" if has_row else "no row of the device")
    return f"{metric}: " + ", ".join(parts)


def shown_figures(figures: frozenset[Decimal]) -> str:
    """The figures of one row, which are several where a text holds several scrapes."""
    return " and ".join(map(plain, sorted(figures))) if figures else "no figure"


def plain(figure: Decimal) -> str:
    """A figure without an exponent and without zeros that say nothing."""
    text = format(figure, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _unit_of(metric: str) -> str:
    return "MiB" if metric == MAPPED[1] else "%"
