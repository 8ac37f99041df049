"""What ``audit exporter`` tells beside its findings: figures and words about the text, what was looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from gpuledger.audit import exporter_checks as checks
from gpuledger.audit.exporter_findings import owner_of
from gpuledger.audit.exporter_rows import NOBODY, Rows
from gpuledger.audit.exporter_scope import Scope, plain
from gpuledger.audit.exporter_scrape import Scrape, listed
from gpuledger.audit.exporter_words import FB_USED, FIRST_MAPPING, HOST_LABELS, OWN_LABELS, POD_LABELS, Kind, kind_of
from gpuledger.model.durations import count, several
from gpuledger.model.findings import Finding, Looked

_SCOPES = {
    Scope.PROCESS: "process: each pod's figures are of its own processes",
    Scope.DEVICE: "device: pods carry figures of the whole device",
    Scope.MIXED: "mixed",
    Scope.CANNOT_TELL: "cannot-tell",
}


def facts_of(scrape: Scrape) -> tuple[tuple[str, str], ...]:
    """Figures and words about one text, name and value, in a fixed order."""
    rows, judgement = scrape.rows, scrape.judgement
    told = [
        ("exporter", _exporter(scrape)),
        ("scope of figures on pods", _SCOPES[judgement.scope]),
        ("because", judgement.why),
        ("samples", _samples(scrape)),
        ("metrics", count(len({metric for unit in rows.units for metric in unit.figures}))),
        ("devices", count(rows.devices)),
        ("MIG instances", count(rows.instances)),
        ("pods", count(len(rows.pods)) + (f": {listed(list(map(str, rows.pods)))}" if rows.pods else "")),
        *_log(scrape),
        *_memory(rows),
        *_labels(rows),
        *_versions(scrape),
    ]
    return tuple((name, value) for name, value in told if value)


def _exporter(scrape: Scrape) -> str:
    owners = sorted({owner_of(name) for name in {sample.name for sample in scrape.rows.others}} - {""})
    if scrape.rows.samples or scrape.exposition.holders:
        owners = ["dcgm-exporter", *(owner for owner in owners if owner != "dcgm-exporter")]
    behind = ", through Prometheus" if scrape.rows.queried or "instance" in scrape.rows.labels else ""
    return ", ".join(owners) + behind if owners else "not recognised"


def _log(scrape: Scrape) -> Iterator[tuple[str, str]]:
    holders = scrape.exposition.holders
    if holders:
        pods = {pod for held in holders for pod in held.pods}
        yield "in the exporter's log", f"{several(len(holders), 'device')} held by {several(len(pods), 'pod')}"


def _samples(scrape: Scrape) -> str:
    rows = scrape.rows
    others = f", and {count(len(rows.others))} of others" if rows.others else ""
    series = f" in {count(rows.series)} series" if rows.series != rows.samples else ""
    bare = sum(1 for sample in scrape.exposition.samples if not sample.value)
    without = f", {count(bare)} of them without a figure" if bare else ""
    return f"{count(rows.samples)}{series}{without}{others}"


def _memory(rows: Rows) -> Iterator[tuple[str, str]]:
    """Memory in use, added up over each kind of row; a series that stands more than once counts once."""
    kinds: dict[str, list[Decimal]] = {}
    for unit in rows.units:
        for pod in unit.figures.get(FB_USED, {}):
            once = {frozenset(sample.labels.items()): figure for figure, sample in unit.numbers(FB_USED, pod)}
            kinds.setdefault("rows with a pod" if pod != NOBODY else "rows without a pod", []).extend(once.values())
            if unit.instance:
                kinds.setdefault("MIG instances", []).extend(once.values())
    every = [*kinds.get("rows with a pod", []), *kinds.get("rows without a pod", [])]
    if not every:
        return
    yield f"{FB_USED}, all rows", _sum(every)
    for kind in ("rows with a pod", "rows without a pod", "MIG instances"):
        if kinds.get(kind):
            yield f"{FB_USED}, {kind}", _sum(kinds[kind])


def _sum(figures: Sequence[Decimal]) -> str:
    total = sum(figures, Decimal(0))
    whole = count(int(total)) if total == int(total) else plain(total)
    return f"{whole} MiB in {several(len(figures), 'row')}"


def _labels(rows: Rows) -> Iterator[tuple[str, str]]:
    yield "labels in order", ", ".join(name for name in rows.labels if name in OWN_LABELS or name in _known(rows))
    own = [name for name in rows.labels if name not in OWN_LABELS and name not in _known(rows)]
    yield "labels of pods, DRA or the scrape", listed(own, _MOST_LABELS)
    hosts = [name for name in HOST_LABELS if name in rows.labels]
    yield "host label", " and ".join(hosts)
    names = next((spelled for spelled in POD_LABELS if spelled[0] == rows.pod_label), ())
    if names:
        empty = "" if rows.pods else ", empty on every row"
        yield "pod labels", ", ".join(name for name in names if name in rows.labels) + empty
    told: list[str] = [name for name in ("vgpu", "pod_uid", "hpc_job") if name in rows.labels]
    told += ["DRA"] if any(name.startswith("dra_") for name in rows.labels) else []
    yield "also labelled", ", ".join(told)


def _known(rows: Rows) -> frozenset[str]:
    return frozenset(name for spelled in POD_LABELS for name in spelled if rows.pod_label == spelled[0])


_MOST_LABELS = 40

_BUILD = re.compile(r"(\d+\.\d+\.\d+)-(\d+\.\d+\.\d+)")


def _versions(scrape: Scrape) -> Iterator[tuple[str, str]]:
    """What the text says or lets guess of versions; a hint, never the ground of a verdict."""
    firsts = (rows[0] for unit in scrape.rows.units for pods in unit.figures.values() for rows in pods.values())
    told = sorted({labels.get("DCGM_FI_DRIVER_VERSION", "") for labels in (row.labels for row in firsts)} - {""})
    yield "driver version", listed(told)
    yield "exporter version", exporter_version(scrape)
    labels = scrape.rows.labels
    hints = []
    hints += ["4.x or later (pci_bus_id)"] if "pci_bus_id" in labels else []
    hints += [f"later than {FIRST_MAPPING} (hostname)"] if "hostname" in labels else []
    hints += [f"{FIRST_MAPPING} or later (pod_uid)"] if "pod_uid" in labels else []
    hints += ["virtual GPUs on (vgpu)"] if "vgpu" in labels else []
    yield "hints by labels", ", ".join(hints)


def exporter_version(scrape: Scrape) -> str:
    """The version that the exporter itself tells, where its own metrics are switched on; empty else."""
    for sample in scrape.rows.others:
        if sample.name.endswith("build_info") and "dcgm" in sample.name:
            return sample.labels.get("version", "")
    return ""


def version_finding(scrape: Scrape) -> Iterator[Finding]:
    """Where the told version and the behaviour contradict each other."""
    version = exporter_version(scrape)
    found = _BUILD.search(version)
    if found is None or scrape.judgement.scope not in (Scope.DEVICE, Scope.PROCESS):
        return
    can = _ordered(found[0]) >= _ordered(FIRST_MAPPING)
    if can and scrape.judgement.scope is Scope.DEVICE:
        message = f"it says {version}, which can map processes, and emits figures of devices"
        yield Finding(check=checks.VERSION, where=scrape.where("exporter"), message=message)
    elif not can and scrape.judgement.scope is Scope.PROCESS:
        message = f"it says {version}, which cannot map processes, and emits figures of processes: a build of its own"
        yield Finding(check=checks.VERSION, where=scrape.where("exporter"), message=message)


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def looked_at(scrape: Scrape) -> tuple[Looked, ...]:
    """Every device and every metric that was looked at, with what it came to."""
    judged = {unit.name: unit for unit in scrape.judgement.units}
    devices = []
    for unit in scrape.rows.units:
        told = judged.get(unit.name)
        verdict = str(told.scope) if told else "no-pod"
        why = told.why if told else "no row of it names a pod"
        line = min(row.line for pods in unit.figures.values() for rows in pods.values() for row in rows)
        text = "; ".join(told.evidence[:2]) if told else ""
        devices.append(Looked(where=scrape.where(unit.name, line), verdict=verdict, why=why, text=text))
    devices += [
        Looked(
            where=scrape.where(held.device, held.line),
            verdict=str(judged[held.device].scope),
            why=judged[held.device].why,
        )
        for held in scrape.exposition.holders
    ]
    return (*devices, *_metrics(scrape))


def _metrics(scrape: Scrape) -> Iterator[Looked]:
    first: dict[str, int] = {}
    shared: dict[str, int] = {}
    for unit in scrape.rows.units:
        for metric, pods in unit.figures.items():
            line = min(row.line for rows in pods.values() for row in rows)
            first[metric] = min(first.get(metric, line), line)
            shared[metric] = max(shared.get(metric, 0), len([pod for pod in pods if pod != NOBODY]))
    for metric, line in sorted(first.items(), key=lambda item: (item[1], item[0])):
        many = shared[metric]
        kind = kind_of(metric)
        if not many:
            verdict, why = "fine", "on no pod's row"
        elif kind is Kind.MAPPED:
            verdict, why = str(scrape.judgement.scope), scrape.judgement.why
        elif kind is Kind.PROFILING and many > 1:
            verdict, why = checks.PROFILING.verdict, f"on the rows of up to {several(many, 'pod')} of one device"
        else:
            verdict, why = (
                "device-scope",
                f"a device's figure on the rows of up to {several(many, 'pod')} of one device",
            )
        yield Looked(where=scrape.where(metric, line), verdict=verdict, why=why)
