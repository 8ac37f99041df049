"""Rules of ``audit exporter`` about names: pods that are no users, devices without one, spellings; and blanks."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from gpuledger.audit import exporter_checks as checks
from gpuledger.audit.exporter_rows import NOBODY, Pod
from gpuledger.audit.exporter_scope import plain
from gpuledger.audit.exporter_scrape import Scrape, first_line, line_of, listed
from gpuledger.audit.exporter_words import (
    FB_USED,
    GPU_UTIL,
    HOST_LABELS,
    MAPPED,
    PROF,
    UTIL_TOLERANCE,
    Kind,
    blank_of,
    canonical,
    is_mps_server,
    is_reservation,
    kind_of,
    number,
)
from gpuledger.audit.exposition import Sample
from gpuledger.model.durations import several
from gpuledger.model.findings import Finding

BUSY_MIB = 1024
"""Memory in use from which a device counts as busy: a driver alone takes less (600 MiB at most on an H200)."""

ENGINE = f"{PROF}GR_ENGINE_ACTIVE"
ENGINE_BUSY = Decimal("0.01")
"""Ratio of time from which somebody uses the graphics engine."""

ENGINE_AT_WORK = {True: Decimal("0.05"), False: Decimal("0.5")}
"""Ratio of time from which a utilisation of 0 % is no rounding of an instance (True), and no other moment of a whole
device (False): its utilisation is of the last second, the engine's of the whole interval."""


def _blanks(scrape: Scrape) -> Iterator[Finding]:
    told: dict[tuple[str, str], list[Sample]] = {}
    for sample in scrape.exposition.samples:
        if len(sample.value) < 10:  # the least blank has ten digits
            continue
        name = canonical(sample.name)
        figure = number(sample.value)
        blank = blank_of(name, figure) if figure is not None and kind_of(name) is not Kind.OTHER else ""
        if blank:
            told.setdefault((name, blank), []).append(sample)
    for (name, blank), samples in sorted(told.items()):
        says = "says" if len(samples) == 1 else "say"
        message = f"{several(len(samples), 'row')} of {name} {says} {samples[0].value}: {blank}"
        place = scrape.where(name, samples[0].line)
        yield Finding(check=checks.BLANK, where=place, message=message)


def _zeros(scrape: Scrape) -> Iterator[Finding]:
    """Pods that read 0: all of a busy device's, or some."""
    for unit in scrape.rows.units:
        pods = sorted({pod for metric in MAPPED for pod in unit.figures.get(metric, {})} - {NOBODY})
        if not pods:
            continue
        figures = {pod: [figure for metric in MAPPED for figure in unit.values(metric, pod)] for pod in pods}
        zero = [pod for pod in pods if figures[pod] and not any(figures[pod])]
        device = {metric: max(unit.values(metric, NOBODY), default=Decimal(0)) for metric in MAPPED}
        busy = device[GPU_UTIL] > 0 or device[FB_USED] >= BUSY_MIB
        shown = f"the device reads {plain(device[GPU_UTIL])} % and {plain(device[FB_USED])} MiB"
        place = scrape.where(unit.name, first_line(unit))
        if len(zero) == len(pods) and busy:
            message = f"every pod of the device reads 0: {listed(list(map(str, zero)))}; {shown}"
            yield Finding(check=checks.UNMAPPED, where=place, message=message)
        elif zero and len(zero) < len(pods):
            message = (
                f"{listed(list(map(str, zero)))} read 0 beside {several(len(pods) - len(zero), 'pod')} with figures"
            )
            yield Finding(check=checks.ZERO_POD, where=place, message=message)


def _unsplit(scrape: Scrape) -> Iterator[Finding]:
    """Work on none of the pods that hold memory: MPS, whose server works for its clients (dcgm-exporter #388, #568)."""
    for unit in scrape.rows.units:
        device = max(unit.values(GPU_UTIL, NOBODY), default=Decimal(0))
        servers = [pod for pod in unit.pods if is_mps_server(pod.name)]
        clients = [pod for pod in unit.pods if not is_mps_server(pod.name)]
        told = {pod: max(unit.values(GPU_UTIL, pod), default=None) for pod in clients}
        worked = {pod: figure for pod, figure in told.items() if figure is not None}
        memory = {pod: max(unit.values(FB_USED, pod), default=None) for pod in worked}
        held = {pod: figure for pod, figure in memory.items() if figure is not None}
        named = max((figure for pod in servers for figure in unit.values(GPU_UTIL, pod)), default=Decimal(0))
        if any(worked.values()) or not any(held.values()):
            continue
        if device <= UTIL_TOLERANCE and not named:
            continue
        does = (
            f"{servers[0]}, the MPS server, reads {plain(named)} %" if named else f"the device reads {plain(device)} %"
        )
        least = "" if len(held) == len(worked) else "at least "
        has = f"{least}{plain(sum(held.values(), Decimal(0)))} MiB"
        message = f"{several(len(worked), 'pod')} with {has} read 0 % while {does}: the work is on none of them"
        shown = {pod: f"{plain(figure)} MiB" for pod, figure in held.items()}
        evidence = [f"{pod}: 0 %, {shown.get(pod, 'memory not told')}" for pod in worked]
        evidence += [f"{pod}: utilisation not told" for pod in clients if pod not in worked]
        place = scrape.where(unit.name, first_line(unit))
        yield Finding(check=checks.WORK_UNMAPPED, where=place, message=message, evidence=tuple(evidence[:5]))


