"""Rules of ``audit exporter`` about figures: whose they are where pods share a device, and what is counted twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from gpuledger.audit import exporter_checks as checks
from gpuledger.audit.exporter_rows import NOBODY, Unit
from gpuledger.audit.exporter_scope import Scope, plain, shown_figures
from gpuledger.audit.exporter_scrape import Scrape, first_line, line_of, listed
from gpuledger.audit.exporter_words import (
    ENERGY,
    FB_USED,
    GPU_UTIL,
    HOST_LABELS,
    MAPPED,
    POD_LABELS,
    POWER,
    UTIL_TOLERANCE,
    Kind,
    is_named,
    kind_of,
)
from gpuledger.audit.exposition import Labels
from gpuledger.model.durations import several
from gpuledger.model.findings import Finding


def _scope(scrape: Scrape) -> Iterator[Finding]:
    by_name = {unit.name: unit for unit in scrape.rows.units}
    for judged in scrape.judgement.units:
        unit = by_name.get(judged.name)
        if judged.scope is not Scope.DEVICE:
            continue
        check = checks.DEVICE_SCOPE if judged.by_values else checks.ONE_POD
        line = first_line(unit) if unit else scrape.exposition.holders[0].line
        yield Finding(check=check, where=scrape.where(judged.name, line), message=judged.why, evidence=judged.evidence)
    if scrape.judgement.scope is Scope.CANNOT_TELL and (scrape.rows.samples or scrape.exposition.holders):
        evidence = tuple(line for judged in scrape.judgement.units[:3] for line in judged.evidence)
        where = scrape.where("scope")
        yield Finding(check=checks.UNDECIDED, where=where, message=scrape.judgement.why, evidence=evidence)


def _device_figures(scrape: Scrape) -> Iterator[Finding]:
    """Figures of devices on rows of pods: profiling apart, since every one of them is at fault there."""
    for unit in scrape.rows.units:
        pods = unit.pods
        if not pods:
            continue
        named = {kind: _on_pods(unit, kind) for kind in (Kind.PROFILING, Kind.DEVICE)}
        if metrics := named[Kind.PROFILING]:
            alone = len(pods) == 1
            if alone and unit.instance:
                continue  # counted by the instance, which the pod has to itself
            check = checks.PROFILING_ONE if alone else checks.PROFILING
            message = f"{listed(metrics)} of {_whole(unit)} on the rows of {listed(list(map(str, pods)))}"
            place = scrape.where(unit.name, min(line_of(unit, metric) for metric in metrics))
            yield Finding(check=check, where=place, message=message, evidence=_copies(unit, metrics))
        if (metrics := named[Kind.DEVICE]) and len(pods) > 1:
            message = f"{listed(metrics)} of {_whole(unit)}, repeated whole on the rows of {several(len(pods), 'pod')}"
            place = scrape.where(unit.name, min(line_of(unit, metric) for metric in metrics))
            yield Finding(check=checks.DEVICE_FIGURES, where=place, message=message, evidence=_copies(unit, metrics))


def _on_pods(unit: Unit, kind: Kind) -> list[str]:
    return sorted(
        metric
        for metric, pods in unit.figures.items()
        if kind_of(metric) is kind and any(pod != NOBODY for pod in pods)
    )


def _whole(unit: Unit) -> str:
    return "the instance" if unit.instance else "the device"


def _copies(unit: Unit, metrics: Sequence[str]) -> tuple[str, ...]:
    """The figures of a few metrics by pod, those that are not 0 first."""
    told = []
    for metric in sorted(metrics, key=lambda name: (not _busy(unit, name), name))[:3]:
        shown = [f"{pod} {shown_figures(unit.values(metric, pod))}" for pod in unit.pods[:3]]
        told.append(f"{metric}: " + ", ".join(shown))
    return tuple(told)


def _busy(unit: Unit, metric: str) -> bool:
    return any(any(unit.values(metric, pod)) for pod in unit.figures.get(metric, {}))


def _jobs(scrape: Scrape) -> Iterator[Finding]:
    """Batch jobs that share a device: each has its whole figure (the mapping file names jobs, and no process)."""
    for unit in scrape.rows.units:
        shared: dict[str, list[tuple[str, str]]] = {}
        for metric, pods in unit.figures.items():
            rows = [row for samples in pods.values() for row in samples if row.labels.get("hpc_job")]
            if len({row.labels["hpc_job"] for row in rows}) > 1:
                shared[metric] = [(row.labels["hpc_job"], row.value) for row in rows]
        if shared:
            jobs = sorted({job for rows in shared.values() for job, _ in rows})
            message = f"{listed(sorted(shared))} of {_whole(unit)}, whole on the rows of jobs {listed(jobs)}"
            evidence = tuple(
                f"{metric}: " + ", ".join(f"job {job} {value}" for job, value in rows[:4])
                for metric, rows in sorted(shared.items())[:3]
            )
            place = scrape.where(unit.name, min(line_of(unit, metric) for metric in shared))
            yield Finding(check=checks.JOBS, where=place, message=message, evidence=evidence)


def _counted_twice(scrape: Scrape) -> Iterator[Finding]:
    """The device's row beside those of pods, several rows of one pod, and pods that exceed their device."""
    for unit in scrape.rows.units:
        for metric, pods in unit.figures.items():
            if kind_of(metric) is Kind.OTHER or (len(pods) < 2 and NOBODY in pods):
                continue
            if NOBODY in pods and metric in MAPPED:
                yield from _beside(scrape, unit, metric)
            if metric in MAPPED:
                yield from _slots(scrape, unit, metric)


def _beside(scrape: Scrape, unit: Unit, metric: str) -> Iterator[Finding]:
    device = max(unit.values(metric, NOBODY), default=None)
    if device is None:
        return
    rows = [figure for pod in unit.figures[metric] for figure, _ in unit.numbers(metric, pod)]
    figures = {pod: unit.values(metric, pod) for pod in unit.figures[metric] if pod != NOBODY}
    by_pod = {pod: max(told) for pod, told in figures.items() if told}
    if not by_pod:
        return
    word = "MiB" if metric == FB_USED else "%"
    message = (
        f"sum({metric}) over this device gives {plain(sum(rows, Decimal(0)))} {word}; the device reads {plain(device)}"
    )
    place = scrape.where(unit.name, line_of(unit, metric, NOBODY))
    evidence = tuple(f"{pod} {plain(figure)}" for pod, figure in sorted(by_pod.items())[:5])
    yield Finding(check=checks.DOUBLE_COUNT, where=place, message=message, evidence=evidence)
    total = sum(by_pod.values(), Decimal(0))
    tolerance = UTIL_TOLERANCE if metric == GPU_UTIL else Decimal(0)
    copied = len(by_pod) > 1 and set(by_pod.values()) == {device}
    if total > device + tolerance and not copied:
        message = f"pods of one device add up to {plain(total)} {word} of {metric}, the device reads {plain(device)}"
        yield Finding(check=checks.ABOVE_DEVICE, where=place, message=message, evidence=evidence)


def _slots(scrape: Scrape, unit: Unit, metric: str) -> Iterator[Finding]:
    for pod, samples in sorted(unit.figures[metric].items()):
        distinct = {(labels.get("vgpu", ""), _container(labels)) for labels in (row.labels for row in samples)}
        if pod == NOBODY or len(distinct) < 2:
            continue
        figures = [figure for figure, _ in unit.numbers(metric, pod)]
        shown = ", ".join(map(plain, figures[:6]))
        message = f"{pod} has {len(samples)} rows of {metric} on one device: {shown}"
        evidence = tuple(
            f"vgpu {vgpu or '-'}, container {container or '-'}" for vgpu, container in sorted(distinct)[:5]
        )
        place = scrape.where(f"{unit.name} {pod}", samples[0].line)
        yield Finding(check=checks.REPLICA_ROWS, where=place, message=message, evidence=evidence)


def _container(labels: Labels) -> str:
    return next((labels[names[2]] for names in POD_LABELS if labels.get(names[2])), "")


def _repeated(scrape: Scrape) -> Iterator[Finding]:
    repeated = scrape.rows.repeated
    if not repeated:
        return
    times = max(times for _, times in repeated)
    parts = f"the text describes its metrics {scrape.exposition.scrapes} times, so it holds that many scrapes"
    reason = (
        parts if scrape.exposition.scrapes > 1 else "in one scrape that is a row for each replica without a vgpu label"
    )
    message = (
        f"{several(len(repeated), 'series', 'series')} of {scrape.rows.series} stand up to {times} times: {reason}"
    )
    sample = min((sample for sample, _ in repeated), key=lambda sample: sample.line)
    place = scrape.where(sample.name, sample.line)
    yield Finding(
        check=checks.REPEATED, where=place, message=message, evidence=(f"again: {sample.name} {sample.value}",)
    )


def _two_exporters(scrape: Scrape) -> Iterator[Finding]:
    """One device, told under two hosts or instances: two exporters on its node, or one before and after a restart."""
    for unit in scrape.rows.units:
        if not is_named(unit.uuid):
            continue
        metric = GPU_UTIL if GPU_UTIL in unit.figures else next(iter(unit.figures))
        for pod, rows in unit.figures[metric].items():
            told = {_exporter_of(row.labels): row for row in rows}
            if len(told) > 1:
                who = listed(sorted(filter(None, told)))
                whose = "" if pod == NOBODY else f" of {pod}"
                message = f"{len(told)} exporters tell {metric}{whose}: {who}"
                evidence = tuple(f"{name or 'no host label'}: {row.value}" for name, row in sorted(told.items())[:4])
                place = scrape.where(unit.name, min(row.line for row in told.values()))
                yield Finding(check=checks.TWO_EXPORTERS, where=place, message=message, evidence=evidence)
                break


def _exporter_of(labels: Labels) -> str:
    """What tells one exporter from another: its host label, and where Prometheus found it."""
    names = (*HOST_LABELS, "instance")
    return " at ".join(dict.fromkeys(labels[name] for name in names if labels.get(name)))


def _on_instances(scrape: Scrape) -> Iterator[Finding]:
    """Power and energy, which MIG does not split, on each instance of a device."""
    by_device: dict[tuple[str, str, str], list[Unit]] = {}
    for unit in scrape.rows.units:
        if unit.instance:
            by_device.setdefault(unit.device, []).append(unit)
    for units in by_device.values():
        metrics = [name for name in (ENERGY, POWER) if sum(name in unit.figures for unit in units) > 1]
        if not metrics:
            continue
        evidence = []
        for metric in metrics:
            figures = [
                figure for unit in units for pod in unit.pods or (NOBODY,) for figure in unit.values(metric, pod)
            ]
            evidence.append(
                f"{metric}: {', '.join(map(plain, figures[:4]))}; their sum is {plain(sum(figures, Decimal(0)))}"
            )
        message = f"{listed(metrics)} of the device on each of {len(units)} instances"
        name = units[0].name.partition(" instance ")[0]
        place = scrape.where(name, min(line_of(unit, metrics[0]) for unit in units if metrics[0] in unit.figures))
        yield Finding(check=checks.MIG_REPEATS, where=place, message=message, evidence=tuple(evidence))


SHARING = (_scope, _device_figures, _jobs, _counted_twice, _repeated, _two_exporters, _on_instances)
"""These rules, in the order in which they are tried."""