def _zero_under_work(scrape: Scrape) -> Iterator[Finding]:
    """A utilisation of 0 where the graphics engine is active: under MIG it is always 0 (dcgm-exporter #216)."""
    for unit in scrape.rows.units:
        rows = [figure for pod in (NOBODY, *unit.pods) for figure in unit.values(GPU_UTIL, pod)]
        engine = max((f for pod in (NOBODY, *unit.pods) for f in unit.values(ENGINE, pod)), default=Decimal(0))
        if rows and not any(rows) and engine >= ENGINE_AT_WORK[bool(unit.instance)]:
            same = "instance" if unit.instance else "device"
            message = f"{GPU_UTIL} is 0, and {ENGINE} of the same {same} is {plain(engine)}"
            place = scrape.where(unit.name, line_of(unit, GPU_UTIL))
            yield Finding(check=checks.ZERO_UNDER_WORK, where=place, message=message)


def _reservations(scrape: Scrape) -> Iterator[Finding]:
    for unit in scrape.rows.units:
        for pod in unit.pods:
            if is_reservation(pod.namespace, pod.name):
                held = max(unit.values(FB_USED, pod), default=None)
                used = f", with {plain(held)} MiB in use" if held is not None else ""
                message = (
                    f"{pod} holds the device for a scheduler of fractions{used}: the pods that compute are not named"
                )
                line = min(
                    (line_of(unit, metric, pod) for metric in unit.figures if pod in unit.figures[metric]), default=0
                )
                yield Finding(check=checks.RESERVATION, where=scrape.where(unit.name, line), message=message)


def _unnamed(scrape: Scrape) -> Iterator[Finding]:
    """Busy devices without a pod, and texts without labels for pods."""
    rows = scrape.rows
    if not rows.samples:
        return
    if not rows.pod_label and not rows.exporter_pods:
        message = "no row has a label for pods; devices can be told apart, and who used them cannot"
        yield Finding(check=checks.NO_PODS, where=scrape.where("labels", first_line(rows.units[0])), message=message)
        return
    for unit in rows.units:
        if unit.pods:
            continue
        util = max(unit.values(GPU_UTIL, NOBODY), default=Decimal(0))
        memory = max(unit.values(FB_USED, NOBODY), default=Decimal(0))
        engine = max(unit.values(ENGINE, NOBODY), default=Decimal(0))
        if util > 0 or memory >= BUSY_MIB or engine > ENGINE_BUSY:
            parts = [f"{plain(util)} % busy"] if util else []
            parts += [f"{plain(memory)} MiB in use"] if memory else []
            parts += [f"graphics engine active {plain(engine)}"] if engine else []
            message = f"{', '.join(parts)}, and no pod is named on any row"
            yield Finding(check=checks.BUSY_UNNAMED, where=scrape.where(unit.name, first_line(unit)), message=message)


def _spellings(scrape: Scrape) -> Iterator[Finding]:
    """Labels and metrics that carry another name than rules expect."""
    rows = scrape.rows
    if not rows.samples:
        return
    line = first_line(rows.units[0])
    if rows.pod_label == "exported_pod" or rows.exporter_pods:
        if rows.pod_label == "exported_pod":
            holder = rows.pods[0] if rows.pods else Pod("", "?")
            exporter = rows.exporter_pods[0] if rows.exporter_pods else "another"
            message = f"the pods that hold devices are in exported_pod ({holder}); pod is {exporter}, the exporter"
        else:
            message = f"pod is {rows.exporter_pods[0]}, the exporter itself, and no label names who holds a device"
        yield Finding(check=checks.EXPORTED, where=scrape.where("labels", line), message=message)
    firsts = (each[0].name for unit in rows.units for by in unit.figures.values() for each in by.values())
    old = sorted({name for name in firsts if name[:5] == "dcgm_"})
    labels = sorted({"uuid", "pod_name", "pod_namespace", "container_name"} & set(rows.labels))
    if old or labels:
        parts = [f"metrics {listed(old)}"] if old else []
        parts += [f"labels {listed(labels, 4)}"] if labels else []
        message = f"{' and '.join(parts)} have their names of releases before 2.0"
        yield Finding(check=checks.OLD_NAMES, where=scrape.where("labels", line), message=message)
    if all(name in rows.labels for name in HOST_LABELS):
        message = "some rows have Hostname and some hostname: a rule that joins by one loses the other"
        yield Finding(check=checks.BOTH_HOSTS, where=scrape.where("labels", line), message=message)


def _empty_uids(scrape: Scrape) -> Iterator[Finding]:
    seen: dict[Pod, int] = {}
    for unit in scrape.rows.units:
        for pods in unit.figures.values():
            for pod, samples in pods.items():
                if pod != NOBODY and pod not in seen and any(row.labels.get("pod_uid") == "" for row in samples):
                    seen[pod] = samples[0].line
    if seen:
        message = f"pod_uid is empty for {listed(list(map(str, sorted(seen))))}"
        where = scrape.where("labels", min(seen.values()))
        yield Finding(check=checks.NO_UID, where=where, message=message)


NAMING = (_blanks, _zeros, _unsplit, _zero_under_work, _reservations, _unnamed, _spellings, _empty_uids)
"""These rules, in the order in which they are tried."""
